//! The client's side of one running request: progress, log messages and questions go back on the request's own
//! stream where it has one, else on the session's.

use std::sync::Arc;

use bytes::Bytes;
use hikite_core::json::{Object, Raw};
use hikite_core::source::{Backchannel, BoxFuture, Question};
use hikite_wire::encode;
use hikite_wire::message::Id;
use tokio::sync::{mpsc, oneshot};

use crate::mcp::session::Session;

pub(crate) struct Call {
    pub(crate) session: Arc<Session>,
    /// The client's own progress token, if it wants progress.
    pub(crate) token: Option<Raw>,
    pub(crate) stream: Option<mpsc::Sender<Bytes>>,
}

/// JSON-RPC's "internal error".
const FAILED: i32 = -32603;

impl Call {
    fn send(&self, message: Bytes) {
        match &self.stream {
            Some(stream) => {
                if let Err(mpsc::error::TrySendError::Closed(message)) = stream.try_send(message) {
                    self.session.outbox.send(message);
                }
            }
            None => self.session.outbox.send(message),
        }
    }
}

impl Backchannel for Call {
    fn progress(&self, params: Object) {
        if let Some(token) = &self.token {
            let params = params.with("progressToken", token.clone()).raw();
            self.send(encode::notification("notifications/progress", Some(&params)));
        }
    }

    fn log(&self, params: Raw) {
        if self.session.wants(&params) {
            self.send(encode::notification("notifications/message", Some(&params)));
        }
    }

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Raw, Raw>> {
        let id = self.session.next_question();
        let (sender, answer) = oneshot::channel();
        {
            let mut questions = self.session.questions.lock();
            if questions.len() >= self.session.app.limits.questions {
                let error = encode::error_object(FAILED, "too many questions wait for the client");
                return Box::pin(async move { Err(error) });
            }
            questions.insert(id, sender);
        }
        let params = Some(question.params).filter(Raw::is_object);
        self.send(encode::request(&Id::number(id), question.kind.method(), params.as_ref()));
        let open = Open { session: Arc::clone(&self.session), stream: self.stream.clone(), id };
        Box::pin(async move {
            let limit = open.session.app.limits.question_timeout;
            match tokio::time::timeout(limit, answer).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) => {
                    Err(encode::error_object(FAILED, "the session ended before the client answered"))
                }
                Err(_) => Err(encode::error_object(FAILED, "the client did not answer in time")),
            }
        })
    }
}

/// A question the client has not answered; dropped unanswered, it is withdrawn.
struct Open {
    session: Arc<Session>,
    stream: Option<mpsc::Sender<Bytes>>,
    id: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        if self.session.questions.lock().remove(&self.id).is_none() {
            return;
        }
        let params = Object::default().with("requestId", Raw::of(&self.id)).raw();
        let message = encode::notification("notifications/cancelled", Some(&params));
        match &self.stream {
            Some(stream) => drop(stream.try_send(message)),
            None => self.session.outbox.send(message),
        }
    }
}

//! The backchannel of one running request: progress, log messages and questions go out on the request's own stream if
//! it has one, else on the session's.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use hikite_core::json::{Object, Raw};
use hikite_core::source::{Backchannel, BoxFuture, Question};
use hikite_wire::encode;
use hikite_wire::message::Id;
use tokio::sync::{mpsc, oneshot};

use crate::mcp::session::{Asked, Session};

pub(crate) struct Call {
    /// Weak, because sources may hold the backchannel longer than the session lives.
    pub(crate) session: Weak<Session>,
    /// The client's id of the request.
    pub(crate) request: Id,
    /// The client's progress token, if it wants progress.
    pub(crate) token: Option<Raw>,
    pub(crate) stream: Option<mpsc::Sender<Bytes>>,
}

/// JSON-RPC's "internal error".
const FAILED: i32 = -32603;

/// Sends on the request's own stream, else on the session's. Returns `true` if the message was accepted.
fn send(session: &Session, stream: Option<&mpsc::Sender<Bytes>>, message: Bytes) -> bool {
    match stream.map(|stream| stream.try_send(message.clone())) {
        Some(Ok(())) => true,
        Some(Err(mpsc::error::TrySendError::Full(_))) => false,
        Some(Err(mpsc::error::TrySendError::Closed(message))) => session.outbox.send(message),
        None => session.outbox.send(message),
    }
}

/// Sends `notifications/cancelled` for a question.
fn withdraw(session: &Session, stream: Option<&mpsc::Sender<Bytes>>, question: u64) {
    let params = Object::default().with("requestId", Raw::of(&question)).raw();
    send(session, stream, encode::notification("notifications/cancelled", Some(&params)));
}

impl Session {
    /// Cancels the questions of a cancelled request, so that the client learns of it before the response.
    pub(crate) fn withdraw_questions(&self, request: &Id, stream: Option<&mpsc::Sender<Bytes>>) {
        let open: Vec<u64> = {
            let mut questions = self.questions.lock();
            questions.extract_if(|_, asked| asked.request == *request).map(|(id, _)| id).collect()
        };
        for question in open {
            withdraw(self, stream, question);
        }
    }
}

impl Backchannel for Call {
    fn progress(&self, params: Object) {
        if let (Some(token), Some(session)) = (&self.token, self.session.upgrade()) {
            let params = params.with("progressToken", token.clone()).raw();
            let message = encode::notification("notifications/progress", Some(&params));
            send(&session, self.stream.as_ref(), message);
        }
    }

    fn log(&self, params: Raw) {
        if let Some(session) = self.session.upgrade().filter(|session| session.wants(&params)) {
            let message = encode::notification("notifications/message", Some(&params));
            send(&session, self.stream.as_ref(), message);
        }
    }

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Raw, Raw>> {
        match self
            .session
            .upgrade()
            .ok_or("the session is over")
            .and_then(|session| self.put(&session, question))
        {
            Ok(answer) => answer,
            Err(reason) => Box::pin(async move { Err(encode::error_object(FAILED, reason)) }),
        }
    }
}

impl Call {
    fn put(
        &self,
        session: &Arc<Session>,
        question: Question,
    ) -> Result<BoxFuture<'static, Result<Raw, Raw>>, &'static str> {
        let id = session.next_question();
        let (sender, answer) = oneshot::channel();
        {
            let mut questions = session.questions.lock();
            if questions.len() >= session.app.limits.questions {
                return Err("too many questions wait for the client");
            }
            questions.insert(id, Asked { request: self.request.clone(), answer: sender });
        }
        let open = Open { session: Weak::clone(&self.session), stream: self.stream.clone(), id };
        let params = Some(question.params).filter(Raw::is_object);
        let message = encode::request(&Id::number(id), question.kind.method(), params.as_ref());
        if !send(session, self.stream.as_ref(), message) {
            return Err("the client does not read what it is sent");
        }
        let limit = session.app.limits.question_timeout;
        Ok(Box::pin(async move {
            let _open = open;
            match tokio::time::timeout(limit, answer).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) => {
                    Err(encode::error_object(FAILED, "the session ended before the client answered"))
                }
                Err(_) => Err(encode::error_object(FAILED, "the client did not answer in time")),
            }
        }))
    }
}

/// A question without an answer; cancelled on drop.
struct Open {
    session: Weak<Session>,
    stream: Option<mpsc::Sender<Bytes>>,
    id: u64,
}

impl Drop for Open {
    fn drop(&mut self) {
        let Some(session) = self.session.upgrade() else { return };
        if session.questions.lock().remove(&self.id).is_some() {
            withdraw(&session, self.stream.as_ref(), self.id);
        }
    }
}

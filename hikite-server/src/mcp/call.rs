//! The backchannel of one running request: progress, log messages and questions go out on the request's own stream if
//! it has one, else on the session's.

use std::sync::{Arc, Weak};

use bytes::Bytes;
use hikite_core::json::{Object, Raw};
use hikite_core::source::{Backchannel, BoxFuture, InputRequest};
use hikite_wire::encode;
use hikite_wire::message::MessageId;
use tokio::sync::{mpsc, oneshot};

use crate::mcp::session::{ClientSession, PendingQuestion};

pub(crate) struct RequestBackchannel {
    /// Weak, because sources may hold the backchannel longer than the session lives.
    pub(crate) session: Weak<ClientSession>,
    /// The client's id of the request.
    pub(crate) request: MessageId,
    /// The client's progress token, if it wants progress.
    pub(crate) token: Option<Raw>,
    pub(crate) stream: Option<mpsc::Sender<Bytes>>,
}

/// JSON-RPC's "internal error".
const FAILED: i32 = -32603;

/// Sends on the request's own stream, else on the session's. Returns `true` if the message was accepted.
fn send(session: &ClientSession, stream: Option<&mpsc::Sender<Bytes>>, message: Bytes) -> bool {
    match stream.map(|stream| stream.try_send(message.clone())) {
        Some(Ok(())) => true,
        Some(Err(mpsc::error::TrySendError::Full(_))) => false,
        Some(Err(mpsc::error::TrySendError::Closed(message))) => session.outbox.send(message),
        None => session.outbox.send(message),
    }
}

/// Sends `notifications/cancelled` for a question.
fn withdraw(session: &ClientSession, stream: Option<&mpsc::Sender<Bytes>>, question: u64) {
    let params = Object::default().with("requestId", Raw::of(&question)).raw();
    send(session, stream, encode::notification("notifications/cancelled", Some(&params)));
}

impl ClientSession {
    /// Cancels the questions of a cancelled request, so that the client learns of it before the response.
    pub(crate) fn withdraw_questions(&self, request: &MessageId, stream: Option<&mpsc::Sender<Bytes>>) {
        let open: Vec<u64> = {
            let mut questions = self.questions.lock();
            questions.extract_if(|_, asked| asked.request == *request).map(|(id, _)| id).collect()
        };
        for question in open {
            withdraw(self, stream, question);
        }
    }
}

impl Backchannel for RequestBackchannel {
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

    fn ask(&self, question: InputRequest) -> BoxFuture<'static, Result<Raw, Raw>> {
        match self
            .session
            .upgrade()
            .ok_or("The session has ended.")
            .and_then(|session| self.send_question(&session, question))
        {
            Ok(answer) => answer,
            Err(reason) => Box::pin(async move { Err(encode::error_object(FAILED, reason)) }),
        }
    }
}

impl RequestBackchannel {
    fn send_question(
        &self,
        session: &Arc<ClientSession>,
        question: InputRequest,
    ) -> Result<BoxFuture<'static, Result<Raw, Raw>>, &'static str> {
        let id = session.next_question();
        let (sender, answer) = oneshot::channel();
        {
            let mut questions = session.questions.lock();
            if questions.len() >= session.app.limits.questions {
                return Err("Too many questions are waiting for the client.");
            }
            questions.insert(id, PendingQuestion { request: self.request.clone(), answer: sender });
        }
        let open = OpenQuestion { session: Weak::clone(&self.session), stream: self.stream.clone(), id };
        let params = Some(question.params).filter(Raw::is_object);
        let message = encode::request(&MessageId::number(id), question.kind.method(), params.as_ref());
        if !send(session, self.stream.as_ref(), message) {
            return Err("The client does not read its messages.");
        }
        let limit = session.app.limits.question_timeout;
        Ok(Box::pin(async move {
            let _open = open;
            match tokio::time::timeout(limit, answer).await {
                Ok(Ok(answer)) => answer,
                Ok(Err(_)) => Err(encode::error_object(FAILED, "The session ended before the client answered.")),
                Err(_) => Err(encode::error_object(FAILED, "The client did not answer in time.")),
            }
        }))
    }
}

/// A question without an answer; cancelled on drop.
struct OpenQuestion {
    session: Weak<ClientSession>,
    stream: Option<mpsc::Sender<Bytes>>,
    id: u64,
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        let Some(session) = self.session.upgrade() else { return };
        if session.questions.lock().remove(&self.id).is_some() {
            withdraw(&session, self.stream.as_ref(), self.id);
        }
    }
}

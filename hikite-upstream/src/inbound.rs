//! What a server sends of its own accord: notifications and questions. A question reaches only the client it
//! provably belongs to; any other is refused.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use hikite_core::caller::SessionId;
use hikite_core::json::Raw;
use hikite_core::source::{Event, Question, QuestionKind};
use hikite_wire::encode;
use hikite_wire::message::{Id, Message, split};
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, Notice, Purpose};
use crate::pending::Call;

/// JSON-RPC's "method not found": what a client that lacks a capability answers.
const NOT_SUPPORTED: i32 = -32601;

impl Connection {
    /// Takes one message off the wire. `origin` is our request on whose own stream it came, where there is one.
    pub(crate) fn receive(self: &Arc<Self>, bytes: &Bytes, origin: Option<u64>) {
        // Servers of 2025-03-26 may send several at once.
        if let Some(messages) = split(bytes) {
            return messages.iter().for_each(|message| self.receive_one(message, origin));
        }
        self.receive_one(bytes, origin);
    }

    fn receive_one(self: &Arc<Self>, bytes: &Bytes, origin: Option<u64>) {
        match Message::decode(bytes) {
            Ok(Message::Response { id, body }) => {
                let settled = id.as_number().is_some_and(|id| self.pending.settle(id, body));
                if !settled {
                    tracing::debug!(module = &*self.name, "an answer that nobody waits for");
                }
            }
            Ok(Message::Notification { method, params }) => {
                self.notification(&method, params.unwrap_or_else(Raw::empty_object), origin);
            }
            Ok(Message::Request { id, method, params }) => {
                self.question(id, &method, params.unwrap_or_else(Raw::empty_object), origin);
            }
            Err(error) => {
                tracing::debug!(module = &*self.name, %error, "a message that is none was passed over");
            }
        }
    }

    fn notification(&self, method: &str, params: Raw, origin: Option<u64>) {
        match method {
            "notifications/progress" => self.progress(&params),
            "notifications/message" => self.log(params, origin),
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed" => match self.purpose {
                Purpose::Lists => self.lists_changed.store(true, Ordering::Relaxed),
                Purpose::Shared | Purpose::Owned(_) => (self.notices)(Notice::ListChanged),
            },
            "notifications/resources/updated" => self.resource_updated(params),
            "notifications/elicitation/complete" => {
                if let Some(session) = self.addressee(origin) {
                    (self.notices)(Notice::Event(Event::ElicitationComplete { session, params }));
                }
            }
            "notifications/cancelled" => {
                let id = params.object().and_then(|params| Id::read(params.get("requestId")?.clone()));
                if let Some(question) = id.and_then(|id| self.questions.lock().remove(&id)) {
                    question.cancel();
                }
            }
            _ => tracing::debug!(module = &*self.name, method, "an unknown notification was passed over"),
        }
    }

    fn progress(&self, params: &Raw) {
        let Some(mut params) = params.object() else { return };
        let token = params.remove("progressToken").and_then(Id::read).and_then(|token| token.as_number());
        if let Some(call) = token.and_then(|token| self.pending.call(token)) {
            call.context.back.progress(params);
        }
    }

    fn log(&self, params: Raw, origin: Option<u64>) {
        if let Some(call) = self.call_of(origin) {
            call.context.back.log(params);
        } else if let Some(session) = self.addressee(origin) {
            (self.notices)(Notice::Event(Event::Log { session, params }));
        } else {
            tracing::debug!(module = &*self.name, "a log message that belongs to nobody in particular");
        }
    }

    fn resource_updated(&self, params: Raw) {
        let Some(uri) = params.object().and_then(|params| params.text("uri")) else { return };
        let subscriptions = self.subscriptions.lock();
        let sessions: Vec<SessionId> = subscriptions.get(&uri).into_iter().flatten().copied().collect();
        drop(subscriptions);
        if !sessions.is_empty() {
            (self.notices)(Notice::Event(Event::ResourceUpdated { sessions, params }));
        }
    }

    fn question(self: &Arc<Self>, id: Id, method: &str, params: Raw, origin: Option<u64>) {
        if method == "ping" {
            return self.send(encode::result(&id, &Raw::empty_object()));
        }
        let Some(kind) = QuestionKind::of_method(method) else {
            return self.refuse(&id, &format!("`{method}` is not supported"));
        };
        (self.notices)(Notice::AskedBack);
        if matches!(self.purpose, Purpose::Lists) {
            return self.answer_while_listing(&id, kind);
        }
        let Some(call) = self.call_of(origin) else {
            return self.refuse(&id, "the question cannot be tied to one client, so it is put to none");
        };
        if !kind.can_ask(&call.context.session) {
            return self.refuse(&id, &format!("the client does not support `{method}`"));
        }
        self.ask(id, Question { kind, params }, call);
    }

    fn ask(self: &Arc<Self>, id: Id, question: Question, call: Call) {
        let withdrawn = CancellationToken::new();
        self.questions.lock().insert(id.clone(), withdrawn.clone());
        let asked = call.context.back.ask(question);
        let connection = Arc::clone(self);
        self.tasks.spawn(async move {
            let answer = tokio::select! {
                answer = asked => Some(answer),
                () = withdrawn.cancelled() => None,
                () = call.over.cancelled() => None,
                () = connection.closed.cancelled() => None,
            };
            connection.questions.lock().remove(&id);
            match answer {
                Some(Ok(result)) => connection.send(encode::result(&id, &result)),
                Some(Err(error)) => connection.send(encode::error(Some(&id), &error)),
                None => {}
            }
        });
    }

    fn answer_while_listing(&self, id: &Id, kind: QuestionKind) {
        if kind == QuestionKind::Roots {
            let none = hikite_core::json::Object::default().with("roots", Raw::array([])).raw();
            self.send(encode::result(id, &none));
        } else {
            self.refuse(id, "nobody is there to be asked yet");
        }
    }

    fn refuse(&self, id: &Id, reason: &str) {
        self.send(encode::error(Some(id), &encode::error_object(NOT_SUPPORTED, reason)));
    }

    /// The call that a message belongs to: the one on whose stream it came, else that of the only session with
    /// calls running, else the owner's latest.
    fn call_of(&self, origin: Option<u64>) -> Option<Call> {
        if let Some(origin) = origin {
            return self.pending.call(origin);
        }
        self.pending.sole_caller().or_else(|| {
            let context = self.latest.lock().clone()?;
            Some(Call { context, over: CancellationToken::new() })
        })
    }

    /// The session that a message belongs to, also when none of its calls is running.
    fn addressee(&self, origin: Option<u64>) -> Option<SessionId> {
        if let Some(call) = self.call_of(origin) {
            return Some(call.context.session.id);
        }
        let users = self.users.lock();
        let only = (users.len() == 1).then(|| users.iter().next().copied()).flatten();
        only.filter(|user| !self.pending.works_for_others(*user))
    }
}

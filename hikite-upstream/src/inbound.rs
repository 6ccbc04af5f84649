//! Messages that a server initiates: notifications and requests to the client (sampling, elicitation, roots). A request
//! is relayed only to the client it provably belongs to; any other is refused.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use hikite_core::caller::{Caller, SessionId};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{InputRequest, InputRequestKind, SourceEvent};
use hikite_wire::encode;
use hikite_wire::message::{Message, MessageId, split};
use hikite_wire::stateless::META_SUBSCRIPTION;
use tokio_util::sync::CancellationToken;

use crate::connection::{Connection, ConnectionNotice, ConnectionPurpose};
use crate::outbound::Outbound;
use crate::pending::ActiveCall;
use crate::tasks::inbox::QuestionReceiver;

/// JSON-RPC "method not found", the reply of a client without the capability.
const NOT_SUPPORTED: i32 = -32601;
/// `_meta` member in which a server may name its question.
pub(crate) const KEY: &str = "hikite/key";

impl Connection {
    /// Handles one received message. `origin` is the id of our request on whose stream it came, if any.
    pub(crate) fn receive(self: &Arc<Self>, bytes: &Bytes, origin: Option<u64>) {
        // Servers of 2025-03-26 may send batches.
        if let Some(messages) = split(bytes) {
            return messages.iter().for_each(|message| self.receive_one(message, origin));
        }
        self.receive_one(bytes, origin);
    }

    fn receive_one(self: &Arc<Self>, bytes: &Bytes, origin: Option<u64>) {
        match Message::decode(bytes) {
            Ok(Message::Response { id, body }) => {
                // Over HTTP a response arrives on the stream of its own request; any other is unexpected.
                let expected = !self.outbound().is_some_and(Outbound::is_http);
                let resolved = id.as_number().is_some_and(|id| expected && self.pending.resolve(id, body));
                if !resolved {
                    tracing::debug!(module = &*self.name, "ignoring a response to no pending request");
                }
            }
            Ok(Message::Notification { method, params }) => {
                self.notification(&method, params.unwrap_or_else(Raw::empty_object), origin);
            }
            Ok(Message::Request { id, method, params }) => {
                self.question(id, &method, params.unwrap_or_else(Raw::empty_object), origin);
            }
            Err(error) => {
                tracing::debug!(module = &*self.name, %error, "ignoring an invalid message");
            }
        }
    }

    fn notification(self: &Arc<Self>, method: &str, params: Raw, origin: Option<u64>) {
        match method {
            "notifications/progress" => self.progress(&params),
            "notifications/message" => self.log(params, origin),
            "notifications/tools/list_changed"
            | "notifications/resources/list_changed"
            | "notifications/prompts/list_changed" => match self.purpose {
                ConnectionPurpose::Lists => self.lists_changed.store(true, Ordering::Relaxed),
                ConnectionPurpose::Shared | ConnectionPurpose::Owned(_) => self.on_list_changed(method),
            },
            "notifications/resources/updated" => self.resource_updated(params),
            "notifications/subscriptions/acknowledged" => self.listening.acknowledged(&params, origin),
            "notifications/elicitation/complete" => {
                if let Some(session) = self.addressee(origin) {
                    (self.notices)(ConnectionNotice::Event(SourceEvent::ElicitationComplete { session, params }));
                }
            }
            "notifications/cancelled" => {
                let id = params.object().and_then(|params| MessageId::read(params.get("requestId")?.clone()));
                if let Some(id) = id {
                    self.withdrawn(&id);
                }
            }
            _ => tracing::debug!(module = &*self.name, method, "ignoring an unknown notification"),
        }
    }

    /// Cancels a question of the server or, on a stateless connection, one of our listen requests.
    fn withdrawn(&self, id: &MessageId) {
        if let Some(question) = self.questions.lock().remove(id) {
            question.cancel();
        } else if !self.is_stateless() {
            self.inboxes.withdraw(id);
        } else if let Some(id) = id.as_number().filter(|id| self.pending.is_background(*id)) {
            self.pending.resolve(id, Ok(Raw::empty_object()));
        }
    }

    fn progress(&self, params: &Raw) {
        let Some(mut params) = params.object() else { return };
        let token = params.remove("progressToken").and_then(MessageId::read).and_then(|token| token.as_number());
        if let Some(call) = token.and_then(|token| self.pending.call(token)) {
            call.context.back.progress(params);
        }
    }

    fn log(&self, params: Raw, origin: Option<u64>) {
        if let Some(call) = self.call_of(origin) {
            call.context.back.log(params);
        } else if let Some(session) = self.addressee(origin) {
            (self.notices)(ConnectionNotice::Event(SourceEvent::Log { session, params }));
        } else {
            tracing::debug!(module = &*self.name, "ignoring a log message that belongs to no session");
        }
    }

    fn resource_updated(&self, params: Raw) {
        let Some(members) = params.object() else { return };
        let Some(uri) = members.text("uri") else { return };
        let sessions = self.subscribers(&uri);
        if !sessions.is_empty() {
            let params = if self.is_stateless() { without_subscription(members) } else { params };
            (self.notices)(ConnectionNotice::Event(SourceEvent::ResourceUpdated { sessions, params }));
        }
    }

    fn question(self: &Arc<Self>, id: MessageId, method: &str, params: Raw, origin: Option<u64>) {
        if self.is_stateless() {
            return self.refuse_stateless_request(&id, method);
        }
        if method == "ping" {
            return self.send(encode::result(&id, &Raw::empty_object()));
        }
        let Some(kind) = InputRequestKind::of_method(method) else {
            return self.refuse(&id, &format!("`{method}` is not supported."));
        };
        (self.notices)(ConnectionNotice::AskedBack);
        if matches!(self.purpose, ConnectionPurpose::Lists) || self.is_listing_only() {
            return self.answer_while_listing(&id, kind);
        }
        let addressee = self.inboxes.addressee(&params, origin);
        let key = key_of(&params);
        if let Some(QuestionReceiver::TaskInbox(task)) = &addressee {
            if !self.inboxes.suspend(task, id.clone(), InputRequest { kind, params, key }) {
                self.refuse(&id, "Too many questions are pending in this task.");
            }
            return;
        }
        let call = match addressee {
            Some(QuestionReceiver::Call(call)) => Some(call),
            _ => self.call_of(origin),
        };
        let Some(call) = call else {
            return self.refuse(&id, "The question cannot be assigned to one client, so no client is asked.");
        };
        if origin.is_none() && self.may_ask_for_another(&call.context.session.caller) {
            let reason = "The question may belong to another client of this process, so no client is asked.";
            return self.refuse(&id, reason);
        }
        if !kind.is_supported_by(&call.context.session) {
            call.context.back.capability_missing(kind);
            // The server was told that there may be roots, and this caller has none.
            if kind == InputRequestKind::Roots && self.opened_for_lists.load(Ordering::Relaxed) {
                return self.answer_while_listing(&id, kind);
            }
            return self.refuse(&id, &format!("The client does not support `{method}`."));
        }
        self.ask(id, InputRequest { kind, params, key }, call);
    }

    fn ask(self: &Arc<Self>, id: MessageId, question: InputRequest, call: ActiveCall) {
        let withdrawn = CancellationToken::new();
        self.questions.lock().insert(id.clone(), withdrawn.clone());
        let asked = call.context.back.ask(question);
        let connection = Arc::clone(self);
        self.tasks.spawn(async move {
            let answer = tokio::select! {
                answer = asked => Some(answer),
                () = withdrawn.cancelled() => None,
                () = call.finished.cancelled() => None,
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

    /// Returns `true` if the connection was opened to read lists and no session has called through it.
    fn is_listing_only(&self) -> bool {
        self.opened_for_lists.load(Ordering::Relaxed) && self.calling_sessions.lock().is_empty()
    }

    fn answer_while_listing(&self, id: &MessageId, kind: InputRequestKind) {
        if kind == InputRequestKind::Roots {
            let none = Object::default().with("roots", Raw::array([])).raw();
            self.send(encode::result(id, &none));
        } else {
            self.refuse(id, "There is no client to ask yet.");
        }
    }

    /// Refuses a request of a stateless server, which may send none. Over HTTP there is no way to reply.
    fn refuse_stateless_request(&self, id: &MessageId, method: &str) {
        tracing::debug!(module = &*self.name, method, "ignoring a question of a server that may not ask");
        if !self.outbound().is_some_and(Outbound::is_http) {
            self.refuse(id, &format!("`{method}` is not supported."));
        }
    }

    pub(crate) fn refuse(&self, id: &MessageId, reason: &str) {
        self.send(encode::error(Some(id), &encode::error_object(NOT_SUPPORTED, reason)));
    }

    /// Returns the call that a message belongs to: the one on whose stream it came, else that of the only session with
    /// running calls, else the owner's latest.
    fn call_of(&self, origin: Option<u64>) -> Option<ActiveCall> {
        if let Some(origin) = origin {
            return self.pending.call(origin);
        }
        self.pending.sole_caller().or_else(|| {
            let context = self.latest_call.lock().clone()?;
            Some(ActiveCall { context, finished: CancellationToken::new() })
        })
    }

    /// Returns `true` if a question outside of any request's stream may be meant for another user of this process.
    /// Where the configuration shares one on purpose, the only running call is taken for its origin.
    fn may_ask_for_another(&self, caller: &Caller) -> bool {
        let shares_until_asked =
            matches!(self.purpose, ConnectionPurpose::Shared) && self.starter_capabilities.get().is_some();
        shares_until_asked && self.calling_sessions.lock().values().any(|subject| *subject != caller.subject)
    }

    /// The session that a message belongs to, also when none of its calls is running.
    fn addressee(&self, origin: Option<u64>) -> Option<SessionId> {
        if let Some(call) = self.call_of(origin) {
            return Some(call.context.session.id);
        }
        let calling_sessions = self.calling_sessions.lock();
        let only = (calling_sessions.len() == 1).then(|| calling_sessions.keys().next().copied()).flatten();
        only.filter(|user| !self.pending.has_abandoned_calls_of_others(*user))
    }
}

/// Returns the server's name for its question, if it has one.
fn key_of(params: &Raw) -> Option<Box<str>> {
    let meta = params.object()?.get("_meta")?.object()?;
    meta.text(KEY).map(Into::into)
}

/// Removes the subscription id, which is internal to our connection.
fn without_subscription(mut params: Object) -> Raw {
    if let Some(mut meta) = params.get("_meta").and_then(Raw::object) {
        meta.remove(META_SUBSCRIPTION);
        params.set("_meta", meta);
    }
    params.raw()
}

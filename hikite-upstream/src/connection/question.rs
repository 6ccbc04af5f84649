//! Requests of a server to its client: sampling, elicitation, roots. A question is relayed only to the client that it
//! provably belongs to; any other is refused.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hikite_core::caller::{Caller, SessionId};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{InputRequest, InputRequestKind};
use hikite_wire::encode;
use hikite_wire::message::MessageId;
use tokio_util::sync::CancellationToken;

use crate::outbound::Outbound;
use crate::pending::ActiveCall;
use crate::tasks::conversion::KEY;
use crate::tasks::inbox::QuestionReceiver;

use super::{Connection, ConnectionNotice, ConnectionPurpose};

pub(super) fn receive(connection: &Arc<Connection>, id: MessageId, method: &str, params: Raw, origin: Option<u64>) {
    if connection.is_stateless() {
        return refuse_stateless_request(connection, &id, method);
    }
    if method == "ping" {
        return connection.send(encode::result(&id, &Raw::empty_object()));
    }
    let Some(kind) = InputRequestKind::of_method(method) else {
        return connection.refuse(&id, &format!("`{method}` is not supported."));
    };
    (connection.notices)(ConnectionNotice::AskedBack);
    if matches!(connection.purpose, ConnectionPurpose::Lists) || is_listing_only(connection) {
        return answer_while_listing(connection, &id, kind);
    }
    let addressee = connection.inboxes.addressee(&params, origin);
    let key = key_of(&params);
    if let Some(QuestionReceiver::TaskInbox(task)) = &addressee {
        if !connection.inboxes.suspend(task, id.clone(), InputRequest { kind, params, key }) {
            connection.refuse(&id, "Too many questions are pending in this task.");
        }
        return;
    }
    let call = match addressee {
        Some(QuestionReceiver::Call(call)) => Some(call),
        _ => call_of(connection, origin),
    };
    let Some(call) = call else {
        return connection.refuse(&id, "The question cannot be assigned to one client, so no client is asked.");
    };
    if origin.is_none() && may_ask_for_another(connection, &call.context.session.caller) {
        let reason = "The question may belong to another client of this process, so no client is asked.";
        return connection.refuse(&id, reason);
    }
    if !kind.is_supported_by(&call.context.session) {
        call.context.back.capability_missing(kind);
        // The server was told that there may be roots, and this caller has none.
        if kind == InputRequestKind::Roots && connection.opened_for_lists.load(Ordering::Relaxed) {
            return answer_while_listing(connection, &id, kind);
        }
        return connection.refuse(&id, &format!("The client does not support `{method}`."));
    }
    ask(connection, id, InputRequest { kind, params, key }, call);
}

fn ask(connection: &Arc<Connection>, id: MessageId, question: InputRequest, call: ActiveCall) {
    let withdrawn = CancellationToken::new();
    connection.questions.lock().insert(id.clone(), withdrawn.clone());
    let asked = call.context.back.ask(question);
    let relay = Arc::clone(connection);
    connection.tasks.spawn(async move {
        let answer = tokio::select! {
            answer = asked => Some(answer),
            () = withdrawn.cancelled() => None,
            () = call.finished.cancelled() => None,
            () = relay.closed.cancelled() => None,
        };
        relay.questions.lock().remove(&id);
        match answer {
            Some(Ok(result)) => relay.send(encode::result(&id, &result)),
            Some(Err(error)) => relay.send(encode::error(Some(&id), &error)),
            None => {}
        }
    });
}

/// Returns `true` if the connection was opened to read lists and no session has called through it.
fn is_listing_only(connection: &Connection) -> bool {
    connection.opened_for_lists.load(Ordering::Relaxed) && connection.calling_sessions.lock().is_empty()
}

fn answer_while_listing(connection: &Connection, id: &MessageId, kind: InputRequestKind) {
    if kind == InputRequestKind::Roots {
        let none = Object::default().with("roots", Raw::array([])).raw();
        connection.send(encode::result(id, &none));
    } else {
        connection.refuse(id, "There is no client to ask yet.");
    }
}

/// Refuses a request of a stateless server, which may send none. Over HTTP there is no way to reply.
fn refuse_stateless_request(connection: &Connection, id: &MessageId, method: &str) {
    tracing::debug!(module = &*connection.name, method, "ignoring a question of a server that may not ask");
    if !connection.outbound().is_some_and(Outbound::is_http) {
        connection.refuse(id, &format!("`{method}` is not supported."));
    }
}

/// Returns the call that a message belongs to: the one on whose stream it came, else that of the only session with
/// running calls, else the owner's latest.
pub(super) fn call_of(connection: &Connection, origin: Option<u64>) -> Option<ActiveCall> {
    if let Some(origin) = origin {
        return connection.pending.call(origin);
    }
    connection.pending.sole_caller().or_else(|| {
        let context = connection.latest_call.lock().clone()?;
        Some(ActiveCall { context, finished: CancellationToken::new() })
    })
}

/// Returns `true` if a question outside of any request's stream may be meant for another user of this process.
/// Where the configuration shares one on purpose, the only running call is taken for its origin.
fn may_ask_for_another(connection: &Connection, caller: &Caller) -> bool {
    let shares_until_asked =
        matches!(connection.purpose, ConnectionPurpose::Shared) && connection.starter_capabilities.get().is_some();
    shares_until_asked && connection.calling_sessions.lock().values().any(|subject| *subject != caller.subject)
}

/// The session that a message belongs to, also when none of its calls is running.
pub(super) fn addressee(connection: &Connection, origin: Option<u64>) -> Option<SessionId> {
    if let Some(call) = call_of(connection, origin) {
        return Some(call.context.session.id);
    }
    let calling_sessions = connection.calling_sessions.lock();
    let only = (calling_sessions.len() == 1).then(|| calling_sessions.keys().next().copied()).flatten();
    only.filter(|user| !connection.pending.has_abandoned_calls_of_others(*user))
}

/// Returns the server's name for its question, if it has one.
fn key_of(params: &Raw) -> Option<Box<str>> {
    let meta = params.object()?.get("_meta")?.object()?;
    meta.text(KEY).map(Into::into)
}

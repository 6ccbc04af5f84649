//! Messages that a server initiates. Notifications are handled here, requests to the client in `question`.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use hikite_core::json::{Object, Raw};
use hikite_core::source::SourceEvent;
use hikite_wire::message::{Message, MessageId, split};
use hikite_wire::stateless::META_SUBSCRIPTION;

use crate::outbound::Outbound;

use super::{Connection, ConnectionNotice, ConnectionPurpose, listing, question};

/// Handles one received message. `origin` is the id of our request on whose stream it came, if any.
pub(crate) fn receive(connection: &Arc<Connection>, bytes: &Bytes, origin: Option<u64>) {
    // Servers of 2025-03-26 may send batches.
    if let Some(messages) = split(bytes) {
        return messages.iter().for_each(|message| receive_one(connection, message, origin));
    }
    receive_one(connection, bytes, origin);
}

fn receive_one(connection: &Arc<Connection>, bytes: &Bytes, origin: Option<u64>) {
    match Message::decode(bytes) {
        Ok(Message::Response { id, body }) => {
            // Over HTTP a response arrives on the stream of its own request; any other is unexpected.
            let expected = !connection.outbound().is_some_and(Outbound::is_http);
            let resolved = id.as_number().is_some_and(|id| expected && connection.pending.resolve(id, body));
            if !resolved {
                tracing::debug!(module = &*connection.name, "ignoring a response to no pending request");
            }
        }
        Ok(Message::Notification { method, params }) => {
            notification(connection, &method, params.unwrap_or_else(Raw::empty_object), origin);
        }
        Ok(Message::Request { id, method, params }) => {
            question::receive(connection, id, &method, params.unwrap_or_else(Raw::empty_object), origin);
        }
        Err(error) => {
            tracing::debug!(module = &*connection.name, %error, "ignoring an invalid message");
        }
    }
}

fn notification(connection: &Arc<Connection>, method: &str, params: Raw, origin: Option<u64>) {
    match method {
        "notifications/progress" => progress(connection, &params),
        "notifications/message" => log(connection, params, origin),
        "notifications/tools/list_changed"
        | "notifications/resources/list_changed"
        | "notifications/prompts/list_changed" => match connection.purpose {
            ConnectionPurpose::Lists => connection.lists_changed.store(true, Ordering::Relaxed),
            ConnectionPurpose::Shared | ConnectionPurpose::Owned(_) => listing::on_list_changed(connection, method),
        },
        "notifications/resources/updated" => resource_updated(connection, params),
        "notifications/subscriptions/acknowledged" => connection.listening.acknowledged(&params, origin),
        "notifications/elicitation/complete" => {
            if let Some(session) = question::addressee(connection, origin) {
                (connection.notices)(ConnectionNotice::Event(SourceEvent::ElicitationComplete { session, params }));
            }
        }
        "notifications/cancelled" => {
            let id = params.object().and_then(|params| MessageId::read(params.get("requestId")?.clone()));
            if let Some(id) = id {
                withdrawn(connection, &id);
            }
        }
        _ => tracing::debug!(module = &*connection.name, method, "ignoring an unknown notification"),
    }
}

/// Cancels a question of the server or, on a stateless connection, one of our listen requests.
fn withdrawn(connection: &Connection, id: &MessageId) {
    if let Some(question) = connection.questions.lock().remove(id) {
        question.cancel();
    } else if !connection.is_stateless() {
        connection.inboxes.withdraw(id);
    } else if let Some(id) = id.as_number().filter(|id| connection.pending.is_background(*id)) {
        connection.pending.resolve(id, Ok(Raw::empty_object()));
    }
}

fn progress(connection: &Connection, params: &Raw) {
    let Some(mut params) = params.object() else { return };
    let token = params.remove("progressToken").and_then(MessageId::read).and_then(|token| token.as_number());
    if let Some(call) = token.and_then(|token| connection.pending.call(token)) {
        call.context.back.progress(params);
    }
}

fn log(connection: &Connection, params: Raw, origin: Option<u64>) {
    if let Some(call) = question::call_of(connection, origin) {
        call.context.back.log(params);
    } else if let Some(session) = question::addressee(connection, origin) {
        (connection.notices)(ConnectionNotice::Event(SourceEvent::Log { session, params }));
    } else {
        tracing::debug!(module = &*connection.name, "ignoring a log message that belongs to no session");
    }
}

fn resource_updated(connection: &Connection, params: Raw) {
    let Some(members) = params.object() else { return };
    let Some(uri) = members.text("uri") else { return };
    let sessions = connection.subscriptions.sessions_of(&uri);
    if !sessions.is_empty() {
        let params = if connection.is_stateless() { without_subscription(members) } else { params };
        (connection.notices)(ConnectionNotice::Event(SourceEvent::ResourceUpdated { sessions, params }));
    }
}

/// Removes the subscription id, which is internal to our connection.
fn without_subscription(mut params: Object) -> Raw {
    if let Some(mut meta) = params.get("_meta").and_then(Raw::object) {
        meta.remove(META_SUBSCRIPTION);
        params.set("_meta", meta);
    }
    params.raw()
}

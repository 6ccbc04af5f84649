//! Resource subscriptions of sessions. The server is asked once per resource: with `resources/subscribe`, or with a
//! wider listen request if it is stateless.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use hikite_core::caller::SessionId;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;
use parking_lot::Mutex;

use crate::error::UpstreamError;

use super::{Connection, listen};

/// Maximum number of subscriptions per session.
const SUBSCRIPTIONS: usize = 1000;
/// Maximum length of a URI.
const URI_BYTES: usize = 8 * 1024;

fn too_many() -> Error {
    let message = format!(
        "A session can subscribe to at most {SUBSCRIPTIONS} resources, with addresses of at most {URI_BYTES} \
         bytes."
    );
    Error::new(ErrorKind::RateLimit, message).hint("Unsubscribe from some of them first.")
}

/// Resource subscriptions on one connection: the sessions of each URI.
#[derive(Debug, Default)]
pub(crate) struct Subscriptions(Mutex<HashMap<String, HashSet<SessionId>>>);

impl Subscriptions {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.lock().is_empty()
    }

    pub(super) fn uris(&self) -> Vec<String> {
        self.0.lock().keys().cloned().collect()
    }

    /// Returns the sessions subscribed to a resource or to one of its parents.
    pub(super) fn sessions_of(&self, uri: &str) -> Vec<SessionId> {
        let subscriptions = self.0.lock();
        let of_it = |wanted: &str| uri.strip_prefix(wanted).is_some_and(|rest| is_part(wanted, rest));
        let mut sessions: Vec<SessionId> = subscriptions
            .iter()
            .filter(|(wanted, _)| of_it(wanted))
            .flat_map(|(_, sessions)| sessions.iter().copied())
            .collect();
        sessions.sort_unstable();
        sessions.dedup();
        sessions
    }

    /// Adds a subscription. Returns `true` if it is the first one for this resource.
    fn add(&self, uri: &str, session: SessionId) -> Result<bool, Error> {
        let mut subscriptions = self.0.lock();
        // Counted per session only if there are many in total.
        if subscriptions.len() >= SUBSCRIPTIONS || uri.len() > URI_BYTES {
            let own = subscriptions.values().filter(|sessions| sessions.contains(&session)).count();
            if own >= SUBSCRIPTIONS || uri.len() > URI_BYTES {
                return Err(too_many());
            }
        }
        let sessions = subscriptions.entry(uri.to_owned()).or_default();
        sessions.insert(session);
        Ok(sessions.len() == 1)
    }

    /// Removes a subscription. Returns `true` if it was the last one for this resource.
    fn remove(&self, uri: &str, session: SessionId) -> bool {
        let mut subscriptions = self.0.lock();
        let Some(sessions) = subscriptions.get_mut(uri) else { return false };
        let was_there = sessions.remove(&session);
        if sessions.is_empty() {
            subscriptions.remove(uri);
            return was_there;
        }
        false
    }

    /// Takes over the subscriptions of the previous connection and returns their URIs.
    fn take_over(&self, before: &Self) -> Vec<String> {
        let subscriptions = std::mem::take(&mut *before.0.lock());
        let uris = subscriptions.keys().cloned().collect();
        *self.0.lock() = subscriptions;
        uris
    }
}

/// Takes over the subscriptions of the previous connection.
pub(crate) fn take_over(connection: &Arc<Connection>, before: &Connection) {
    let uris = connection.subscriptions.take_over(&before.subscriptions);
    if connection.is_stateless() {
        connection.listening.change();
        return;
    }
    for uri in uris {
        connection.request_detached("resources/subscribe", Object::default().with("uri", uri.as_str()));
    }
}

/// Subscribes the session. Only the first subscriber sends a request.
pub(crate) async fn subscribe(
    connection: &Connection,
    params: Object,
    context: CallContext,
) -> Result<Raw, UpstreamError> {
    let uri = params.text("uri").unwrap_or_default();
    let session = context.session.id;
    if !connection.subscriptions.add(&uri, session)? {
        return Ok(Raw::empty_object());
    }
    let unsure = UnsubscribeOnDrop { connection, uri: &uri, session, armed: true };
    let answer = if connection.is_stateless() {
        listen::listen_to(connection, &uri).await
    } else {
        connection.request("resources/subscribe", Some(params), Some(context)).await
    };
    unsure.confirm(answer.is_ok());
    answer
}

/// Unsubscribes the session. Only the last subscriber sends a request.
pub(crate) async fn unsubscribe(
    connection: &Connection,
    params: Object,
    context: CallContext,
) -> Result<Raw, UpstreamError> {
    let uri = params.text("uri").unwrap_or_default();
    if !connection.subscriptions.remove(&uri, context.session.id) {
        return Ok(Raw::empty_object());
    }
    if connection.is_stateless() {
        connection.listening.change();
        return Ok(Raw::empty_object());
    }
    connection.request("resources/unsubscribe", Some(params), Some(context)).await
}

/// Removes all subscriptions of a session that is over.
pub(crate) fn release(connection: &Arc<Connection>, session: SessionId) {
    connection.calling_sessions.lock().remove(&session);
    for uri in connection.subscriptions.uris() {
        if !connection.subscriptions.remove(&uri, session) {
            continue;
        }
        if connection.is_stateless() {
            connection.listening.change();
        } else {
            connection.request_detached("resources/unsubscribe", Object::default().with("uri", uri.as_str()));
        }
    }
}

/// Returns `true` if `rest` after a URI names the same resource or one below it.
fn is_part(uri: &str, rest: &str) -> bool {
    rest.is_empty() || rest.starts_with('/') || uri.ends_with('/')
}

/// Removes a subscription on drop unless the server has confirmed it.
struct UnsubscribeOnDrop<'a> {
    connection: &'a Connection,
    uri: &'a str,
    session: SessionId,
    armed: bool,
}

impl UnsubscribeOnDrop<'_> {
    fn confirm(mut self, confirmed: bool) {
        self.armed = !confirmed;
    }
}

impl Drop for UnsubscribeOnDrop<'_> {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        if self.connection.subscriptions.remove(self.uri, self.session) && self.connection.is_stateless() {
            self.connection.listening.change();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_a_resource_lies_below_it() {
        assert!(is_part("file:///a", "") && is_part("file:///a", "/b") && is_part("file:///a/", "b"));
        assert!(!is_part("file:///a", "b"));
    }
}

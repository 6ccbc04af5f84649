//! Resource subscriptions of sessions. The server is asked once per resource: with `resources/subscribe`, or with a
//! wider listen request if it is stateless.

use std::sync::Arc;

use hikite_core::caller::SessionId;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;

use crate::connection::Connection;
use crate::error::UpstreamError;

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

impl Connection {
    /// Takes over the subscriptions of the previous connection.
    pub(crate) fn take_over_subscriptions(self: &Arc<Self>, before: &Self) {
        let subscriptions = std::mem::take(&mut *before.subscriptions.lock());
        let uris: Vec<String> = subscriptions.keys().cloned().collect();
        *self.subscriptions.lock() = subscriptions;
        if self.is_stateless() {
            self.listening.change();
            return;
        }
        for uri in uris {
            self.request_detached("resources/subscribe", Object::default().with("uri", uri.as_str()));
        }
    }

    /// Subscribes the session. Only the first subscriber sends a request.
    pub(crate) async fn subscribe(&self, params: Object, context: CallContext) -> Result<Raw, UpstreamError> {
        let uri = params.text("uri").unwrap_or_default();
        let session = context.session.id;
        let first = {
            let mut subscriptions = self.subscriptions.lock();
            // Counted per session only if there are many in total.
            if subscriptions.len() >= SUBSCRIPTIONS || uri.len() > URI_BYTES {
                let own = subscriptions.values().filter(|sessions| sessions.contains(&session)).count();
                if own >= SUBSCRIPTIONS || uri.len() > URI_BYTES {
                    return Err(too_many().into());
                }
            }
            let sessions = subscriptions.entry(uri.clone()).or_default();
            sessions.insert(session);
            sessions.len() == 1
        };
        if !first {
            return Ok(Raw::empty_object());
        }
        let unsure = UnsubscribeOnDrop { connection: self, uri: &uri, session, armed: true };
        let answer = if self.is_stateless() {
            self.listen_to(&uri).await
        } else {
            self.request("resources/subscribe", Some(params), Some(context)).await
        };
        unsure.confirm(answer.is_ok());
        answer
    }

    /// Unsubscribes the session. Only the last subscriber sends a request.
    pub(crate) async fn unsubscribe(&self, params: Object, context: CallContext) -> Result<Raw, UpstreamError> {
        let uri = params.text("uri").unwrap_or_default();
        if !self.forget_subscription(&uri, context.session.id) {
            return Ok(Raw::empty_object());
        }
        if self.is_stateless() {
            self.listening.change();
            return Ok(Raw::empty_object());
        }
        self.request("resources/unsubscribe", Some(params), Some(context)).await
    }

    /// Removes all subscriptions of a session that is over.
    pub(crate) fn release(self: &Arc<Self>, session: SessionId) {
        self.calling_sessions.lock().remove(&session);
        let uris: Vec<String> = self.subscriptions.lock().keys().cloned().collect();
        for uri in uris {
            if !self.forget_subscription(&uri, session) {
                continue;
            }
            if self.is_stateless() {
                self.listening.change();
            } else {
                self.request_detached("resources/unsubscribe", Object::default().with("uri", uri.as_str()));
            }
        }
    }

    /// Returns the sessions subscribed to a resource or to one of its parents.
    pub(crate) fn subscribers(&self, uri: &str) -> Vec<SessionId> {
        let subscriptions = self.subscriptions.lock();
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

    /// Removes a subscription. Returns `true` if it was the last one for this resource.
    fn forget_subscription(&self, uri: &str, session: SessionId) -> bool {
        let mut subscriptions = self.subscriptions.lock();
        let Some(sessions) = subscriptions.get_mut(uri) else { return false };
        let was_there = sessions.remove(&session);
        if sessions.is_empty() {
            subscriptions.remove(uri);
            return was_there;
        }
        false
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
        if self.connection.forget_subscription(self.uri, self.session) && self.connection.is_stateless() {
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

//! Log level of the sessions, sent to the server.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Session;
use hikite_core::json::Object;
use hikite_core::log_level::LogLevel;

use crate::connection::{Connection, ConnectionPurpose};
use crate::upstream::UpstreamInner;

/// Time for a server to accept a log level before the next request.
const LOG_LEVEL_TIMEOUT: Duration = Duration::from_secs(1);

pub(crate) async fn set_level(upstream: &UpstreamInner, params: &Object, session: &Session) {
    let Some(level) = params.text("level").and_then(|name| LogLevel::parse(&name)) else { return };
    upstream.levels.set(session.id, level);
    let owned = upstream.slots.live_of(session.id);
    for connection in owned.into_iter().chain(upstream.slots.shared.live()) {
        send(upstream, &connection).await;
    }
}

/// Sends the log level of a connection's sessions to the server, and waits for a limited time, so that it applies
/// to the next request.
pub(crate) async fn send(upstream: &UpstreamInner, connection: &Arc<Connection>) {
    let level = match &connection.purpose {
        ConnectionPurpose::Owned(session) => upstream.levels.of(session.id),
        ConnectionPurpose::Shared => upstream.levels.most_verbose(),
        ConnectionPurpose::Lists => None,
    };
    let tells = connection.has_capability("logging") && !connection.is_stateless();
    let Some(level) = level.filter(|_| tells) else { return };
    let sent = connection.request_detached("logging/setLevel", Object::default().with("level", level.name()));
    let _ = tokio::time::timeout(LOG_LEVEL_TIMEOUT, sent).await;
}

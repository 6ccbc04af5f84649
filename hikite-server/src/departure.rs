//! Ends what belongs to those who have left: when users, tokens or grants change, sessions and open streams of those who
//! were locked out, removed or lost their token are ended, not at their next message.

use std::sync::Arc;

use crate::app::App;

/// Follows what changes about people, until we stop.
pub(crate) async fn follow(app: Arc<App>) {
    let mut changes = app.gateway.people().changes();
    while let Some(Ok(())) = app.stopping.run_until_cancelled(changes.changed()).await {
        changes.mark_unchanged();
        app.sessions.end_gone(app.gateway.people());
        app.streams.end_gone(app.gateway.people());
    }
}

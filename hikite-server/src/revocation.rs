//! Ends sessions and open streams as soon as their user is locked out or removed, or their token is revoked.

use std::sync::Arc;

use crate::app::App;

/// Follows changes of users, tokens and grants until shutdown.
pub(crate) async fn follow(app: Arc<App>) {
    let mut changes = app.gateway.people().changes();
    while let Some(Ok(())) = app.stopping.run_until_cancelled(changes.changed()).await {
        changes.mark_unchanged();
        app.sessions.end_revoked(app.gateway.people());
        app.streams.end_revoked(app.gateway.people());
    }
}

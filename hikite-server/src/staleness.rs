//! Ends open streams while the store is unreachable: once its data is too old to authenticate anybody, the streams of
//! callers who depend on it end. Their sessions stay, so that clients continue as soon as the store answers.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Caller;

use crate::app::App;

/// Bounds of the check interval.
const INTERVAL_MIN: Duration = Duration::from_millis(50);
const INTERVAL_MAX: Duration = Duration::from_secs(1);

/// Watches the age of the store's data until shutdown.
pub(crate) async fn follow(app: Arc<App>) {
    let mut tick = tokio::time::interval((app.limits.max_staleness / 8).clamp(INTERVAL_MIN, INTERVAL_MAX));
    let mut was_stale = false;
    while app.stopping.run_until_cancelled(tick.tick()).await.is_some() {
        let fault = app.gateway.freshness().fault();
        if fault.is_some() {
            // Repeated in every round, because a stream may have opened just before.
            app.streams.end_where(|caller| !app.is_independent_of_store(caller));
        }
        match &fault {
            Some(reason) if !was_stale => tracing::error!(
                "{}; callers known through it are rejected until it responds\nhint: Check that the database is \
                 running and that this machine can reach it.",
                reason.trim_end_matches('.')
            ),
            None if was_stale => tracing::info!("the store responds again; callers are accepted as before"),
            _ => {}
        }
        was_stale = fault.is_some();
    }
}

impl App {
    /// Returns `true` if a caller is known without the store: the local owner. In a cluster the store also records
    /// which node holds a session, so the result is `false`.
    fn is_independent_of_store(&self, caller: &Caller) -> bool {
        let is_owner = || caller.subject == self.gateway.people().owner().subject;
        self.peers().is_none() && caller.token.is_none() && caller.project.is_none() && is_owner()
    }
}

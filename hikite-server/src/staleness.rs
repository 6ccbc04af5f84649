//! What becomes of open streams while the store is away: once what it said is too old to let anybody in by, the streams of
//! those it spoke of end. Their sessions stay, so that clients go on with them as soon as the store answers again.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Caller;

use crate::app::App;

/// How often it is looked at, at least and at most.
const OFTEN: Duration = Duration::from_millis(50);
const SELDOM: Duration = Duration::from_secs(1);

/// Follows the age of what the store said, until we stop.
pub(crate) async fn follow(app: Arc<App>) {
    let mut tick = tokio::time::interval((app.limits.max_staleness / 8).clamp(OFTEN, SELDOM));
    let mut was_stale = false;
    while app.stopping.run_until_cancelled(tick.tick()).await.is_some() {
        let fault = app.gateway.freshness().fault();
        if fault.is_some() {
            // Also in the next round: one may have been let in in the moment before.
            app.streams.end_where(|caller| !app.goes_on_without_store(caller));
        }
        match &fault {
            Some(reason) if !was_stale => tracing::error!(
                "{reason}; whoever is known by it is refused until it answers\n\
                 hint: see whether the database runs, and whether this machine reaches it"
            ),
            None if was_stale => tracing::info!("the store answers again; everybody is let in as before"),
            _ => {}
        }
        was_stale = fault.is_some();
    }
}

impl App {
    /// True if a caller is known without the store: the owner at this machine. Among several nodes the store also says who
    /// holds a session, so that nobody goes on there.
    fn goes_on_without_store(&self, caller: &Caller) -> bool {
        let is_owner = || caller.subject == self.gateway.people().owner().subject;
        self.neighbours().is_none() && caller.token.is_none() && caller.project.is_none() && is_owner()
    }
}

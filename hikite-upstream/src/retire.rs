//! Retirement of a connection: it leaves its slot, takes no new calls, and closes once its running calls are done. The
//! failure of one call does not affect the others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hikite_core::error::{Error, Kind};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::connection::{Connection, NOT_SENT};

/// Poll interval for conditions without a signal: tasks that expire, and subscriptions that another connection took
/// over.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The server may have changed its revision.
    Doubted,
    /// It declares capabilities that not all callers have. It relays notifications until another connection takes over.
    Outgrown,
    /// Its session is over, and only its tasks continue.
    Unowned,
}

#[derive(Debug, Default)]
pub(crate) struct Leaving {
    /// Calls that may send several requests.
    holds: AtomicUsize,
    why: OnceLock<Why>,
    rested: Notify,
}

/// Keeps a connection open between related requests.
#[derive(Debug)]
pub(crate) struct Hold<'a>(&'a Leaving);

impl Drop for Hold<'_> {
    fn drop(&mut self) {
        self.0.holds.fetch_sub(1, Ordering::AcqRel);
        if self.0.why.get().is_some() {
            self.0.rested.notify_one();
        }
    }
}

impl Connection {
    pub(crate) fn hold(&self) -> Hold<'_> {
        self.leaving.holds.fetch_add(1, Ordering::AcqRel);
        Hold(&self.leaving)
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.leaving.why.get().is_some()
    }

    /// Stops new calls and closes the connection after the last running one. Returns `true` on the first retirement.
    pub(crate) fn retire(self: &Arc<Self>, why: Why) -> bool {
        if self.leaving.why.set(why).is_err() {
            return false;
        }
        if !self.close_if_done(why) {
            let connection = Arc::clone(self);
            self.tasks.spawn(async move {
                let closed = connection.closed.clone();
                closed.run_until_cancelled(connection.see_off(why)).await;
            });
        }
        true
    }

    async fn see_off(&self, why: Why) {
        while !self.close_if_done(why) {
            tokio::select! {
                () = self.leaving.rested.notified() => {}
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    fn close_if_done(&self, why: Why) -> bool {
        let heard = why == Why::Outgrown && !self.subscriptions.lock().is_empty();
        if heard || self.is_needed() || !self.pending.close_if_empty() {
            return false;
        }
        let reason = format!("`{}` is spoken to over another connection", self.name);
        self.close(Error::new(Kind::UpstreamUnavailable, reason).named(NOT_SENT));
        true
    }

    /// Returns `true` if the connection is still in use, even while no request is pending.
    pub(crate) fn is_needed(&self) -> bool {
        self.leaving.holds.load(Ordering::Acquire) > 0 || self.running.any(Instant::now())
    }

    /// Returns `true` if the server is initialized and idle, so that it could be stopped.
    pub(crate) fn is_at_rest(&self) -> bool {
        let unheard = self.subscriptions.lock().is_empty();
        unheard && self.welcome().is_some() && !self.is_needed() && self.pending.is_empty()
    }

    /// Returns `true` if somebody waits for a response, a task or a notification of the server.
    pub(crate) fn works_for_somebody(&self) -> bool {
        self.pending.has_calls() || self.running.any(Instant::now()) || !self.subscriptions.lock().is_empty()
    }

    /// Wakes up the retirement after something ended that it may be waiting for.
    pub(crate) fn rested(&self) {
        if self.is_retired() {
            self.leaving.rested.notify_one();
        }
    }
}

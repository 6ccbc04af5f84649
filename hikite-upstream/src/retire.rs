//! How a connection leaves its slot before it is over: nobody new takes it, what runs on it may end, and then it
//! closes. One call's trouble is so nobody else's.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hikite_core::error::{Error, Kind};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::connection::{Connection, NOT_SENT};

/// How often a retired connection is looked at for what ends without a word: tasks, and subscriptions that
/// another connection took over.
const LOOK: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The server may not be what it was greeted as.
    Doubted,
    /// It declares what not all of its callers can. Its news are told until another connection does.
    Outgrown,
    /// Its session is over, and only what it began goes on.
    Unowned,
}

#[derive(Debug, Default)]
pub(crate) struct Leaving {
    /// Calls that may have more than one thing to say.
    holds: AtomicUsize,
    why: OnceLock<Why>,
    rested: Notify,
}

/// Keeps a connection from being closed between two requests that belong together.
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

    /// Takes no new calls, and closes when the last is done; whether that is news.
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

    /// Whether somebody will come back to it, also while no request waits.
    pub(crate) fn is_needed(&self) -> bool {
        self.leaving.holds.load(Ordering::Acquire) > 0 || self.running.any(Instant::now())
    }

    /// Whether its server has been greeted and has nothing to do, so that it could be stopped.
    pub(crate) fn is_at_rest(&self) -> bool {
        let unheard = self.subscriptions.lock().is_empty();
        unheard && self.welcome().is_some() && !self.is_needed() && self.pending.is_empty()
    }

    /// Whether somebody waits for what its server does: an answer, a task or news.
    pub(crate) fn works_for_somebody(&self) -> bool {
        self.pending.has_calls() || self.running.any(Instant::now()) || !self.subscriptions.lock().is_empty()
    }

    /// Something ended that a retired connection may have waited for.
    pub(crate) fn rested(&self) {
        if self.is_retired() {
            self.leaving.rested.notify_one();
        }
    }
}

//! Retirement of a connection: it leaves its slot, takes no new calls, and closes once its running calls are done. The
//! failure of one call does not affect the others.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::error::{FailureReason, UpstreamError};

use super::Connection;

/// Poll interval for conditions without a signal: tasks that expire, and subscriptions that another connection took
/// over.
const POLL_INTERVAL: Duration = Duration::from_secs(1);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RetireReason {
    /// The server may have changed its revision.
    Invalidated,
    /// It declares capabilities that not all callers have. It relays notifications until another connection takes over.
    CapabilitiesExceeded,
    /// Its session is over, and only its tasks continue.
    SessionEnded,
    /// The shared connection serves its session as well.
    Superseded,
}

#[derive(Debug, Default)]
pub(crate) struct Retirement {
    /// Calls that may send several requests.
    holds: AtomicUsize,
    why: OnceLock<RetireReason>,
    became_idle: Notify,
}

/// Keeps a connection open between related requests.
#[derive(Debug)]
pub(crate) struct ConnectionHold<'a>(&'a Retirement);

impl Drop for ConnectionHold<'_> {
    fn drop(&mut self) {
        self.0.holds.fetch_sub(1, Ordering::AcqRel);
        if self.0.why.get().is_some() {
            self.0.became_idle.notify_one();
        }
    }
}

impl Retirement {
    pub(crate) fn hold(&self) -> ConnectionHold<'_> {
        self.holds.fetch_add(1, Ordering::AcqRel);
        ConnectionHold(self)
    }

    pub(crate) fn is_retired(&self) -> bool {
        self.why.get().is_some()
    }

    /// Wakes up the retirement after something ended that it may be waiting for.
    pub(crate) fn became_idle(&self) {
        if self.is_retired() {
            self.became_idle.notify_one();
        }
    }
}

impl Connection {
    /// Stops new calls and closes the connection after the last running one. Returns `true` on the first retirement.
    pub(crate) fn retire(self: &Arc<Self>, why: RetireReason) -> bool {
        if self.retirement.why.set(why).is_err() {
            return false;
        }
        if !close_if_done(self, why) {
            let connection = Arc::clone(self);
            self.tasks.spawn(async move {
                let closed = connection.closed.clone();
                closed.run_until_cancelled(drain(&connection, why)).await;
            });
        }
        true
    }

    /// Returns `true` if the connection is still in use, even while no request is pending.
    pub(crate) fn is_needed(&self) -> bool {
        self.retirement.holds.load(Ordering::Acquire) > 0 || self.running.any(Instant::now())
    }

    /// Returns `true` if the server is initialized and idle, so that it could be stopped.
    pub(crate) fn is_idle(&self) -> bool {
        let has_no_subscriptions = self.subscriptions.is_empty();
        has_no_subscriptions && self.initialize_result().is_some() && !self.is_needed() && self.pending.is_empty()
    }

    /// Returns `true` if somebody waits for a response, a task or a notification of the server.
    pub(crate) fn is_in_use(&self) -> bool {
        self.pending.has_calls() || self.running.any(Instant::now()) || !self.subscriptions.is_empty()
    }
}

async fn drain(connection: &Connection, why: RetireReason) {
    while !close_if_done(connection, why) {
        tokio::select! {
            () = connection.retirement.became_idle.notified() => {}
            () = tokio::time::sleep(POLL_INTERVAL) => {}
        }
    }
}

fn close_if_done(connection: &Connection, why: RetireReason) -> bool {
    let relays_notifications = why == RetireReason::CapabilitiesExceeded && !connection.subscriptions.is_empty();
    if relays_notifications || connection.is_needed() || !connection.pending.close_if_empty() {
        return false;
    }
    let reason = format!("`{}` has moved to another connection.", connection.name);
    connection.close(UpstreamError::new(FailureReason::NotSent, Error::new(ErrorKind::UpstreamUnavailable, reason)));
    true
}

//! Slot of one connection: empty, or with a live one. Concurrent callers share one connection attempt, and a failed
//! attempt is not repeated during its backoff.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use arc_swap::ArcSwapOption;
use hikite_core::error::{Error, Kind};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::connection::{Connection, Purpose};
use crate::crash::SHORT_LIFE;
use crate::retire::Why;
use crate::spawner::Claim;

#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) purpose: Purpose,
    live: ArcSwapOption<Connection>,
    opening: tokio::sync::Mutex<()>,
    backoff: Mutex<Backoff>,
    /// Number of consecutive connections that broke soon after opening.
    short_lives: AtomicU32,
    /// Reserved process slot for the first process.
    claim: Mutex<Option<Claim>>,
    /// Cancelled when the slot is no longer needed; nothing is opened afterwards.
    ended: CancellationToken,
}

/// Purpose of a connection attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// A call, now or soon.
    Call,
    /// First lists, which have their own backoff: a concurrent call must not be delayed by it.
    Lists,
}

/// Short-lived connections that are tolerated before backoff applies.
const SHORT_LIVES: u32 = 3;

impl Slot {
    pub(crate) fn new(purpose: Purpose, claim: Option<Claim>) -> Self {
        Self {
            purpose,
            claim: Mutex::new(claim),
            live: ArcSwapOption::empty(),
            opening: tokio::sync::Mutex::default(),
            backoff: Mutex::default(),
            short_lives: AtomicU32::new(0),
            ended: CancellationToken::new(),
        }
    }

    pub(crate) fn live(&self) -> Option<Arc<Connection>> {
        self.standing().filter(|connection| !connection.is_retired())
    }

    /// Returns the open connection, even if it is retired.
    pub(crate) fn standing(&self) -> Option<Arc<Connection>> {
        self.live.load_full().filter(|connection| connection.is_open())
    }

    /// Returns the live connection, or opens one.
    pub(crate) async fn get<F>(
        &self,
        name: &str,
        attempt: Attempt,
        open: impl FnOnce() -> F,
    ) -> Result<Arc<Connection>, Error>
    where
        F: Future<Output = Result<Arc<Connection>, Error>>,
    {
        let _turn = self.opening.lock().await;
        if let Some(connection) = self.live() {
            return Ok(connection);
        }
        self.judge_the_last();
        let heeds = attempt == Attempt::Call;
        if let Some((rest, reason)) = self.backoff.lock().pause(Instant::now()).filter(|_| heeds) {
            let seconds = rest.as_secs() + 1;
            let error = Error::new(Kind::UpstreamUnavailable, reason.to_owned())
                .hint(format!("`{name}` is tried again in {seconds} s"))
                .after(rest);
            return Err(Error { unsent: true, ..error });
        }
        let Some(opened) = self.ended.run_until_cancelled(open()).await else {
            return Err(Error::new(Kind::Cancelled, format!("nobody needs `{name}` any more")));
        };
        // The process has its slot by now, or there is none.
        *self.claim.lock() = None;
        match opened {
            Ok(connection) => {
                if self.short_lives.load(Ordering::Relaxed) <= SHORT_LIVES {
                    self.backoff.lock().succeeded();
                }
                if let Some(before) = self.live.swap(Some(Arc::clone(&connection))) {
                    connection.succeed(&before);
                }
                if self.ended.is_cancelled() {
                    connection.close(Error::new(Kind::Cancelled, format!("nobody needs `{name}` any more")));
                }
                Ok(connection)
            }
            // Backoff does not help with a missing login, and a full process table is not the server's failure.
            Err(error) if matches!(error.kind, Kind::AccountRequired | Kind::Overloaded) => {
                Err(Error { unsent: true, ..error })
            }
            Err(error) => {
                if heeds {
                    self.backoff.lock().failed(Instant::now(), error.message.to_string());
                }
                Err(Error { unsent: true, ..error })
            }
        }
    }

    /// Counts the last connection if it broke; a server that keeps crashing gets a growing backoff.
    fn judge_the_last(&self) {
        let Some(last) = self.live.load_full() else { return };
        let Some(lived) = last.broken_after() else { return };
        if lived > SHORT_LIFE {
            self.short_lives.store(0, Ordering::Relaxed);
        } else if self.short_lives.fetch_add(1, Ordering::Relaxed) >= SHORT_LIVES {
            self.backoff.lock().failed(Instant::now(), last.ending().message.into());
        }
    }

    pub(crate) fn stop_if_idle(&self, before: Instant) -> bool {
        self.live().is_some_and(|connection| connection.close_if_idle(before))
    }

    /// Closes the connection and resets the backoff.
    pub(crate) fn begin_anew(&self, reason: Error) {
        if let Some(connection) = self.live.load_full() {
            connection.close(reason);
        }
        self.short_lives.store(0, Ordering::Relaxed);
        self.backoff.lock().succeeded();
    }

    /// Closes the connection and any attempt in progress. A connection with running tasks is retired instead: their
    /// caller may query them from another session.
    pub(crate) fn end(&self, reason: Error) {
        self.ended.cancel();
        let Some(connection) = self.live.load_full() else { return };
        if connection.running.any(Instant::now()) {
            connection.retire(Why::Unowned);
        } else {
            connection.close(reason);
        }
    }
}

//! Slot of one connection: empty, or with a live one. Concurrent callers share one connection attempt, and a failed
//! attempt is not repeated during its backoff.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use arc_swap::ArcSwapOption;
use hikite_core::error::{Error, ErrorKind};
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::backoff::Backoff;
use crate::connection::retire::RetireReason;
use crate::connection::{Connection, ConnectionPurpose, subscription};
use crate::crash::SHORT_LIFE;
use crate::error::UpstreamError;
use crate::spawner::CapacityReservation;

#[derive(Debug)]
pub(crate) struct UpstreamSlot {
    pub(crate) purpose: ConnectionPurpose,
    live: ArcSwapOption<Connection>,
    opening: tokio::sync::Mutex<()>,
    backoff: Mutex<Backoff>,
    /// Number of consecutive connections that broke soon after opening.
    short_lives: AtomicU32,
    /// Reserved process slot for the first process.
    reservation: Mutex<Option<CapacityReservation>>,
    /// Cancelled when the slot is no longer needed; nothing is opened afterwards.
    ended: CancellationToken,
    /// Set if the session's calls use the shared connection instead.
    is_superseded: AtomicBool,
}

/// Purpose of a connection attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AttemptKind {
    /// A call, now or soon.
    Call,
    /// First lists, which have their own backoff: a concurrent call must not be delayed by it.
    Lists,
}

/// Short-lived connections that are tolerated before backoff applies.
const SHORT_LIVES: u32 = 3;

impl UpstreamSlot {
    pub(crate) fn new(purpose: ConnectionPurpose, reservation: Option<CapacityReservation>) -> Self {
        Self {
            purpose,
            reservation: Mutex::new(reservation),
            live: ArcSwapOption::empty(),
            opening: tokio::sync::Mutex::default(),
            backoff: Mutex::default(),
            short_lives: AtomicU32::new(0),
            ended: CancellationToken::new(),
            is_superseded: AtomicBool::new(false),
        }
    }

    pub(crate) fn live(&self) -> Option<Arc<Connection>> {
        self.open_connection().filter(|connection| !connection.retirement.is_retired())
    }

    /// Returns the open connection, even if it is retired.
    pub(crate) fn open_connection(&self) -> Option<Arc<Connection>> {
        self.live.load_full().filter(|connection| connection.is_open())
    }

    /// Returns the live connection, or opens one.
    pub(crate) async fn get<F>(
        &self,
        name: &str,
        attempt: AttemptKind,
        open: impl FnOnce() -> F,
    ) -> Result<Arc<Connection>, UpstreamError>
    where
        F: Future<Output = Result<Arc<Connection>, UpstreamError>>,
    {
        let _turn = self.opening.lock().await;
        if let Some(connection) = self.live() {
            return Ok(connection);
        }
        self.record_last_lifetime();
        let respects_backoff = attempt == AttemptKind::Call;
        if let Some((rest, reason)) = self.backoff.lock().pause(Instant::now()).filter(|_| respects_backoff) {
            let seconds = rest.as_secs() + 1;
            let error = Error::new(ErrorKind::UpstreamUnavailable, reason.to_owned())
                .hint(format!("The next attempt to reach `{name}` is in {seconds} s."))
                .after(rest);
            return Err(UpstreamError::from(error).unsent());
        }
        let Some(opened) = self.ended.run_until_cancelled(open()).await else {
            return Err(Error::new(ErrorKind::Cancelled, format!("`{name}` is no longer needed.")).into());
        };
        // The process has its slot by now, or there is none.
        *self.reservation.lock() = None;
        match opened {
            Ok(connection) => {
                if self.short_lives.load(Ordering::Relaxed) <= SHORT_LIVES {
                    self.backoff.lock().succeeded();
                }
                if let Some(before) = self.live.swap(Some(Arc::clone(&connection))) {
                    subscription::take_over(&connection, &before);
                }
                if self.ended.is_cancelled() {
                    connection.close(Error::new(ErrorKind::Cancelled, format!("`{name}` is no longer needed.")));
                }
                Ok(connection)
            }
            // Backoff does not help with a missing login, and a full process table is not the server's failure.
            Err(error) if error.needs_login() || error.error.kind == ErrorKind::Overloaded => Err(error.unsent()),
            Err(error) => {
                if respects_backoff {
                    self.backoff.lock().failed(Instant::now(), error.error.message.to_string());
                }
                Err(error.unsent())
            }
        }
    }

    /// Counts the last connection if it broke; a server that keeps crashing gets a growing backoff.
    fn record_last_lifetime(&self) {
        let Some(last) = self.live.load_full() else { return };
        let Some(broken_lifetime) = last.take_broken_lifetime() else { return };
        if broken_lifetime > SHORT_LIFE {
            self.short_lives.store(0, Ordering::Relaxed);
        } else if self.short_lives.fetch_add(1, Ordering::Relaxed) >= SHORT_LIVES {
            self.backoff.lock().failed(Instant::now(), last.close_reason().error.message.into());
        }
    }

    /// Ends the slot because the shared connection serves its session as well. Calls on its connection finish.
    pub(crate) fn supersede(&self) {
        self.is_superseded.store(true, Ordering::Release);
        self.ended.cancel();
        if let Some(connection) = self.live.load_full() {
            connection.retire(RetireReason::Superseded);
        }
    }

    /// Returns `true` if calls that wait for this slot are to use the shared one.
    pub(crate) fn is_superseded(&self) -> bool {
        self.is_superseded.load(Ordering::Acquire)
    }

    pub(crate) fn stop_if_idle(&self, before: Instant) -> bool {
        self.live().is_some_and(|connection| connection.close_if_idle(before))
    }

    /// Closes the connection and resets the backoff.
    pub(crate) fn reset(&self, reason: Error) {
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
            connection.retire(RetireReason::SessionEnded);
        } else {
            connection.close(reason);
        }
    }
}

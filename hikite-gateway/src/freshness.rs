//! Age of the data read from the store. Tokens, users, projects and accounts are judged by it. Once it exceeds
//! `store.max_staleness`, this process may have missed a revocation and refuses requests instead of guessing.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use rustix::time::{ClockId, clock_gettime};
use tokio::time::Instant;

use crate::meter::{Metric, Point};

/// Retry delay reported to callers: the store is read twice a second.
const RETRY: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct Freshness {
    /// Origin of the times below.
    begin: Instant,
    max: Duration,
    /// Start of the last complete read, in milliseconds.
    read_at_ms: AtomicU64,
    /// The time the machine had been asleep at `begin`.
    asleep: Duration,
    is_up: AtomicBool,
    failed: AtomicU64,
}

/// The moment at which a read of the store began.
#[derive(Clone, Copy, Debug)]
pub struct ReadStart(Duration);

impl Freshness {
    pub(crate) fn new(max: Duration) -> Self {
        Self {
            begin: Instant::now(),
            max,
            read_at_ms: AtomicU64::new(0),
            asleep: asleep(),
            is_up: AtomicBool::new(true),
            failed: AtomicU64::new(0),
        }
    }

    /// Marks the moment before the store is asked.
    pub fn begin_read(&self) -> ReadStart {
        ReadStart(self.elapsed())
    }

    /// Records a complete read: everything that was revoked before `start` is known.
    pub fn note_read(&self, start: ReadStart) {
        self.read_at_ms.fetch_max(milliseconds(start.0), Ordering::Release);
        self.is_up.store(true, Ordering::Relaxed);
    }

    /// Notes a failed read of the store.
    pub fn note_failure(&self) {
        self.is_up.store(false, Ordering::Relaxed);
        self.failed.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns `true` if the last attempt to read the store succeeded.
    pub fn is_up(&self) -> bool {
        self.is_up.load(Ordering::Relaxed)
    }

    /// The time since the store was last read.
    pub fn age(&self) -> Duration {
        let read_at = Duration::from_millis(self.read_at_ms.load(Ordering::Acquire));
        self.elapsed().saturating_sub(read_at)
    }

    /// The time since `begin`, including the time a suspended machine slept, which `Instant` leaves out on Linux.
    fn elapsed(&self) -> Duration {
        self.begin.elapsed() + asleep().saturating_sub(self.asleep)
    }

    /// Returns `true` if the last read is too old to admit anybody.
    pub fn is_stale(&self) -> bool {
        self.age() > self.max
    }

    pub fn max(&self) -> Duration {
        self.max
    }

    /// Fails if the last read is too old.
    pub fn check(&self) -> Result<(), Error> {
        let age = self.age();
        if age <= self.max {
            return Ok(());
        }
        let error = Error::new(ErrorKind::Overloaded, reason(age));
        Err(error.hint("Try again later or on another node. `/readyz` shows when this node is ready.").after(RETRY))
    }

    /// Returns the reason why the process is not ready, if it is not.
    pub fn fault(&self) -> Option<String> {
        let age = self.age();
        (age > self.max).then(|| reason(age))
    }

    pub(crate) fn metrics(&self) -> [Metric; 3] {
        let is_up = self.is_up() && !self.is_stale();
        [
            Metric::gauge(
                "hikite.store.up",
                "1",
                "1 if the last attempt to read the store succeeded, otherwise 0.",
                Point::single(f64::from(u8::from(is_up))),
            ),
            Metric::gauge(
                "hikite.store.age",
                "s",
                "Time since the store was last read.",
                Point::single(self.age().as_secs_f64()),
            ),
            Metric::counter(
                "hikite.store.reads_failed",
                "{read}",
                "Failed attempts to read the store.",
                Point::single(number(self.failed.load(Ordering::Relaxed))),
            ),
        ]
    }
}

fn reason(age: Duration) -> String {
    let age = age.as_secs();
    format!("The store has not responded for {age} s, so recent revocations are unknown.")
}

/// The time the machine has been asleep since it was booted.
fn asleep() -> Duration {
    let read = |clock| Duration::try_from(clock_gettime(clock)).unwrap_or_default();
    // In this order the difference is never too large: waking callers are not refused for a few nanoseconds.
    let since_boot = read(ClockId::Boottime);
    since_boot.saturating_sub(read(ClockId::Monotonic))
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

#[expect(clippy::cast_precision_loss, reason = "a count that a double holds exactly for centuries")]
fn number(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn what_the_store_said_counts_for_so_long_and_no_longer() {
        let freshness = Freshness::new(Duration::from_secs(30));
        tokio::time::advance(Duration::from_secs(30)).await;
        assert!(freshness.check().is_ok(), "not older than that");
        tokio::time::advance(Duration::from_millis(1)).await;
        let refused = freshness.check().expect_err("too old");
        assert_eq!((refused.kind, refused.retry_after), (ErrorKind::Overloaded, Some(RETRY)));
        assert!(refused.message.contains("30 s") && refused.hint.is_some());
        assert!(freshness.is_stale() && freshness.fault().is_some());
        freshness.note_read(freshness.begin_read());
        assert!(freshness.check().is_ok() && freshness.fault().is_none());
    }

    #[tokio::test(start_paused = true)]
    async fn a_read_counts_from_when_it_began() {
        let freshness = Freshness::new(Duration::from_secs(30));
        let began = freshness.begin_read();
        tokio::time::advance(Duration::from_secs(60)).await;
        freshness.note_read(began);
        assert!(freshness.is_stale(), "it hung for a minute: what was revoked meanwhile is not known");
        freshness.note_read(freshness.begin_read());
        freshness.note_read(began);
        assert!(!freshness.is_stale(), "an older read takes nothing away");
    }
}

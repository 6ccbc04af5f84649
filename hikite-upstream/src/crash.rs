//! Crash tracking for the processes of one server. A server that keeps exiting soon after its start is restarted at
//! most a few times per minute, however often it is called.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// A process that exits within this time counts as crashed.
pub(crate) const SHORT_LIFE: Duration = Duration::from_secs(10);
/// Crashes allowed per `SPAN`. With one process that lives long enough to return its lists, that makes six starts.
const STARTS: usize = 5;
const SPAN: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct CrashTracker {
    /// Start times of crashed processes, oldest first.
    starts: Mutex<VecDeque<Instant>>,
}

impl CrashTracker {
    /// Returns how long no process may be started, or `None` if one may.
    pub(crate) fn cooldown(&self, now: Instant) -> Option<Duration> {
        let mut starts = self.starts.lock();
        while starts.front().is_some_and(|start| now.duration_since(*start) >= SPAN) {
            starts.pop_front();
        }
        // Counted from the newest `STARTS` entries: several processes may have crashed at once.
        let first = starts.len().checked_sub(STARTS).and_then(|index| starts.get(index))?;
        Some((*first + SPAN).duration_since(now))
    }

    /// Records that a process started at `start` exited by itself.
    pub(crate) fn ended(&self, start: Instant, now: Instant) {
        if now.duration_since(start) <= SHORT_LIFE {
            self.starts.lock().push_back(start);
        }
    }

    /// Forgets all crashes after an explicit restart.
    pub(crate) fn forget(&self) {
        self.starts.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lives_are_counted_and_a_minute_later_forgotten() {
        let (crashes, begin) = (CrashTracker::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        for start in 0..4 {
            crashes.ended(at(start), at(start));
            crashes.ended(at(start), at(start + 11));
        }
        assert_eq!(crashes.cooldown(at(20)), None, "four short lives and four long ones");
        crashes.ended(at(20), at(21));
        assert_eq!(crashes.cooldown(at(21)), Some(Duration::from_secs(39)));
        assert_eq!(crashes.cooldown(at(60)), None, "the first is a minute old");
        crashes.ended(at(60), at(60));
        assert_eq!(crashes.cooldown(at(60)), Some(Duration::from_secs(1)), "and the second is not");
        crashes.forget();
        assert_eq!(crashes.cooldown(at(60)), None);
    }
}

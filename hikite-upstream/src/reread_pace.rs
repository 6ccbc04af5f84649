//! Rate limit for rereading announced lists. A server that announces changes all the time is reread less and less
//! often; after a quiet period the next announcement is handled at once.

use std::time::Duration;

use tokio::time::Instant;

/// Delay that merges a burst of announcements into one reread.
pub(crate) const MERGE_DELAY: Duration = Duration::from_millis(50);
/// Maximum pause while each reread finds changes.
const WHILE_CHANGING: Duration = Duration::from_secs(2);
/// Maximum pause while rereads find no changes.
const WHILE_UNCHANGED: Duration = Duration::from_secs(30);
/// Quiet period: this many pauses plus `QUIET_AT_LEAST` without an announcement.
const QUIET: u32 = 4;
const QUIET_AT_LEAST: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct RereadPace {
    pause: Duration,
    last: Option<Instant>,
}

impl Default for RereadPace {
    fn default() -> Self {
        Self { pause: MERGE_DELAY, last: None }
    }
}

impl RereadPace {
    /// Returns the delay before the next reread.
    pub(crate) fn wait(&self, now: Instant) -> Duration {
        let due = self.last.map_or(now, |last| last + self.pause);
        due.saturating_duration_since(now).max(MERGE_DELAY)
    }

    /// Records a reread. `longest` also limits the pause.
    pub(crate) fn read(&mut self, now: Instant, is_new: bool, longest: Duration) {
        let quiet = self.pause * QUIET + QUIET_AT_LEAST;
        let was_quiet = self.last.is_none_or(|last| now.saturating_duration_since(last) > quiet);
        let most = if is_new { WHILE_CHANGING } else { WHILE_UNCHANGED }.min(longest).max(MERGE_DELAY);
        self.pause = if was_quiet { MERGE_DELAY } else { (self.pause * 2).min(most) };
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    /// Returns how often lists are reread while the server announces changes without a break.
    fn readings(within: Duration, is_new: bool) -> usize {
        let (mut pace, begin) = (RereadPace::default(), Instant::now());
        let (mut now, mut count) = (begin, 0);
        loop {
            now += pace.wait(now);
            if now - begin > within {
                return count;
            }
            count += 1;
            pace.read(now, is_new, LONG);
        }
    }

    #[test]
    fn a_flood_is_read_ever_more_seldom() {
        assert!(readings(Duration::from_secs(10), false) <= 10, "{}", readings(Duration::from_secs(10), false));
        let hour = readings(Duration::from_secs(3600), false);
        assert!((100..=140).contains(&hour), "{hour}");
        let minute = readings(Duration::from_secs(60), true);
        assert!((25..=45).contains(&minute), "{minute}");
    }

    #[test]
    fn after_a_while_of_quiet_a_server_is_believed_at_once() {
        let (mut pace, mut now) = (RereadPace::default(), Instant::now());
        for _ in 0..12 {
            now += pace.wait(now);
            pace.read(now, false, LONG);
        }
        assert_eq!(pace.wait(now), WHILE_UNCHANGED);
        now += Duration::from_secs(200);
        assert_eq!(pace.wait(now), MERGE_DELAY);
        pace.read(now, false, LONG);
        assert_eq!(pace.wait(now), MERGE_DELAY);
    }
}

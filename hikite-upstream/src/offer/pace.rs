//! How often lists are read again because their server says so. One that says it all the time is read ever more seldom;
//! after a while of quiet it is believed at once again.

use std::time::Duration;

use tokio::time::Instant;

/// Servers that change several lists say so several times in a row.
pub(crate) const SETTLE: Duration = Duration::from_millis(50);
/// The longest pause while there is something new each time.
const WHILE_CHANGING: Duration = Duration::from_secs(2);
/// The longest pause while there is nothing new.
const IN_VAIN: Duration = Duration::from_secs(30);
/// So many pauses without a word, and this much more, are quiet.
const QUIET: u32 = 4;
const QUIET_AT_LEAST: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Pace {
    pause: Duration,
    last: Option<Instant>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { pause: SETTLE, last: None }
    }
}

impl Pace {
    /// How long to wait before the next reading.
    pub(crate) fn wait(&self, now: Instant) -> Duration {
        let due = self.last.map_or(now, |last| last + self.pause);
        due.saturating_duration_since(now).max(SETTLE)
    }

    /// The lists were read. `longest` bounds the pause as well.
    pub(crate) fn read(&mut self, now: Instant, is_new: bool, longest: Duration) {
        let quiet = self.pause * QUIET + QUIET_AT_LEAST;
        let was_quiet = self.last.is_none_or(|last| now.saturating_duration_since(last) > quiet);
        let most = if is_new { WHILE_CHANGING } else { IN_VAIN }.min(longest).max(SETTLE);
        self.pause = if was_quiet { SETTLE } else { (self.pause * 2).min(most) };
        self.last = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: Duration = Duration::from_secs(600);

    /// How often lists are read within a time in which their server never stops to say that they changed.
    fn readings(within: Duration, is_new: bool) -> usize {
        let (mut pace, begin) = (Pace::default(), Instant::now());
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
        assert!(
            readings(Duration::from_secs(10), false) <= 10,
            "{}",
            readings(Duration::from_secs(10), false)
        );
        let hour = readings(Duration::from_secs(3600), false);
        assert!((100..=140).contains(&hour), "{hour}");
        let minute = readings(Duration::from_secs(60), true);
        assert!((25..=45).contains(&minute), "{minute}");
    }

    #[test]
    fn after_a_while_of_quiet_a_server_is_believed_at_once() {
        let (mut pace, mut now) = (Pace::default(), Instant::now());
        for _ in 0..12 {
            now += pace.wait(now);
            pace.read(now, false, LONG);
        }
        assert_eq!(pace.wait(now), IN_VAIN);
        now += Duration::from_secs(200);
        assert_eq!(pace.wait(now), SETTLE);
        pace.read(now, false, LONG);
        assert_eq!(pace.wait(now), SETTLE);
    }
}

//! The processes of one server that ended by themselves soon after their start. A server that crashes again and again
//! is started so many times in a minute and no more, whoever asks and however often.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// What ends within this time has lived a short life.
pub(crate) const SHORT_LIFE: Duration = Duration::from_secs(10);
/// So many short lives may begin within the span: with one that lives long enough to tell its lists, six starts.
const STARTS: usize = 5;
const SPAN: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Crashes {
    /// When each of them was started, the oldest first.
    starts: Mutex<VecDeque<Instant>>,
}

impl Crashes {
    /// How long nothing is to be started; `None` if it may be.
    pub(crate) fn rest(&self, now: Instant) -> Option<Duration> {
        let mut starts = self.starts.lock();
        while starts.front().is_some_and(|start| now.duration_since(*start) >= SPAN) {
            starts.pop_front();
        }
        // The oldest of the last few: more may have been under way at once.
        let first = starts.len().checked_sub(STARTS).and_then(|index| starts.get(index))?;
        Some((*first + SPAN).duration_since(now))
    }

    /// A process that was started then has ended by itself.
    pub(crate) fn ended(&self, start: Instant, now: Instant) {
        if now.duration_since(start) <= SHORT_LIFE {
            self.starts.lock().push_back(start);
        }
    }

    /// Somebody wants it started anew, whatever was.
    pub(crate) fn forget(&self) {
        self.starts.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_lives_are_counted_and_a_minute_later_forgotten() {
        let (crashes, begin) = (Crashes::default(), Instant::now());
        let at = |seconds| begin + Duration::from_secs(seconds);
        for start in 0..4 {
            crashes.ended(at(start), at(start));
            crashes.ended(at(start), at(start + 11));
        }
        assert_eq!(crashes.rest(at(20)), None, "four short lives and four long ones");
        crashes.ended(at(20), at(21));
        assert_eq!(crashes.rest(at(21)), Some(Duration::from_secs(39)));
        assert_eq!(crashes.rest(at(60)), None, "the first is a minute old");
        crashes.ended(at(60), at(60));
        assert_eq!(crashes.rest(at(60)), Some(Duration::from_secs(1)), "and the second is not");
        crashes.forget();
        assert_eq!(crashes.rest(at(60)), None);
    }
}

//! Rate limiting with a leaky bucket. Pure: the time is an argument, and a bucket stores a single value.

use std::time::Duration;

/// A number of events per time span; all of them may come in one burst.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub count: u32,
    pub per: Duration,
}

impl Rate {
    /// Parses `10/s`, `600/m` or `5000/h`.
    pub fn parse(text: &str) -> Option<Self> {
        let (count, unit) = text.split_once('/')?;
        let count: u32 = count.trim().parse().ok().filter(|count| *count > 0)?;
        let seconds = match unit.trim() {
            "s" | "sec" | "second" => 1,
            "m" | "min" | "minute" => 60,
            "h" | "hour" => 3600,
            _ => return None,
        };
        Some(Self { count, per: Duration::from_secs(seconds) })
    }

    fn spacing(self) -> Duration {
        self.per / self.count
    }
}

/// State of the generic cell rate algorithm (GCRA): the theoretical arrival time of the next event.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bucket {
    due: Duration,
}

/// Remaining capacity of a bucket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateRemaining {
    pub count: u32,
    /// Time until the full burst is available again.
    pub until_full: Duration,
}

impl Bucket {
    /// Takes one event at `now` (time since any fixed start), or returns the time to wait.
    pub fn take(&mut self, rate: Rate, now: Duration) -> Result<(), Duration> {
        let due = self.due.max(now);
        let earliest = (due + rate.spacing()).saturating_sub(rate.per);
        if now < earliest {
            return Err(earliest.saturating_sub(now));
        }
        self.due = due + rate.spacing();
        Ok(())
    }

    /// Returns the capacity at `now`.
    pub fn left(&self, rate: Rate, now: Duration) -> RateRemaining {
        let until_full = self.due.saturating_sub(now);
        let free = rate.per.saturating_sub(until_full).as_nanos();
        let count = free / rate.spacing().as_nanos().max(1);
        RateRemaining { count: u32::try_from(count).unwrap_or(u32::MAX).min(rate.count), until_full }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_one_per_spacing() {
        let rate = Rate::parse("4/s").expect("valid");
        let mut bucket = Bucket::default();
        let start = Duration::from_secs(100);
        for _ in 0..4 {
            assert_eq!(bucket.take(rate, start), Ok(()));
        }
        assert_eq!(bucket.take(rate, start), Err(Duration::from_millis(250)));
        assert_eq!(bucket.take(rate, start + Duration::from_millis(250)), Ok(()));
        assert!(bucket.take(rate, start + Duration::from_millis(250)).is_err());
    }

    #[test]
    fn what_is_left_counts_down_and_comes_back() {
        let rate = Rate::parse("3/s").expect("valid");
        let mut bucket = Bucket::default();
        let start = Duration::from_secs(100);
        assert_eq!(bucket.left(rate, start), RateRemaining { count: 3, until_full: Duration::ZERO });
        for left in [2, 1, 0] {
            assert_eq!(bucket.take(rate, start), Ok(()));
            assert_eq!(bucket.left(rate, start).count, left);
        }
        let refused = bucket.take(rate, start).expect_err("nothing is left");
        assert_eq!(bucket.left(rate, start + refused).count, 1);
        assert_eq!(bucket.left(rate, start + Duration::from_secs(1)).count, 3);
        // A window that the count does not divide evenly.
        let odd = Rate { count: 7, per: Duration::from_secs(60) };
        let mut bucket = Bucket::default();
        assert_eq!(bucket.left(odd, start).count, 7);
        assert_eq!((bucket.take(odd, start), bucket.left(odd, start).count), (Ok(()), 6));
    }

    #[test]
    fn nonsense_is_not_a_rate() {
        for text in ["", "10", "0/s", "x/s", "3/fortnight"] {
            assert_eq!(Rate::parse(text), None, "{text}");
        }
    }
}

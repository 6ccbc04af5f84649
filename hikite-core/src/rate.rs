//! How often something may happen: a leaky bucket that is asked with the time, and holds only one number.

use std::time::Duration;

/// So many in such a span, all at once if need be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    pub count: u32,
    pub per: Duration,
}

impl Rate {
    /// `10/s`, `600/m` or `5000/h`.
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

/// The generic cell rate algorithm: when the next one would be due if they came evenly.
#[derive(Clone, Copy, Debug, Default)]
pub struct Bucket {
    due: Duration,
}

impl Bucket {
    /// Takes one at `now` (time since any fixed start), or says how long to wait.
    pub fn take(&mut self, rate: Rate, now: Duration) -> Result<(), Duration> {
        let due = self.due.max(now);
        let earliest = (due + rate.spacing()).saturating_sub(rate.per);
        if now < earliest {
            return Err(earliest.saturating_sub(now));
        }
        self.due = due + rate.spacing();
        Ok(())
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
    fn nonsense_is_not_a_rate() {
        for text in ["", "10", "0/s", "x/s", "3/fortnight"] {
            assert_eq!(Rate::parse(text), None, "{text}");
        }
    }
}

//! Exponential backoff between connection attempts: doubled after every failure up to a limit, with jitter, reset on
//! success.

use std::time::Duration;

use tokio::time::Instant;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_secs(60);

#[derive(Debug, Default)]
pub(crate) struct Backoff {
    failures: u32,
    until: Option<Instant>,
    reason: String,
}

impl Backoff {
    /// Returns the remaining pause and its reason, or `None` if there is no pause.
    pub(crate) fn pause(&self, now: Instant) -> Option<(Duration, &str)> {
        let rest = self.until?.checked_duration_since(now).filter(|rest| !rest.is_zero())?;
        Some((rest, &self.reason))
    }

    pub(crate) fn failed(&mut self, now: Instant, reason: String) {
        let pause = FIRST.saturating_mul(2_u32.saturating_pow(self.failures)).min(LONGEST);
        self.failures = self.failures.saturating_add(1);
        self.until = Some(now + pause.mul_f64(jitter()));
        self.reason = reason;
    }

    /// Delays the next attempt until at least `pause` from `now`.
    pub(crate) fn wait(&mut self, now: Instant, pause: Duration) {
        self.until = self.until.max(Some(now + pause));
    }

    pub(crate) fn succeeded(&mut self) {
        *self = Self::default();
    }
}

/// Returns a factor between 0.5 and 1, so that servers that failed together do not reconnect together.
fn jitter() -> f64 {
    let random = getrandom::u32().unwrap_or(u32::MAX);
    0.5 + f64::from(random) / f64::from(u32::MAX) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_limit_and_end_with_success() {
        let now = Instant::now();
        let mut backoff = Backoff::default();
        let mut rests = Vec::new();
        for _ in 0..12 {
            backoff.failed(now, "no".into());
            rests.push(backoff.pause(now).expect("a pause").0);
        }
        assert!(rests[0] <= FIRST && rests[0] >= FIRST / 2);
        assert!(rests[3] > rests[0] && rests[11] <= LONGEST && rests[11] >= LONGEST / 2);
        backoff.wait(now, Duration::from_secs(1));
        assert_eq!(backoff.pause(now).map(|(rest, _)| rest), Some(rests[11]), "never sooner");
        backoff.wait(now, LONGEST * 10);
        assert_eq!(backoff.pause(now).map(|(rest, _)| rest), Some(LONGEST * 10));
        backoff.succeeded();
        assert_eq!(backoff.pause(now), None);
    }
}

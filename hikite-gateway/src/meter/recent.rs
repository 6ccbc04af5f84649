//! Recent rates of a module: fine-grained duration counts, sampled periodically off the path of calls. The counts of
//! a period are the difference of two samples.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use hikite_core::json::{Object, Raw};
use parking_lot::Mutex;
use tokio::time::Instant;

/// Number of buckets: four per power of two, from 16 µs to over four minutes.
const STEPS: usize = 96;
/// Exponent of the first bucket's lower bound, in microseconds.
const FIRST: u32 = 4;
/// Period of the calls-per-minute figure.
const MINUTE: Duration = Duration::from_secs(60);
/// Period of the error rate and the quantiles.
const LATELY: Duration = Duration::from_secs(15 * 60);
/// Interval between samples.
const EVERY: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct Recent {
    counts: [AtomicU32; STEPS],
    errors: AtomicU64,
    kept: Mutex<VecDeque<(Instant, Arc<Reading>)>>,
    /// Calls and failures already returned by `take_news`.
    told: Mutex<(u64, u64)>,
}

impl Default for Recent {
    fn default() -> Self {
        let counts = std::array::from_fn(|_| AtomicU32::new(0));
        Self { counts, errors: AtomicU64::new(0), kept: Mutex::default(), told: Mutex::default() }
    }
}

/// Counts at one moment, or between two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reading {
    counts: [u32; STEPS],
    pub(crate) errors: u64,
}

/// Recent call figures of one module, or of all together.
#[derive(Clone, Debug, Default)]
pub(crate) struct Calls {
    last_minute: Reading,
    lately: Reading,
    total: u64,
}

impl Recent {
    pub(crate) fn record(&self, elapsed: Duration, failed: bool) {
        self.counts[step(elapsed)].fetch_add(1, Ordering::Relaxed);
        if failed {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn read(&self) -> Reading {
        let counts = std::array::from_fn(|at| self.counts[at].load(Ordering::Relaxed));
        Reading { counts, errors: self.errors.load(Ordering::Relaxed) }
    }

    /// Stores a sample if the last one is old enough. A sample equal to the last shares its memory.
    pub(crate) fn keep(&self, now: Instant) {
        let mut kept = self.kept.lock();
        if kept.back().is_some_and(|(at, _)| now.saturating_duration_since(*at) < EVERY) {
            return;
        }
        let reading = self.read();
        let same = kept.back().filter(|(_, last)| **last == reading).map(|(_, last)| Arc::clone(last));
        kept.push_back((now, same.unwrap_or_else(|| Arc::new(reading))));
        while kept.get(1).is_some_and(|(at, _)| now.saturating_duration_since(*at) >= LATELY) {
            kept.pop_front();
        }
    }

    /// Returns the calls and failures since the previous `take_news`.
    pub(crate) fn take_news(&self) -> (u64, u64) {
        let now = self.read();
        let mut told = self.told.lock();
        let before = std::mem::replace(&mut *told, (now.calls(), now.errors));
        (told.0.saturating_sub(before.0), told.1.saturating_sub(before.1))
    }

    pub(crate) fn calls(&self, now: Instant) -> Calls {
        let all = self.read();
        let kept = self.kept.lock();
        let since = |span: Duration| {
            let mut before = kept.iter().rev();
            let before = before.find(|(at, _)| now.saturating_duration_since(*at) >= span);
            before.map_or_else(|| all.clone(), |(_, before)| all.minus(before))
        };
        Calls { last_minute: since(MINUTE), lately: since(LATELY), total: all.calls() }
    }
}

impl Default for Reading {
    fn default() -> Self {
        Self { counts: [0; STEPS], errors: 0 }
    }
}

impl Reading {
    pub(crate) fn calls(&self) -> u64 {
        self.counts.iter().map(|count| u64::from(*count)).sum()
    }

    pub(crate) fn minus(&self, before: &Self) -> Self {
        let counts = std::array::from_fn(|at| self.counts[at].wrapping_sub(before.counts[at]));
        Self { counts, errors: self.errors.saturating_sub(before.errors) }
    }

    fn add(&mut self, other: &Self) {
        for (own, more) in self.counts.iter_mut().zip(other.counts) {
            *own = own.saturating_add(more);
        }
        self.errors += other.errors;
    }

    /// Returns the given percentile of the durations in milliseconds; `None` without calls.
    fn quantile_ms(&self, hundredths: u64) -> Option<f64> {
        let all = self.calls();
        let wanted = (all * hundredths).div_ceil(100);
        let mut seen = 0;
        let at = self.counts.iter().position(|count| {
            seen += u64::from(*count);
            *count > 0 && seen >= wanted
        })?;
        Some((middle(at).as_secs_f64() * 1e5).round() / 100.0)
    }

    #[expect(clippy::cast_precision_loss, reason = "a count over 2^53 is beyond reach")]
    fn error_rate(&self) -> f64 {
        let rate = self.errors as f64 / self.calls().max(1) as f64;
        (rate.min(1.0) * 10_000.0).round() / 10_000.0
    }
}

impl Calls {
    pub(crate) fn add(&mut self, other: &Self) {
        self.last_minute.add(&other.last_minute);
        self.lately.add(&other.lately);
        self.total += other.total;
    }

    pub(crate) fn object(&self) -> Object {
        let quantile = |hundredths| Raw::of(&self.lately.quantile_ms(hundredths));
        Object::default()
            .with("perMinute", Raw::of(&self.last_minute.calls()))
            .with("errorRate", Raw::of(&self.lately.error_rate()))
            .with("p50Ms", quantile(50))
            .with("p99Ms", quantile(99))
            .with("total", Raw::of(&self.total))
    }
}

/// Returns the bucket of a duration: its highest bit and the two below it.
fn step(elapsed: Duration) -> usize {
    let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX).max(1 << FIRST);
    let power = micros.ilog2();
    let quarter = (micros >> (power - 2)) & 3;
    let at = usize::try_from(u64::from(power - FIRST) * 4 + quarter).unwrap_or(STEPS);
    at.min(STEPS - 1)
}

/// Returns the midpoint of a bucket.
fn middle(step: usize) -> Duration {
    let (power, quarter) = (step / 4, step as u64 % 4);
    let half = 1_u64 << (power + FIRST as usize - 3);
    Duration::from_micros(half * (2 * (4 + quarter) + 1))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_middle_of_its_step_is_near_every_duration(micros in 16_u32..200_000_000) {
            let told = middle(step(Duration::from_micros(micros.into()))).as_secs_f64() * 1e6;
            let off = (told - f64::from(micros)).abs() / f64::from(micros);
            prop_assert!(off <= 0.126, "{micros} is told as {told}");
        }

        #[test]
        fn a_longer_duration_has_no_earlier_step(a in 0_u64..u64::MAX, b in 0_u64..u64::MAX) {
            let (less, more) = (a.min(b), a.max(b));
            prop_assert!(step(Duration::from_micros(less)) <= step(Duration::from_micros(more)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_long_ago_does_not_count_as_recent() {
        let recent = Recent::default();
        recent.keep(Instant::now());
        for _ in 0..9 {
            recent.record(Duration::from_millis(100), false);
        }
        recent.record(Duration::from_secs(3), true);
        let told = |recent: &Recent| recent.calls(Instant::now()).object().raw().value();
        let now = told(&recent);
        assert_eq!(
            (&now["perMinute"], &now["errorRate"], &now["total"]),
            (&10.into(), &0.1.into(), &10.into())
        );
        let within = |value: &serde_json::Value, near: f64| {
            let value = value.as_f64().expect("a number");
            assert!((value - near).abs() < near / 8.0, "{value} for {near}");
        };
        within(&now["p50Ms"], 100.0);
        within(&now["p99Ms"], 3000.0);
        for _ in 0..120 {
            tokio::time::advance(EVERY).await;
            recent.keep(Instant::now());
        }
        let later = told(&recent);
        assert_eq!((&later["perMinute"], &later["total"]), (&0.into(), &10.into()));
        assert!(later["p50Ms"].is_null() && later["errorRate"] == 0.0, "{later}");
        assert!(recent.kept.lock().len() < 95, "what is old is let go");
    }
}

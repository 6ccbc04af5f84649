//! Recent rates of a module: fine-grained duration counts, sampled periodically off the path of calls. The counts of
//! a period are the difference of two samples.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

/// Number of buckets: four per power of two, from 16 µs to over four minutes.
const BUCKETS: usize = 96;
/// Exponent of the first bucket's lower bound, in microseconds.
const FIRST: u32 = 4;
/// Period of the calls-per-minute figure.
const MINUTE: Duration = Duration::from_secs(60);
/// Period of the error rate and the quantiles.
const LATELY: Duration = Duration::from_secs(15 * 60);
/// Interval between samples.
const SAMPLE_INTERVAL: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub(crate) struct RecentCounts {
    counts: [AtomicU32; BUCKETS],
    errors: AtomicU64,
    samples: Mutex<VecDeque<(Instant, Arc<CallCounts>)>>,
    /// Calls and failures already returned by `take_new_counts`.
    told: Mutex<(u64, u64)>,
}

impl Default for RecentCounts {
    fn default() -> Self {
        let counts = std::array::from_fn(|_| AtomicU32::new(0));
        Self { counts, errors: AtomicU64::new(0), samples: Mutex::default(), told: Mutex::default() }
    }
}

/// Counts at one moment, or between two.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CallCounts {
    counts: [u32; BUCKETS],
    pub(crate) errors: u64,
}

/// Recent call figures of one module, or of all together.
#[derive(Clone, Debug, Default)]
pub(crate) struct RecentCalls {
    last_minute: CallCounts,
    lately: CallCounts,
    total: u64,
}

impl RecentCounts {
    pub(crate) fn record(&self, elapsed: Duration, failed: bool) {
        self.counts[bucket(elapsed)].fetch_add(1, Ordering::Relaxed);
        if failed {
            self.errors.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn read(&self) -> CallCounts {
        let counts = std::array::from_fn(|at| self.counts[at].load(Ordering::Relaxed));
        CallCounts { counts, errors: self.errors.load(Ordering::Relaxed) }
    }

    /// Stores a sample if the last one is old enough. A sample equal to the last shares its memory.
    pub(crate) fn keep(&self, now: Instant) {
        let mut samples = self.samples.lock();
        if samples.back().is_some_and(|(at, _)| now.saturating_duration_since(*at) < SAMPLE_INTERVAL) {
            return;
        }
        let reading = self.read();
        let same = samples.back().filter(|(_, last)| **last == reading).map(|(_, last)| Arc::clone(last));
        samples.push_back((now, same.unwrap_or_else(|| Arc::new(reading))));
        while samples.get(1).is_some_and(|(at, _)| now.saturating_duration_since(*at) >= LATELY) {
            samples.pop_front();
        }
    }

    /// Returns the calls and failures since the previous `take_new_counts`.
    pub(crate) fn take_new_counts(&self) -> (u64, u64) {
        let now = self.read();
        let mut told = self.told.lock();
        let before = std::mem::replace(&mut *told, (now.calls(), now.errors));
        (told.0.saturating_sub(before.0), told.1.saturating_sub(before.1))
    }

    pub(crate) fn calls(&self, now: Instant) -> RecentCalls {
        let all = self.read();
        let samples = self.samples.lock();
        let since = |span: Duration| {
            let mut before = samples.iter().rev();
            let before = before.find(|(at, _)| now.saturating_duration_since(*at) >= span);
            before.map_or_else(|| all.clone(), |(_, before)| all.minus(before))
        };
        RecentCalls { last_minute: since(MINUTE), lately: since(LATELY), total: all.calls() }
    }
}

impl Default for CallCounts {
    fn default() -> Self {
        Self { counts: [0; BUCKETS], errors: 0 }
    }
}

impl CallCounts {
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
        Some((midpoint(at).as_secs_f64() * 1e5).round() / 100.0)
    }

    #[expect(clippy::cast_precision_loss, reason = "a count over 2^53 is beyond reach")]
    fn error_rate(&self) -> f64 {
        let rate = self.errors as f64 / self.calls().max(1) as f64;
        (rate.min(1.0) * 10_000.0).round() / 10_000.0
    }
}

impl RecentCalls {
    pub(crate) fn add(&mut self, other: &Self) {
        self.last_minute.add(&other.last_minute);
        self.lately.add(&other.lately);
        self.total += other.total;
    }

    pub(crate) fn object(&self) -> hikite_api::Calls {
        hikite_api::Calls {
            per_minute: self.last_minute.calls(),
            error_rate: self.lately.error_rate(),
            p50_ms: self.lately.quantile_ms(50),
            p99_ms: self.lately.quantile_ms(99),
            total: self.total,
        }
    }
}

/// Returns the bucket of a duration: its highest bit and the two below it.
fn bucket(elapsed: Duration) -> usize {
    let micros = u64::try_from(elapsed.as_micros()).unwrap_or(u64::MAX).max(1 << FIRST);
    let power = micros.ilog2();
    let quarter = (micros >> (power - 2)) & 3;
    let at = usize::try_from(u64::from(power - FIRST) * 4 + quarter).unwrap_or(BUCKETS);
    at.min(BUCKETS - 1)
}

/// Returns the midpoint of a bucket.
fn midpoint(bucket: usize) -> Duration {
    let (power, quarter) = (bucket / 4, bucket as u64 % 4);
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
            let told = midpoint(bucket(Duration::from_micros(micros.into()))).as_secs_f64() * 1e6;
            let off = (told - f64::from(micros)).abs() / f64::from(micros);
            prop_assert!(off <= 0.126, "{micros} is told as {told}");
        }

        #[test]
        fn a_longer_duration_has_no_earlier_step(a in 0_u64..u64::MAX, b in 0_u64..u64::MAX) {
            let (less, more) = (a.min(b), a.max(b));
            prop_assert!(bucket(Duration::from_micros(less)) <= bucket(Duration::from_micros(more)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_is_long_ago_does_not_count_as_recent() {
        let recent = RecentCounts::default();
        recent.keep(Instant::now());
        for _ in 0..9 {
            recent.record(Duration::from_millis(100), false);
        }
        recent.record(Duration::from_secs(3), true);
        let told = |recent: &RecentCounts| serde_json::json!(recent.calls(Instant::now()).object());
        let now = told(&recent);
        assert_eq!((&now["perMinute"], &now["errorRate"], &now["total"]), (&10.into(), &0.1.into(), &10.into()));
        let within = |value: &serde_json::Value, near: f64| {
            let value = value.as_f64().expect("a number");
            assert!((value - near).abs() < near / 8.0, "{value} for {near}");
        };
        within(&now["p50Ms"], 100.0);
        within(&now["p99Ms"], 3000.0);
        for _ in 0..120 {
            tokio::time::advance(SAMPLE_INTERVAL).await;
            recent.keep(Instant::now());
        }
        let later = told(&recent);
        assert_eq!((&later["perMinute"], &later["total"]), (&0.into(), &10.into()));
        assert!(later["p50Ms"].is_null() && later["errorRate"] == 0.0, "{later}");
        assert!(recent.samples.lock().len() < 95, "what is old is let go");
    }
}

//! Lock-free duration histograms and bounded families of them. Entries are never removed.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Bucket bounds in seconds that the OpenTelemetry conventions advise for MCP operations.
pub const BOUNDS: [f64; 14] = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0];

#[derive(Debug, Default)]
pub(crate) struct Histogram {
    /// Count per bucket, not cumulative; the last bucket is above all bounds.
    counts: [AtomicU64; BOUNDS.len() + 1],
    nanos: AtomicU64,
}

/// A snapshot of a histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DurationCounts {
    pub counts: [u64; BOUNDS.len() + 1],
    pub sum: Duration,
}

impl DurationCounts {
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

impl Histogram {
    pub(crate) fn record(&self, duration: Duration) {
        let seconds = duration.as_secs_f64();
        let at = BOUNDS.partition_point(|bound| *bound < seconds);
        self.counts[at].fetch_add(1, Ordering::Relaxed);
        let nanos = u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX);
        self.nanos.fetch_add(nanos, Ordering::Relaxed);
    }

    pub(crate) fn read(&self) -> DurationCounts {
        let counts = std::array::from_fn(|at| self.counts[at].load(Ordering::Relaxed));
        DurationCounts { counts, sum: Duration::from_nanos(self.nanos.load(Ordering::Relaxed)) }
    }
}

/// An empty slot, or one that a key occupies for good.
type HistogramSlot<K> = OnceLock<Box<(K, Histogram)>>;

/// Histograms by key. A new key takes the next free slot; when all are taken it is not counted.
#[derive(Debug)]
pub(crate) struct HistogramFamily<K> {
    slots: Box<[HistogramSlot<K>]>,
}

impl<K: PartialEq> HistogramFamily<K> {
    pub(crate) fn new(slots: usize) -> Self {
        Self { slots: std::iter::repeat_with(OnceLock::new).take(slots).collect() }
    }

    /// Records a duration under the key that `is` matches and `make` creates; the two must agree. Keys stand in the
    /// order of first use, which keeps the linear search short.
    pub(crate) fn record(&self, duration: Duration, is: impl Fn(&K) -> bool, make: impl Fn() -> K) {
        for slot in &self.slots {
            let (key, histogram) = &**slot.get_or_init(|| Box::new((make(), Histogram::default())));
            if is(key) {
                return histogram.record(duration);
            }
        }
    }

    pub(crate) fn read(&self) -> impl Iterator<Item = (&K, DurationCounts)> {
        let known = self.slots.iter().map_while(OnceLock::get);
        known.map(|known| (&known.0, known.1.read()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_duration_counts_where_it_belongs() {
        let histogram = Histogram::default();
        for ms in [0, 10, 11, 300_000, 300_001] {
            histogram.record(Duration::from_millis(ms));
        }
        let read = histogram.read();
        assert_eq!((read.counts[0], read.counts[1], read.counts[13], read.counts[14]), (2, 1, 1, 1));
        assert_eq!((read.count(), read.sum), (5, Duration::from_millis(600_022)));
    }

    #[test]
    fn many_at_once_lose_nothing_and_make_no_key_twice() {
        let family: HistogramFamily<u8> = HistogramFamily::new(4);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for n in 0..400_u32 {
                        let key = (n % 4) as u8;
                        family.record(Duration::from_millis(1), |known| *known == key, || key);
                    }
                });
            }
        });
        let mut read: Vec<(u8, u64)> = family.read().map(|(key, durations)| (*key, durations.count())).collect();
        read.sort_unstable();
        assert_eq!(read, [(0, 400), (1, 400), (2, 400), (3, 400)]);
        family.record(Duration::ZERO, |known| *known == 9, || 9);
        assert_eq!(family.read().count(), 4, "the family is bounded");
    }
}

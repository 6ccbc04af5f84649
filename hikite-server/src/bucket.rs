//! Token buckets by key, with a bound on how many are held in memory.

use std::collections::HashMap;
use std::hash::Hash;
use std::time::Duration;

use hikite_core::rate::{Bucket, Rate, RateRemaining};
use parking_lot::Mutex;

/// Beyond this number the fullest buckets are dropped.
const BUCKETS_MAX: usize = 10_000;

#[derive(Debug)]
pub(crate) struct Buckets<K>(Mutex<HashMap<K, Bucket>>);

impl<K> Default for Buckets<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Clone + Eq + Hash> Buckets<K> {
    /// Takes one token, or returns how long to wait; also returns what is left.
    pub(crate) fn take(&self, who: &K, rate: Rate, now: Duration) -> (Result<(), Duration>, RateRemaining) {
        let mut buckets = self.0.lock();
        if buckets.len() >= BUCKETS_MAX && !buckets.contains_key(who) {
            evict(&mut buckets, rate, now);
        }
        let bucket = buckets.entry(who.clone()).or_default();
        (bucket.take(rate, now), bucket.left(rate, now))
    }

    /// Checks for a token without taking one.
    pub(crate) fn look(&self, who: &K, rate: Rate, now: Duration) -> Result<(), Duration> {
        let bucket = self.0.lock().get(who).copied();
        bucket.map_or(Ok(()), |mut copy| copy.take(rate, now))
    }
}

/// Drops all full buckets, or else the one that is nearest to being full.
fn evict<K: Clone + Eq + Hash>(buckets: &mut HashMap<K, Bucket>, rate: Rate, now: Duration) {
    let wait = |bucket: &Bucket| bucket.left(rate, now).until_full;
    buckets.retain(|_, bucket| wait(bucket) > Duration::ZERO);
    if buckets.len() >= BUCKETS_MAX {
        let nearest = buckets.iter().min_by_key(|(_, bucket)| wait(bucket)).map(|(who, _)| who.clone());
        nearest.map(|who| buckets.remove(&who));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate { count: 2, per: Duration::from_secs(60) };
    const START: Duration = Duration::from_secs(1000);

    #[test]
    fn each_has_a_bucket_of_its_own() {
        let buckets = Buckets::default();
        for _ in 0..2 {
            assert_eq!(buckets.take(&"a", RATE, START).0, Ok(()));
        }
        let (refused, left) = buckets.take(&"a", RATE, START);
        assert_eq!((refused, left.count), (Err(Duration::from_secs(30)), 0));
        assert_eq!(buckets.take(&"b", RATE, START).1.count, 1);
    }

    #[test]
    fn to_look_is_not_to_take() {
        let buckets = Buckets::default();
        for _ in 0..5 {
            assert_eq!(buckets.look(&"a", RATE, START), Ok(()));
        }
        for _ in 0..2 {
            assert_eq!(buckets.take(&"a", RATE, START).0, Ok(()));
        }
        assert_eq!(buckets.look(&"a", RATE, START), Err(Duration::from_secs(30)));
    }

    #[test]
    fn the_table_has_an_end_and_keeps_who_has_least_left() {
        let buckets = Buckets::default();
        for _ in 0..2 {
            assert!(buckets.take(&usize::MAX, RATE, START).0.is_ok());
        }
        for number in 0..BUCKETS_MAX + 100 {
            assert!(buckets.take(&number, RATE, START).0.is_ok());
        }
        assert!(buckets.0.lock().len() <= BUCKETS_MAX);
        assert!(buckets.take(&usize::MAX, RATE, START).0.is_err(), "it was not forgotten");
        let later = START + Duration::from_secs(60);
        assert!(buckets.take(&(usize::MAX - 1), RATE, later).0.is_ok());
        assert_eq!(buckets.0.lock().len(), 1, "all others could start afresh");
    }
}

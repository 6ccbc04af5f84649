//! Limit on concurrent process starts: too many at once would slow each other down until none is ready in time. The
//! server with the most waiting requests is next; among equals, the first in the queue.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// Minimum for the default limit.
const STARTS_MIN: usize = 4;

#[derive(Debug)]
pub(crate) struct StartLimiter {
    most: usize,
    queue: Mutex<StartQueue>,
}

#[derive(Debug, Default)]
struct StartQueue {
    taken: usize,
    waiting: Vec<QueuedStart>,
}

#[derive(Debug)]
struct QueuedStart {
    /// Number of requests that wait for this start; it may change while queued.
    demand: Arc<AtomicUsize>,
    go: oneshot::Sender<StartPermit>,
}

/// Permit for one start. Dropping it lets the next one begin.
#[derive(Debug)]
pub(crate) struct StartPermit(Option<Arc<StartLimiter>>);

impl Drop for StartPermit {
    fn drop(&mut self) {
        if let Some(start_limiter) = self.0.take() {
            start_limiter.release();
        }
    }
}

impl StartLimiter {
    /// Creates the limit. Zero means twice the processors.
    pub(crate) fn new(most: usize) -> Arc<Self> {
        let most = if most == 0 { default_limit() } else { most };
        Arc::new(Self { most, queue: Mutex::default() })
    }

    /// Waits for a permit.
    pub(crate) async fn take(self: &Arc<Self>, demand: &Arc<AtomicUsize>) -> StartPermit {
        let start_permit = {
            let mut queue = self.queue.lock();
            if queue.taken < self.most {
                queue.taken += 1;
                return StartPermit(Some(Arc::clone(self)));
            }
            let (go, start_permit) = oneshot::channel();
            queue.waiting.push(QueuedStart { demand: Arc::clone(demand), go });
            start_permit
        };
        // The sender lives as long as the queue.
        start_permit.await.unwrap_or(StartPermit(None))
    }

    /// Hands a released permit to the next waiting start.
    fn release(self: &Arc<Self>) {
        let mut queue = self.queue.lock();
        while let Some(next) = queue.next() {
            match next.go.send(StartPermit(Some(Arc::clone(self)))) {
                Ok(()) => return,
                // The receiver is gone; the returned permit must not be released again.
                Err(mut start_permit) => start_permit.0 = None,
            }
        }
        queue.taken -= 1;
    }
}

impl StartQueue {
    fn next(&mut self) -> Option<QueuedStart> {
        let demand = |waiting: &QueuedStart| waiting.demand.load(Ordering::Relaxed);
        // Among equal demands `min_by_key` returns the first.
        let at = (0..self.waiting.len()).min_by_key(|at| std::cmp::Reverse(demand(&self.waiting[*at])))?;
        Some(self.waiting.remove(at))
    }
}

fn default_limit() -> usize {
    let processors = std::thread::available_parallelism().map_or(1, NonZeroUsize::get);
    processors.saturating_mul(2).max(STARTS_MIN)
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use futures_util::FutureExt;

    use super::*;

    fn demand(count: usize) -> Arc<AtomicUsize> {
        Arc::new(AtomicUsize::new(count))
    }

    #[tokio::test]
    async fn whoever_is_waited_for_most_is_next() {
        let start_limiter = StartLimiter::new(1);
        let first = start_limiter.take(&demand(0)).await;
        let (low, high, risen) = (demand(0), demand(2), demand(0));
        let (mut a, mut b, mut c) =
            (pin!(start_limiter.take(&low)), pin!(start_limiter.take(&high)), pin!(start_limiter.take(&risen)));
        assert!(a.as_mut().now_or_never().is_none());
        assert!(b.as_mut().now_or_never().is_none());
        assert!(c.as_mut().now_or_never().is_none());
        drop(first);
        let second = b.as_mut().now_or_never().expect("the most requests wait for it");
        risen.store(1, Ordering::Relaxed);
        drop(second);
        let third = c.as_mut().now_or_never().expect("somebody began to wait for it in the queue");
        assert!(a.as_mut().now_or_never().is_none());
        drop(third);
        assert!(a.as_mut().now_or_never().is_some());
    }

    #[tokio::test]
    async fn a_turn_is_not_lost_with_who_gave_up() {
        let start_limiter = StartLimiter::new(1);
        let first = start_limiter.take(&demand(0)).await;
        let (wanted, other) = (demand(1), demand(0));
        let mut gone = Box::pin(start_limiter.take(&wanted));
        let mut stays = pin!(start_limiter.take(&other));
        assert!(gone.as_mut().now_or_never().is_none() && stays.as_mut().now_or_never().is_none());
        drop(first);
        // It holds the permit by now and is dropped before it was polled.
        drop(gone);
        let start_permit = stays.as_mut().now_or_never().expect("the turn went on");
        drop(start_permit);
        assert!(start_limiter.take(&other).now_or_never().is_some(), "and came back");
    }

    #[test]
    fn without_a_number_it_goes_by_the_processors() {
        assert!(default_limit() >= STARTS_MIN && StartLimiter::new(0).most == default_limit());
        assert_eq!(StartLimiter::new(3).most, 3);
    }
}

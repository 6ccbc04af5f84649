//! Memory budget of a batch: results that other tasks refer to, outputs, images and other content. Held bytes count
//! until they are dropped.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hikite_core::error::{Error, ErrorKind};
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};

/// The bytes that are left.
#[derive(Clone, Debug)]
pub(super) struct MemoryBudget(Arc<AtomicUsize>);

/// A reservation of bytes, returned on drop.
#[derive(Debug)]
pub(super) struct Reservation {
    budget: MemoryBudget,
    bytes: usize,
}

impl MemoryBudget {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    pub(super) fn hold(&self, bytes: usize) -> Result<Reservation, Error> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(bytes));
        taken.map_err(|_| too_much())?;
        Ok(Reservation { budget: self.clone(), bytes })
    }
}

/// Adaptive concurrency limit. Starts low, because result sizes are unknown; then allows as many calls as the remaining
/// budget can hold if each result were as large as the largest so far.
#[derive(Debug)]
pub(super) struct ConcurrencyLimit {
    permits: Semaphore,
    /// Number of permits in existence, and the largest result so far.
    state: Mutex<(usize, usize)>,
    most: usize,
}

/// Calls that start before the first result is known.
const INITIAL_CONCURRENCY: usize = 32;

impl ConcurrencyLimit {
    pub(super) fn new(most: usize) -> Self {
        let first = most.min(INITIAL_CONCURRENCY);
        Self { permits: Semaphore::new(first), state: Mutex::new((first, 0)), most }
    }

    /// Waits for a permit for one call.
    pub(super) async fn acquire(&self) -> Option<SemaphorePermit<'_>> {
        self.permits.acquire().await.ok()
    }

    /// Adjusts the limit after a result of the given size.
    pub(super) fn adjust(&self, bytes: usize, budget: &MemoryBudget) {
        let mut state = self.state.lock();
        let (permits, largest) = &mut *state;
        *largest = bytes.max(*largest);
        let fit = (budget.0.load(Ordering::Relaxed) / (*largest).max(1)).clamp(1, self.most);
        if fit > *permits {
            self.permits.add_permits(fit - *permits);
            *permits = fit;
        } else {
            // Permits in use are removed by a later call of this, once they are free.
            *permits -= self.permits.forget_permits(*permits - fit);
        }
    }
}

impl Reservation {
    /// Changes the size of the reservation.
    pub(super) fn resize(&mut self, bytes: usize) -> Result<(), Error> {
        if let Some(more) = bytes.checked_sub(self.bytes) {
            // Merges the extra bytes into this reservation.
            self.budget.hold(more)?.bytes = 0;
        } else {
            self.budget.0.fetch_add(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.budget.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

fn too_much() -> Error {
    Error::new(ErrorKind::PayloadTooLarge, "The results of this batch are too large to be held together.").hint(
        "Select a part of them with `select`, or send several batches. The limit is `limits.answer_bytes`; it \
         counts values as they are held in memory, which is several times their size as text.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn calls_run_as_wide_as_their_results_allow() {
        let (pace, budget) = (ConcurrencyLimit::new(100), MemoryBudget::new(1000));
        assert_eq!(pace.permits.available_permits(), INITIAL_CONCURRENCY);
        pace.adjust(1, &budget);
        assert_eq!(pace.permits.available_permits(), 100, "small ones");
        pace.adjust(250, &budget);
        assert_eq!(pace.permits.available_permits(), 4);
        let held = budget.hold(900).expect("room");
        let running = pace.acquire().await;
        pace.adjust(1, &budget);
        assert_eq!(pace.permits.available_permits(), 0, "one runs, and no other is begun");
        drop((held, running));
        pace.adjust(1, &budget);
        assert_eq!(pace.permits.available_permits(), 4, "the largest so far is what counts");
        assert_eq!(ConcurrencyLimit::new(3).permits.available_permits(), 3);
    }

    #[test]
    fn what_is_let_go_is_room_again() {
        let budget = MemoryBudget::new(100);
        let mut one = budget.hold(60).expect("room");
        assert!(budget.hold(41).is_err());
        assert!(one.resize(101).is_err());
        one.resize(100).expect("room");
        assert!(budget.hold(1).is_err());
        one.resize(10).expect("less");
        let other = budget.hold(90).expect("room");
        drop((one, other));
        assert_eq!(budget.0.load(Ordering::Relaxed), 100);
    }
}

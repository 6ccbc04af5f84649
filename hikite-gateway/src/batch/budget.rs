//! The bytes that a batch may hold: results that others refer to, outputs, pictures and other content. Whatever is held
//! is counted until it is let go.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hikite_core::error::{Error, Kind};

/// Room that is left.
#[derive(Clone, Debug)]
pub(super) struct Budget(Arc<AtomicUsize>);

/// Bytes that are held, until this is dropped.
#[derive(Debug)]
pub(super) struct Hold {
    budget: Budget,
    bytes: usize,
}

impl Budget {
    pub(super) fn new(bytes: usize) -> Self {
        Self(Arc::new(AtomicUsize::new(bytes)))
    }

    pub(super) fn hold(&self, bytes: usize) -> Result<Hold, Error> {
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |room| room.checked_sub(bytes));
        taken.map_err(|_| too_much())?;
        Ok(Hold { budget: self.clone(), bytes })
    }
}

impl Hold {
    /// From now on it is so many bytes.
    pub(super) fn resize(&mut self, bytes: usize) -> Result<(), Error> {
        if let Some(more) = bytes.checked_sub(self.bytes) {
            // Both are one from now on.
            self.budget.hold(more)?.bytes = 0;
        } else {
            self.budget.0.fetch_add(self.bytes - bytes, Ordering::Relaxed);
        }
        self.bytes = bytes;
        Ok(())
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        self.budget.0.fetch_add(self.bytes, Ordering::Relaxed);
    }
}

fn too_much() -> Error {
    Error::new(Kind::PayloadTooLarge, "the results of this batch are too large to be kept together").hint(
        "take only a part of them with `select`, or make several batches; `limits.answer_bytes` is the limit",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_let_go_is_room_again() {
        let budget = Budget::new(100);
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

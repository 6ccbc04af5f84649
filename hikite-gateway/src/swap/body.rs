//! The swap, generic over the primitives that the surrounding module names.

use std::sync::Arc;

use super::parts::{Mutex, Shown};

/// A published value and the state that it is derived from (`Kept`).
pub(crate) struct Swap<Kept, Value> {
    kept: Mutex<Kept>,
    shown: Shown<Value>,
}

impl<Kept, Value> Swap<Kept, Value> {
    pub(crate) fn new(kept: Kept, value: Value) -> Self {
        Self { kept: Mutex::new(kept), shown: Shown::from_pointee(value) }
    }

    /// Returns the current value.
    pub(crate) fn load(&self) -> Arc<Value> {
        self.shown.load_full()
    }

    /// Accesses the state without publishing a new value.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Kept) -> T) -> T {
        look(&mut self.kept.lock())
    }

    /// Changes the state and publishes the derived value in one step, then calls `then` with the old and new values
    /// while no other change can intervene.
    pub(crate) fn replace<T>(
        &self,
        change: impl FnOnce(&mut Kept, &Value) -> Value,
        then: impl FnOnce(&Arc<Value>, &Arc<Value>) -> T,
    ) -> T {
        let mut kept = self.kept.lock();
        let before = self.shown.load_full();
        let after = Arc::new(change(&mut kept, &before));
        self.shown.store(Arc::clone(&after));
        then(&before, &after)
    }
}

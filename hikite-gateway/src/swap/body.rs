//! The swap, generic over the primitives that the surrounding module names.

use std::sync::Arc;

use super::parts::{Mutex, Published};

/// A published value and the state that it is derived from (`Source`).
pub(crate) struct Swap<Source, Value> {
    source: Mutex<Source>,
    published: Published<Value>,
}

impl<Source, Value> Swap<Source, Value> {
    pub(crate) fn new(source: Source, value: Value) -> Self {
        Self { source: Mutex::new(source), published: Published::from_pointee(value) }
    }

    /// Returns the current value.
    pub(crate) fn load(&self) -> Arc<Value> {
        self.published.load_full()
    }

    /// Accesses the state without publishing a new value.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Source) -> T) -> T {
        look(&mut self.source.lock())
    }

    /// Changes the state and publishes the derived value in one step, then calls `then` with the old and new values
    /// while no other change can intervene.
    pub(crate) fn replace<T>(
        &self,
        change: impl FnOnce(&mut Source, &Value) -> Value,
        then: impl FnOnce(&Arc<Value>, &Arc<Value>) -> T,
    ) -> T {
        let mut source = self.source.lock();
        let before = self.published.load_full();
        let after = Arc::new(change(&mut source, &before));
        self.published.store(Arc::clone(&after));
        then(&before, &after)
    }
}

//! The swap itself, over the parts that the module around it names.

use std::sync::Arc;

use super::parts::{Mutex, Shown};

/// `Kept` is what the shown value is made from.
pub(crate) struct Swap<Kept, Value> {
    kept: Mutex<Kept>,
    shown: Shown<Value>,
}

impl<Kept, Value> Swap<Kept, Value> {
    pub(crate) fn new(kept: Kept, value: Value) -> Self {
        Self { kept: Mutex::new(kept), shown: Shown::from_pointee(value) }
    }

    /// The whole of this moment.
    pub(crate) fn load(&self) -> Arc<Value> {
        self.shown.load_full()
    }

    /// Looks at what the value is made from, or changes what the value does not show.
    pub(crate) fn with<T>(&self, look: impl FnOnce(&mut Kept) -> T) -> T {
        look(&mut self.kept.lock())
    }

    /// Changes it and shows what `make` makes of it, as one step. Gives the values before and after, while no
    /// other change can come between.
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

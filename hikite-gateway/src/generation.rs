//! Generations of modules: when a module changes, its cached results become invalid.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hikite_core::catalog::{Catalog, Module};

use crate::cache::Cache;
use crate::snapshot::Snapshot;

#[derive(Debug, Default)]
pub(crate) struct Generations {
    last: AtomicU64,
}

impl Generations {
    /// Assigns generations to the modules of a new catalog. A module with another offer or other rules gets a new one.
    pub(crate) fn follow(&self, before: &Snapshot, catalog: &Catalog, cache: &Cache) -> HashMap<Arc<str>, u64> {
        let mut generations = HashMap::new();
        for module in &catalog.modules {
            let same = before.catalog.module(&module.name).is_some_and(|old| is_same(old, module));
            let known = before.generation(&module.name).filter(|_| same);
            let generation = known.unwrap_or_else(|| {
                let next = self.next();
                cache.invalidate_module(&module.name, next);
                next
            });
            generations.insert(Arc::clone(&module.name), generation);
        }
        for gone in before.catalog.modules.iter().filter(|old| !generations.contains_key(&old.name)) {
            cache.invalidate_module(&gone.name, u64::MAX);
        }
        generations
    }

    /// Returns a new generation.
    pub(crate) fn next(&self) -> u64 {
        self.last.fetch_add(1, Ordering::Relaxed) + 1
    }
}

fn is_same(old: &Module, new: &Module) -> bool {
    let has_same_items = match (&old.listing, &new.listing) {
        (Some(old), Some(new)) => Arc::ptr_eq(old, new) || old.has_same_items(new),
        (old, new) => old.is_none() && new.is_none(),
    };
    let same_rules =
        (old.policy, old.resources) == (new.policy, new.resources) && Arc::ptr_eq(&old.selection, &new.selection);
    has_same_items && same_rules && Arc::ptr_eq(&old.source, &new.source)
}

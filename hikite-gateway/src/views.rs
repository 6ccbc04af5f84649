//! The views of one catalog that somebody has looked at: built when they are first used, shared by all whose permissions
//! are the same, and dropped when they have not been used for a while or there are too many of them.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hikite_core::catalog::Catalog;
use hikite_core::permission::{Fingerprint, Permissions};
use hikite_core::view::View;
use parking_lot::RwLock;

use crate::clock::now_ms;
use crate::shown::Shown;

/// A view that nobody has used for so long is dropped.
const IDLE_MS: u64 = 15 * 60 * 1000;

/// Everything that a view is narrowed by. Zeros stand where nothing is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ViewKey {
    pub(crate) project: Fingerprint,
    pub(crate) user: Fingerprint,
    pub(crate) accounts: Fingerprint,
}

#[derive(Debug)]
pub(crate) struct Views {
    catalog: Arc<Catalog>,
    built: RwLock<HashMap<ViewKey, Arc<Shown>>>,
    /// What they may hold, all together.
    bytes_max: usize,
    count: Arc<BuiltCount>,
    /// Whether they are of single sessions, and not of everybody.
    is_apart: bool,
}

/// How many views were ever built.
#[derive(Debug, Default)]
pub(crate) struct BuiltCount(AtomicU64);

impl BuiltCount {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Views {
    pub(crate) fn new(catalog: Arc<Catalog>, bytes_max: usize, count: Arc<BuiltCount>) -> Self {
        Self { catalog, built: RwLock::default(), bytes_max, count, is_apart: false }
    }

    /// Those of another catalog. Views that none of the modules between can be part of are still what they were.
    pub(crate) fn of(&self, catalog: Arc<Catalog>, changed: Option<&[Arc<str>]>) -> Self {
        let next = Self::new(catalog, self.bytes_max, Arc::clone(&self.count));
        if let Some(changed) = changed {
            let built = self.built.read();
            // One that shows everything may not do so any more.
            let is_same = |shown: &Shown| !shown.view.is_whole() && shown.view.is_apart_from(changed);
            let same = built.iter().filter(|(_, shown)| is_same(shown));
            *next.built.write() = same.map(|(key, shown)| (*key, Arc::clone(shown))).collect();
        }
        next
    }

    /// The same, known to be of another catalog than the one that everybody shares.
    pub(crate) fn apart(self) -> Self {
        Self { is_apart: true, ..self }
    }

    pub(crate) fn get(&self, key: &ViewKey) -> Option<Arc<Shown>> {
        self.built.read().get(key).cloned()
    }

    pub(crate) fn get_or_build(
        &self,
        key: ViewKey,
        permissions: impl FnOnce() -> Arc<Permissions>,
    ) -> Arc<Shown> {
        let now = now_ms();
        if let Some(shown) = self.built.read().get(&key) {
            shown.touch(now);
            return Arc::clone(shown);
        }
        // Outside the lock: two who come at once may both build it, and one of them is kept.
        let view = View::narrowed(&self.catalog, &permissions());
        let shown = Arc::new(Shown::new(if self.is_apart { view.apart() } else { view }, now));
        self.count.0.fetch_add(1, Ordering::Relaxed);
        let mut built = self.built.write();
        let shown = Arc::clone(built.entry(key).or_insert(shown));
        self.make_room(&mut built, &key);
        shown
    }

    /// Drops what nobody has used for a while.
    pub(crate) fn drop_idle(&self, now: u64) {
        let is_idle = |shown: &Arc<Shown>| shown.used_at().saturating_add(IDLE_MS) < now;
        if self.built.read().values().any(is_idle) {
            self.built.write().retain(|_, shown| !is_idle(shown));
        }
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.built.read().len()
    }

    /// The least recently used go, but for the newest, until a tenth is free: not one for one with every new view.
    fn make_room(&self, built: &mut HashMap<ViewKey, Arc<Shown>>, newest: &ViewKey) {
        let mut bytes: usize = built.values().map(|shown| shown.bytes()).sum();
        if bytes <= self.bytes_max {
            return;
        }
        let mut oldest: Vec<(u64, ViewKey)> = built
            .iter()
            .map(|(key, shown)| (shown.used_at(), *key))
            .filter(|(_, key)| key != newest)
            .collect();
        oldest.sort_unstable_by_key(|(used_at, _)| *used_at);
        for (_, key) in oldest {
            if bytes <= self.bytes_max - self.bytes_max / 10 {
                break;
            }
            bytes -= built.remove(&key).map_or(0, |shown| shown.bytes());
        }
    }
}

//! Cache of a catalog's views: built on first use, shared by callers with equal permissions, and dropped when idle or
//! over the memory limit.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hikite_core::catalog::Catalog;
use hikite_core::permission::{PermissionFingerprint, Permissions};
use hikite_core::view::View;
use parking_lot::RwLock;

use crate::rendered_view::RenderedView;
use hikite_store::clock::now_ms;

/// Idle time after which a view is dropped.
const IDLE_MS: u64 = 15 * 60 * 1000;

/// Fingerprints of everything that restricts a view; zero where nothing does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct ViewKey {
    pub(crate) project: PermissionFingerprint,
    pub(crate) user: PermissionFingerprint,
    pub(crate) accounts: PermissionFingerprint,
}

#[derive(Debug)]
pub(crate) struct ViewCache {
    catalog: Arc<Catalog>,
    built: RwLock<HashMap<ViewKey, Arc<RenderedView>>>,
    /// Memory limit of all views together.
    bytes_max: usize,
    count: Arc<BuiltCount>,
    /// The views belong to single sessions, not to the shared catalog.
    is_session_specific: bool,
}

/// Number of views ever built.
#[derive(Debug, Default)]
pub(crate) struct BuiltCount(AtomicU64);

impl BuiltCount {
    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl ViewCache {
    pub(crate) fn new(catalog: Arc<Catalog>, bytes_max: usize, count: Arc<BuiltCount>) -> Self {
        Self { catalog, built: RwLock::default(), bytes_max, count, is_session_specific: false }
    }

    /// Returns the cache for another catalog. Views that none of the changed modules can be part of are carried over.
    pub(crate) fn of(&self, catalog: Arc<Catalog>, changed: Option<&[Arc<str>]>) -> Self {
        let next = Self::new(catalog, self.bytes_max, Arc::clone(&self.count));
        if let Some(changed) = changed {
            let built = self.built.read();
            // A view of everything may no longer show everything.
            let is_same = |shown: &RenderedView| !shown.view.is_whole() && shown.view.excludes(changed);
            let same = built.iter().filter(|(_, shown)| is_same(shown));
            *next.built.write() = same.map(|(key, shown)| (*key, Arc::clone(shown))).collect();
        }
        next
    }

    /// Marks the views as those of single sessions.
    pub(crate) fn apart(self) -> Self {
        Self { is_session_specific: true, ..self }
    }

    pub(crate) fn get(&self, key: &ViewKey) -> Option<Arc<RenderedView>> {
        self.built.read().get(key).cloned()
    }

    pub(crate) fn get_or_build(
        &self,
        key: ViewKey,
        permissions: impl FnOnce() -> Arc<Permissions>,
    ) -> Arc<RenderedView> {
        let now = now_ms();
        if let Some(shown) = self.built.read().get(&key) {
            shown.touch(now);
            return Arc::clone(shown);
        }
        // Outside the lock: two concurrent callers may both build the view; one of the two is kept.
        let view = View::restricted(&self.catalog, &permissions());
        let shown = Arc::new(RenderedView::new(if self.is_session_specific { view.apart() } else { view }, now));
        self.count.0.fetch_add(1, Ordering::Relaxed);
        let mut built = self.built.write();
        let shown = Arc::clone(built.entry(key).or_insert(shown));
        self.make_room(&mut built, &key);
        shown
    }

    /// Drops views that have not been used for a while.
    pub(crate) fn drop_idle(&self, now: u64) {
        let is_idle = |shown: &Arc<RenderedView>| shown.used_at().saturating_add(IDLE_MS) < now;
        if self.built.read().values().any(is_idle) {
            self.built.write().retain(|_, shown| !is_idle(shown));
        }
    }

    /// Returns the number of cached views.
    pub(crate) fn len(&self) -> usize {
        self.built.read().len()
    }

    /// Evicts the least recently used views, except the newest, until a tenth of the limit is free, so that not every
    /// new view evicts another.
    fn make_room(&self, built: &mut HashMap<ViewKey, Arc<RenderedView>>, newest: &ViewKey) {
        let mut bytes: usize = built.values().map(|shown| shown.bytes()).sum();
        if bytes <= self.bytes_max {
            return;
        }
        let mut oldest: Vec<(u64, ViewKey)> =
            built.iter().map(|(key, shown)| (shown.used_at(), *key)).filter(|(_, key)| key != newest).collect();
        oldest.sort_unstable_by_key(|(used_at, _)| *used_at);
        for (_, key) in oldest {
            if bytes <= self.bytes_max - self.bytes_max / 10 {
                break;
            }
            bytes -= built.remove(&key).map_or(0, |shown| shown.bytes());
        }
    }
}

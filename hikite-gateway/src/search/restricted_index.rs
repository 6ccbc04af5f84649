//! Indexes of restricted views, built on a caller's first query and cached.

use std::sync::Arc;

use hikite_core::view::View;
use parking_lot::Mutex;

use super::Search;
use super::catalog_index::CatalogIndex;

/// Maximum number of cached indexes; the oldest is evicted first.
const VIEWS: usize = 32;

#[derive(Default)]
pub(super) struct RestrictedIndexes(Mutex<Vec<RestrictedIndex>>);

struct RestrictedIndex {
    view: View,
    /// Number of vectors in the whole index at build time.
    read: usize,
    ready: Arc<CatalogIndex>,
}

impl Search {
    /// Returns the index for a caller with this view.
    pub(super) async fn ready_for(&self, view: &View, whole: Arc<CatalogIndex>) -> Arc<CatalogIndex> {
        if view.is_whole() {
            return whole;
        }
        if let Some(ready) = self.restricted_index.find(view, &whole) {
            return ready;
        }
        let (restricted_index, base) = (view.clone(), Arc::clone(&whole));
        let made = self.tasks.spawn_blocking(move || Arc::new(base.restricted(&restricted_index))).await;
        match made {
            Ok(ready) => {
                self.restricted_index.keep(view, &whole, &ready);
                ready
            }
            // The whole index ranks slightly differently; the mask still hides what the caller may not see.
            Err(_) => whole,
        }
    }
}

impl RestrictedIndexes {
    /// Returns the cached index of this view, with the vectors that the whole index has got meanwhile.
    fn find(&self, view: &View, whole: &CatalogIndex) -> Option<Arc<CatalogIndex>> {
        let mut all = self.0.lock();
        let cached = all.iter_mut().find(|cached| std::ptr::eq(cached.view.modules(), view.modules()))?;
        let read = read(whole);
        let knows_both = cached.ready.remote.is_some() == whole.remote.is_some();
        if cached.read != read && !(cached.ready.is_encoded() && knows_both) {
            cached.ready = Arc::new(cached.ready.with_vectors_of(whole));
            cached.read = read;
        }
        Some(Arc::clone(&cached.ready))
    }

    fn keep(&self, view: &View, whole: &CatalogIndex, ready: &Arc<CatalogIndex>) {
        let mut all = self.0.lock();
        if all.len() == VIEWS {
            all.remove(0);
        }
        all.push(RestrictedIndex { view: view.clone(), read: read(whole), ready: Arc::clone(ready) });
    }
}

fn read(whole: &CatalogIndex) -> usize {
    whole.local.encoded() + whole.remote.as_ref().map_or(0, hikite_core::search::SearchIndex::encoded)
}

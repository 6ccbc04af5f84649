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
    /// Returns the cached index of this view if its vectors are complete, or sufficient while others are still being
    /// computed.
    fn find(&self, view: &View, whole: &CatalogIndex) -> Option<Arc<CatalogIndex>> {
        let mut all = self.0.lock();
        let at = all.iter().position(|cached| std::ptr::eq(cached.view.modules(), view.modules()))?;
        let cached = &all[at];
        let read = read(whole);
        let knows_both = cached.ready.remote.is_some() == whole.remote.is_some();
        let is_done = cached.read == read || cached.ready.is_encoded() && knows_both;
        let is_early = cached.read > 0 && read < whole.local.len();
        if is_done || is_early {
            return Some(Arc::clone(&cached.ready));
        }
        all.remove(at);
        None
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

//! Indexes of restricted views, built on a caller's first query and cached.

use std::sync::Arc;

use hikite_core::view::View;
use parking_lot::Mutex;

use super::Search;
use super::ready::Ready;

/// Maximum number of cached indexes; the oldest is evicted first.
const VIEWS: usize = 32;

#[derive(Default)]
pub(super) struct Narrow(Mutex<Vec<Kept>>);

struct Kept {
    view: View,
    /// Number of vectors in the whole index at build time.
    read: usize,
    ready: Arc<Ready>,
}

impl Search {
    /// Returns the index for a caller with this view.
    pub(super) async fn ready_for(&self, view: &View, whole: Arc<Ready>) -> Arc<Ready> {
        if view.is_whole() {
            return whole;
        }
        if let Some(ready) = self.narrow.find(view, &whole) {
            return ready;
        }
        let (narrow, lender) = (view.clone(), Arc::clone(&whole));
        let made = self.tasks.spawn_blocking(move || Arc::new(lender.narrowed(&narrow))).await;
        match made {
            Ok(ready) => {
                self.narrow.keep(view, &whole, &ready);
                ready
            }
            // The whole index ranks slightly differently; the mask still hides what the caller may not see.
            Err(_) => whole,
        }
    }
}

impl Narrow {
    /// Returns the cached index of this view if its vectors are complete, or sufficient while others are still being
    /// computed.
    fn find(&self, view: &View, whole: &Ready) -> Option<Arc<Ready>> {
        let mut all = self.0.lock();
        let at = all.iter().position(|kept| std::ptr::eq(kept.view.modules(), view.modules()))?;
        let kept = &all[at];
        let read = read(whole);
        let knows_both = kept.ready.remote.is_some() == whole.remote.is_some();
        let is_done = kept.read == read || kept.ready.is_read() && knows_both;
        let is_early = kept.read > 0 && read < whole.local.len();
        if is_done || is_early {
            return Some(Arc::clone(&kept.ready));
        }
        all.remove(at);
        None
    }

    fn keep(&self, view: &View, whole: &Ready, ready: &Arc<Ready>) {
        let mut all = self.0.lock();
        if all.len() == VIEWS {
            all.remove(0);
        }
        all.push(Kept { view: view.clone(), read: read(whole), ready: Arc::clone(ready) });
    }
}

fn read(whole: &Ready) -> usize {
    whole.local.encoded() + whole.remote.as_ref().map_or(0, hikite_core::search::Index::encoded)
}

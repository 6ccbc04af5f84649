//! Result cache. It serves only read-only tools and resources that are marked as cacheable, only the caller who
//! received the result, and only while both the configuration and the server allow. Concurrent identical requests share
//! one fetch.

mod cached;
mod key;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_core::limits::Limits;
use moka::future::Cache as Store;
use parking_lot::Mutex;

use cached::{CacheExpiry, CachedResult};
pub(crate) use key::{CacheKey, CacheRequest};

/// The outcome of a shared fetch; empty while it is in flight.
type SharedOutcome = tokio::sync::Mutex<Option<Result<Raw, Error>>>;

#[derive(Debug)]
pub(crate) struct Cache {
    store: Store<CacheKey, Arc<CachedResult>>,
    fetches: Mutex<HashMap<CacheKey, Arc<SharedOutcome>>>,
    is_on: bool,
    /// `true` once anything was cached. Most gateways cache nothing and can skip every invalidation.
    is_used: AtomicBool,
    entry_bytes: usize,
}

/// The outcome of a call, and a flag that is `true` if it came from the cache or another call.
#[derive(Debug)]
pub(crate) struct CacheAnswer {
    pub(crate) outcome: Result<Raw, Error>,
    pub(crate) reused: bool,
}

impl Cache {
    pub(crate) fn new(limits: &Limits) -> Self {
        let store = Store::builder()
            .max_capacity(limits.cache_bytes as u64)
            .weigher(|key: &CacheKey, cached: &Arc<CachedResult>| key.bytes().saturating_add(cached.bytes()))
            .expire_after(CacheExpiry)
            .support_invalidation_closures()
            .build();
        let is_on = limits.cache_bytes > 0;
        let is_used = AtomicBool::new(false);
        Self { store, fetches: Mutex::default(), is_on, is_used, entry_bytes: limits.cache_entry_bytes }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Returns the cached result, else the outcome of an identical call in flight, else the outcome of `call`. Waits
    /// for another call at most `wait`; if that call is dropped or times out, the next waiter calls.
    pub(crate) async fn answer(
        &self,
        cache_request: &CacheRequest,
        wait: Duration,
        call: impl Future<Output = Result<Raw, Error>>,
    ) -> CacheAnswer {
        if let Some(cached) = self.cached(&cache_request.key).await {
            return CacheAnswer { outcome: Ok(cached.reused()), reused: true };
        }
        let fetch = self.join(&cache_request.key);
        let Ok(mut shared_outcome) = tokio::time::timeout(wait, fetch.shared_outcome.lock()).await else {
            return CacheAnswer { outcome: Err(wait_timed_out(&cache_request.key.module)), reused: true };
        };
        if let Some(outcome) = &*shared_outcome {
            let outcome = outcome.clone().map(|result| cached::mark_cached(&result, Duration::ZERO));
            return CacheAnswer { outcome, reused: true };
        }
        // It may have been cached since the first lookup.
        if let Some(cached) = self.cached(&cache_request.key).await {
            return CacheAnswer { outcome: Ok(cached.reused()), reused: true };
        }
        let outcome = call.await;
        if is_shareable(&outcome) {
            *shared_outcome = Some(outcome.clone());
            let cached =
                outcome.as_ref().ok().and_then(|result| CachedResult::new(result, cache_request.ttl, self.entry_bytes));
            if let Some(cached) = cached.filter(|_| fetch.is_current()) {
                self.is_used.store(true, Ordering::Relaxed);
                self.store.insert(cache_request.key.clone(), Arc::new(cached)).await;
            }
            fetch.finish();
        }
        CacheAnswer { outcome, reused: false }
    }

    /// Invalidates everything read from this resource.
    pub(crate) fn invalidate_resource(&self, uri: &str) {
        self.fetches.lock().retain(|key, _| !key.reads(uri));
        if !self.is_used.load(Ordering::Relaxed) {
            return;
        }
        for (key, cached) in &self.store {
            if key.reads(uri) {
                cached.invalidate();
            }
        }
    }

    /// Drops the results of earlier generations of a module. Their keys are never looked up again.
    pub(crate) fn invalidate_module(&self, module: &Arc<str>, generation: u64) {
        if !self.is_used.load(Ordering::Relaxed) {
            return;
        }
        let module = Arc::clone(module);
        // Fails only without support for invalidation closures, which the builder enables.
        let _ = self.store.invalidate_entries_if(move |key, _| key.module == module && key.generation < generation);
    }

    async fn cached(&self, key: &CacheKey) -> Option<Arc<CachedResult>> {
        self.store.get(key).await.filter(|cached| cached.is_fresh())
    }

    fn join<'a>(&'a self, key: &'a CacheKey) -> SharedFetch<'a> {
        let mut fetches = self.fetches.lock();
        let shared_outcome = match fetches.get(key) {
            Some(shared_outcome) => Arc::clone(shared_outcome),
            None => Arc::clone(fetches.entry(key.clone()).or_default()),
        };
        SharedFetch { cache: self, key, shared_outcome }
    }
}

/// Membership in a group of concurrent identical requests.
struct SharedFetch<'a> {
    cache: &'a Cache,
    key: &'a CacheKey,
    shared_outcome: Arc<SharedOutcome>,
}

impl SharedFetch<'_> {
    /// Returns `true` if the result may still be cached: it was not invalidated meanwhile.
    fn is_current(&self) -> bool {
        self.cache
            .fetches
            .lock()
            .get(self.key)
            .is_some_and(|shared_outcome| Arc::ptr_eq(shared_outcome, &self.shared_outcome))
    }

    /// Closes the group: later requests start a new one.
    fn finish(&self) {
        let mut fetches = self.cache.fetches.lock();
        if fetches.get(self.key).is_some_and(|shared_outcome| Arc::ptr_eq(shared_outcome, &self.shared_outcome)) {
            fetches.remove(self.key);
        }
    }
}

impl Drop for SharedFetch<'_> {
    fn drop(&mut self) {
        let mut fetches = self.cache.fetches.lock();
        // Two references are the table's and ours, so nobody else waits. Others join under the same lock.
        let last = Arc::strong_count(&self.shared_outcome) == 2;
        if last && fetches.get(self.key).is_some_and(|shared_outcome| Arc::ptr_eq(shared_outcome, &self.shared_outcome))
        {
            fetches.remove(self.key);
        }
    }
}

/// Returns `true` if all waiters may share the outcome; one that concerns only its own caller is not shared.
fn is_shareable(outcome: &Result<Raw, Error>) -> bool {
    match outcome {
        Ok(result) => cached::is_complete(result),
        Err(error) => !matches!(error.kind, ErrorKind::Timeout | ErrorKind::Cancelled | ErrorKind::Internal),
    }
}

fn wait_timed_out(module: &str) -> Error {
    let message = format!("`{module}` did not answer an identical call in time.");
    Error::new(ErrorKind::Timeout, message).hint("Try again, or increase the timeout.")
}

#[cfg(test)]
mod tests;

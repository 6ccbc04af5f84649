//! Result cache. It serves only read-only tools and resources that are marked as cacheable, only the caller who
//! received the result, and only while both the configuration and the server allow. Concurrent identical requests share
//! one fetch.

mod kept;
mod key;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hikite_core::error::{Error, Kind};
use hikite_core::json::Raw;
use hikite_core::limits::Limits;
use moka::future::Cache as Store;
use parking_lot::Mutex;

use kept::{Kept, Lifetime};
pub(crate) use key::{Keep, Key};

/// The outcome of a shared fetch; empty while it is in flight.
type Seat = tokio::sync::Mutex<Option<Result<Raw, Error>>>;

#[derive(Debug)]
pub(crate) struct Cache {
    store: Store<Key, Arc<Kept>>,
    flights: Mutex<HashMap<Key, Arc<Seat>>>,
    is_on: bool,
    /// `true` once anything was cached. Most gateways cache nothing and can skip every invalidation.
    is_used: AtomicBool,
    entry_bytes: usize,
}

/// The outcome of a call, and a flag that is `true` if it came from the cache or another call.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) outcome: Result<Raw, Error>,
    pub(crate) again: bool,
}

impl Cache {
    pub(crate) fn new(limits: &Limits) -> Self {
        let store = Store::builder()
            .max_capacity(limits.cache_bytes as u64)
            .weigher(|key: &Key, kept: &Arc<Kept>| key.bytes().saturating_add(kept.bytes()))
            .expire_after(Lifetime)
            .support_invalidation_closures()
            .build();
        let is_on = limits.cache_bytes > 0;
        let is_used = AtomicBool::new(false);
        Self { store, flights: Mutex::default(), is_on, is_used, entry_bytes: limits.cache_entry_bytes }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.is_on
    }

    /// Returns the cached result, else the outcome of an identical call in flight, else the outcome of `call`. Waits
    /// for another call at most `wait`; if that call is dropped or times out, the next waiter calls.
    pub(crate) async fn answer(
        &self,
        keep: &Keep,
        wait: Duration,
        call: impl Future<Output = Result<Raw, Error>>,
    ) -> Answer {
        if let Some(kept) = self.kept(&keep.key).await {
            return Answer { outcome: Ok(kept.again()), again: true };
        }
        let flight = self.join(&keep.key);
        let Ok(mut seat) = tokio::time::timeout(wait, flight.seat.lock()).await else {
            return Answer { outcome: Err(too_long(&keep.key.module)), again: true };
        };
        if let Some(outcome) = &*seat {
            let outcome = outcome.clone().map(|result| kept::marked(&result, Duration::ZERO));
            return Answer { outcome, again: true };
        }
        // It may have been cached since the first lookup.
        if let Some(kept) = self.kept(&keep.key).await {
            return Answer { outcome: Ok(kept.again()), again: true };
        }
        let outcome = call.await;
        if concerns_all(&outcome) {
            *seat = Some(outcome.clone());
            let kept = outcome.as_ref().ok().and_then(|result| Kept::new(result, keep.ttl, self.entry_bytes));
            if let Some(kept) = kept.filter(|_| flight.is_wanted()) {
                self.is_used.store(true, Ordering::Relaxed);
                self.store.insert(keep.key.clone(), Arc::new(kept)).await;
            }
            flight.land();
        }
        Answer { outcome, again: false }
    }

    /// Invalidates everything read from this resource.
    pub(crate) fn forget_resource(&self, uri: &str) {
        self.flights.lock().retain(|key, _| !key.reads(uri));
        if !self.is_used.load(Ordering::Relaxed) {
            return;
        }
        for (key, kept) in &self.store {
            if key.reads(uri) {
                kept.forget();
            }
        }
    }

    /// Drops the results of earlier generations of a module. Their keys are never looked up again.
    pub(crate) fn forget_module(&self, module: &Arc<str>, generation: u64) {
        if !self.is_used.load(Ordering::Relaxed) {
            return;
        }
        let module = Arc::clone(module);
        // Fails only without support for invalidation closures, which the builder enables.
        let _ = self
            .store
            .invalidate_entries_if(move |key, _| key.module == module && key.generation < generation);
    }

    async fn kept(&self, key: &Key) -> Option<Arc<Kept>> {
        self.store.get(key).await.filter(|kept| kept.is_fresh())
    }

    fn join<'a>(&'a self, key: &'a Key) -> Flight<'a> {
        let mut flights = self.flights.lock();
        let seat = match flights.get(key) {
            Some(seat) => Arc::clone(seat),
            None => Arc::clone(flights.entry(key.clone()).or_default()),
        };
        Flight { cache: self, key, seat }
    }
}

/// Membership in a group of concurrent identical requests.
struct Flight<'a> {
    cache: &'a Cache,
    key: &'a Key,
    seat: Arc<Seat>,
}

impl Flight<'_> {
    /// Returns `true` if the result may still be cached: it was not invalidated meanwhile.
    fn is_wanted(&self) -> bool {
        self.cache.flights.lock().get(self.key).is_some_and(|seat| Arc::ptr_eq(seat, &self.seat))
    }

    /// Closes the group: later requests start a new one.
    fn land(&self) {
        let mut flights = self.cache.flights.lock();
        if flights.get(self.key).is_some_and(|seat| Arc::ptr_eq(seat, &self.seat)) {
            flights.remove(self.key);
        }
    }
}

impl Drop for Flight<'_> {
    fn drop(&mut self) {
        let mut flights = self.cache.flights.lock();
        // Two references are the table's and ours, so nobody else waits. Others join under the same lock.
        let last = Arc::strong_count(&self.seat) == 2;
        if last && flights.get(self.key).is_some_and(|seat| Arc::ptr_eq(seat, &self.seat)) {
            flights.remove(self.key);
        }
    }
}

/// Returns `true` if all waiters may share the outcome; one that concerns only its own caller is not shared.
fn concerns_all(outcome: &Result<Raw, Error>) -> bool {
    match outcome {
        Ok(result) => kept::is_complete(result),
        Err(error) => !matches!(error.kind, Kind::Timeout | Kind::Cancelled | Kind::Internal),
    }
}

fn too_long(module: &str) -> Error {
    let message = format!("`{module}` did not answer another call for the same in time");
    Error::new(Kind::Timeout, message).hint("try again, or give it more time")
}

#[cfg(test)]
mod tests;

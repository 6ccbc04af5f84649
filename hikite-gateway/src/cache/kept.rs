//! A cached result: its lifetime, and the marker that tells a client it was cached.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hikite_core::json::{Object, Raw};
use moka::Expiry;
use tokio::time::Instant;

use super::key::Key;

/// Member of `_meta` that marks a cached result.
const META: &str = "hikite/cache";

#[derive(Debug)]
pub(super) struct Kept {
    result: Raw,
    since: Instant,
    ttl: Duration,
    /// Set when the result was invalidated.
    over: AtomicBool,
}

impl Kept {
    /// Returns `None` if the result must not be cached: an error, too large, or without a lifetime.
    pub(super) fn new(result: &Raw, ttl: Duration, entry_bytes: usize) -> Option<Self> {
        let body = result.object().filter(|_| result.bytes().len() <= entry_bytes)?;
        if body.get("isError").is_some_and(|flag| flag.as_str() != "false") {
            return None;
        }
        let told = match body.get("ttlMs") {
            // An unreadable `ttlMs` permits nothing.
            Some(told) => Duration::from_millis(told.decode().ok()?),
            None => ttl,
        };
        let ttl = ttl.min(told);
        let (since, over) = (Instant::now(), AtomicBool::new(false));
        (!ttl.is_zero()).then(|| Self { result: result.copied(), since, ttl, over })
    }

    pub(super) fn is_fresh(&self) -> bool {
        !self.over.load(Ordering::Relaxed) && self.since.elapsed() < self.ttl
    }

    pub(super) fn forget(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Returns the result marked as cached.
    pub(super) fn again(&self) -> Raw {
        marked(&self.result, self.since.elapsed())
    }

    pub(super) fn bytes(&self) -> u32 {
        u32::try_from(self.result.bytes().len() + size_of::<Self>()).unwrap_or(u32::MAX)
    }
}

/// Returns `true` if a result is final, not a task or a question to the caller.
pub(super) fn is_complete(result: &Raw) -> bool {
    let kind = result.object().and_then(|body| body.get("resultType").cloned());
    kind.is_none_or(|kind| kind.text().as_deref() == Some("complete"))
}

/// Marks a result as cached and reduces its `ttlMs` by its age.
pub(super) fn marked(result: &Raw, age: Duration) -> Raw {
    let Some(mut body) = result.object() else { return result.clone() };
    let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    let told: Option<u64> = body.get("ttlMs").and_then(|told| told.decode().ok());
    if let Some(told) = told {
        body.set("ttlMs", Raw::of(&told.saturating_sub(age_ms)));
    }
    let mark = Object::default().with("hit", Raw::of(&true)).with("ageMs", Raw::of(&age_ms));
    let meta = body.get("_meta").and_then(Raw::object).unwrap_or_default();
    body.set("_meta", meta.with(META, mark));
    body.raw()
}

/// Evicts expired entries. `is_fresh`, on tokio's clock, decides whether an entry may be served.
pub(super) struct Lifetime;

impl Expiry<Key, Arc<Kept>> for Lifetime {
    fn expire_after_create(&self, _: &Key, kept: &Arc<Kept>, _: std::time::Instant) -> Option<Duration> {
        Some(kept.ttl)
    }

    fn expire_after_update(
        &self,
        _: &Key,
        kept: &Arc<Kept>,
        _: std::time::Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(kept.ttl)
    }
}

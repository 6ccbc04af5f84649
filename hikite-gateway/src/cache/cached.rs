//! A cached result: its lifetime, and the marker that tells a client it was cached.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hikite_core::json::{Object, Raw};
use moka::Expiry;
use tokio::time::Instant;

use super::key::CacheKey;

/// Member of `_meta` that marks a cached result.
const META: &str = "hikite/cache";

#[derive(Debug)]
pub(super) struct CachedResult {
    result: Raw,
    cached_at: Instant,
    ttl: Duration,
    /// Set when the result was invalidated.
    is_invalidated: AtomicBool,
}

impl CachedResult {
    /// Returns `None` if the result must not be cached: an error, too large, or without a lifetime.
    pub(super) fn new(result: &Raw, ttl: Duration, entry_bytes: usize) -> Option<Self> {
        let body = result.object().filter(|_| result.bytes().len() <= entry_bytes)?;
        if body.get("isError").is_some_and(|flag| flag.as_str() != "false") {
            return None;
        }
        let server_ttl = match body.get("ttlMs") {
            // An unreadable `ttlMs` permits nothing.
            Some(server_ttl) => Duration::from_millis(server_ttl.decode().ok()?),
            None => ttl,
        };
        let ttl = ttl.min(server_ttl);
        let (cached_at, is_invalidated) = (Instant::now(), AtomicBool::new(false));
        (!ttl.is_zero()).then(|| Self { result: result.copied(), cached_at, ttl, is_invalidated })
    }

    pub(super) fn is_fresh(&self) -> bool {
        !self.is_invalidated.load(Ordering::Relaxed) && self.cached_at.elapsed() < self.ttl
    }

    pub(super) fn invalidate(&self) {
        self.is_invalidated.store(true, Ordering::Relaxed);
    }

    /// Returns the result marked as cached.
    pub(super) fn reused(&self) -> Raw {
        mark_cached(&self.result, self.cached_at.elapsed())
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
pub(super) fn mark_cached(result: &Raw, age: Duration) -> Raw {
    let Some(mut body) = result.object() else { return result.clone() };
    let age_ms = u64::try_from(age.as_millis()).unwrap_or(u64::MAX);
    let server_ttl: Option<u64> = body.get("ttlMs").and_then(|server_ttl| server_ttl.decode().ok());
    if let Some(server_ttl) = server_ttl {
        body.set("ttlMs", Raw::of(&server_ttl.saturating_sub(age_ms)));
    }
    let mark = Object::default().with("hit", Raw::of(&true)).with("ageMs", Raw::of(&age_ms));
    let meta = body.get("_meta").and_then(Raw::object).unwrap_or_default();
    body.set("_meta", meta.with(META, mark));
    body.raw()
}

/// Evicts expired entries. `is_fresh`, on tokio's clock, decides whether an entry may be served.
pub(super) struct CacheExpiry;

impl Expiry<CacheKey, Arc<CachedResult>> for CacheExpiry {
    fn expire_after_create(&self, _: &CacheKey, cached: &Arc<CachedResult>, _: std::time::Instant) -> Option<Duration> {
        Some(cached.ttl)
    }

    fn expire_after_update(
        &self,
        _: &CacheKey,
        cached: &Arc<CachedResult>,
        _: std::time::Instant,
        _: Option<Duration>,
    ) -> Option<Duration> {
        Some(cached.ttl)
    }
}

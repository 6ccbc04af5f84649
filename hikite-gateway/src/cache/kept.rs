//! One result that is kept: how long it may be given again, and how it shows that it was.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hikite_core::json::{Object, Raw};
use moka::Expiry;
use tokio::time::Instant;

use super::key::Key;

/// Where a result says that it was given before.
const META: &str = "hikite/cache";

#[derive(Debug)]
pub(super) struct Kept {
    result: Raw,
    since: Instant,
    ttl: Duration,
    /// It is not true any more.
    over: AtomicBool,
}

impl Kept {
    /// `None` if the result must not be given again, or not be kept.
    pub(super) fn new(result: &Raw, ttl: Duration, entry_bytes: usize) -> Option<Self> {
        let body = result.object().filter(|_| result.bytes().len() <= entry_bytes)?;
        if body.get("isError").is_some_and(|flag| flag.as_str() != "false") {
            return None;
        }
        let told = match body.get("ttlMs") {
            // What cannot be understood is no permission.
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

    /// The result as it is given once more.
    pub(super) fn again(&self) -> Raw {
        marked(&self.result, self.since.elapsed())
    }

    pub(super) fn bytes(&self) -> u32 {
        u32::try_from(self.result.bytes().len() + size_of::<Self>()).unwrap_or(u32::MAX)
    }
}

/// Whether a result is an end, and not a task or a question to the one who called.
pub(super) fn is_complete(result: &Raw) -> bool {
    let kind = result.object().and_then(|body| body.get("resultType").cloned());
    kind.is_none_or(|kind| kind.text().as_deref() == Some("complete"))
}

/// The result with the word that it was given before, and what is left of the time its server gave it.
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

/// Lets go of what is too old. Whether it may be given is decided by the clock of the calls alone.
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

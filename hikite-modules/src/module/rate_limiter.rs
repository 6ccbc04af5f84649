//! Rate limit per account of a service: maximum concurrent requests, fewer for writes, and none until the vendor's
//! limit resets. Vendors count per credential, so each account has its own limit.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::time;
use http::HeaderMap;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use crate::file::RateLimitFile;

/// Longest wait for a service. A longer one fails with `retry_after`.
pub(crate) const WAIT_MAX: Duration = Duration::from_secs(30);
/// Default of concurrent requests.
const CONCURRENCY: usize = 8;
/// Upper bound of a reset time.
const LONGEST: Duration = Duration::from_secs(24 * 3600);
/// Number of accounts beyond which idle ones are dropped.
const ACCOUNTS: usize = 256;

/// Rate limits of one service by account. Requests without a credential share one.
#[derive(Debug)]
pub(crate) struct RateLimiters {
    limits: RateLimitFile,
    by_account: Mutex<HashMap<Arc<str>, Arc<RateLimiter>>>,
}

impl RateLimiters {
    pub(crate) fn new(limits: &RateLimitFile) -> Self {
        Self { limits: limits.clone(), by_account: Mutex::default() }
    }

    pub(crate) fn of(&self, account: &Arc<str>) -> Arc<RateLimiter> {
        let mut rate_limiters = self.by_account.lock();
        if let Some(rate_limiter) = rate_limiters.get(account) {
            return Arc::clone(rate_limiter);
        }
        if rate_limiters.len() >= ACCOUNTS {
            rate_limiters.retain(|_, rate_limiter| Arc::strong_count(rate_limiter) > 1 || !rate_limiter.is_idle());
        }
        let rate_limiter = Arc::new(RateLimiter::new(&self.limits));
        rate_limiters.insert(Arc::clone(account), Arc::clone(&rate_limiter));
        rate_limiter
    }
}

#[derive(Debug)]
pub(crate) struct RateLimiter {
    places: Semaphore,
    writes: Semaphore,
    gap: Duration,
    remaining: Option<String>,
    reset: Option<String>,
    state: Mutex<RateLimiterState>,
}

#[derive(Debug, Default)]
struct RateLimiterState {
    /// No request is sent before this time.
    closed_until: Option<Instant>,
    last_write: Option<Instant>,
}

/// Permit for one request.
pub(crate) struct RequestPermit<'a> {
    _place: Option<SemaphorePermit<'a>>,
    _write: Option<SemaphorePermit<'a>>,
}

impl RateLimiter {
    fn new(limits: &RateLimitFile) -> Self {
        let concurrency = limits.concurrency.unwrap_or(CONCURRENCY).max(1);
        Self {
            places: Semaphore::new(concurrency),
            writes: Semaphore::new(limits.write_concurrency.unwrap_or(concurrency).max(1)),
            gap: Duration::from_millis(limits.write_gap_ms.unwrap_or_default()),
            remaining: limits.remaining.clone(),
            reset: limits.reset.clone(),
            state: Mutex::default(),
        }
    }

    pub(crate) async fn acquire(&self, writes: bool) -> Result<RequestPermit<'_>, Error> {
        let write = if writes { self.writes.acquire().await.ok() } else { None };
        let place = self.places.acquire().await.ok();
        let wait = self.wait(writes);
        if wait > WAIT_MAX {
            return Err(rate_limited(wait));
        }
        if !wait.is_zero() {
            tokio::time::sleep(wait).await;
        }
        if writes {
            self.state.lock().last_write = Some(Instant::now());
        }
        Ok(RequestPermit { _place: place, _write: write })
    }

    fn wait(&self, writes: bool) -> Duration {
        let state = self.state.lock();
        let now = Instant::now();
        let gap = state.last_write.filter(|_| writes).map(|last| last + self.gap);
        let next = state.closed_until.max(gap).unwrap_or(now);
        next.saturating_duration_since(now)
    }

    /// Returns `true` if the state equals that of a new limit.
    fn is_idle(&self) -> bool {
        self.wait(true).is_zero()
    }

    /// Updates the limit from response headers: if no requests remain, none is sent until the reset.
    pub(crate) fn learn(&self, headers: &HeaderMap) {
        let (Some(remaining), Some(reset)) = (&self.remaining, &self.reset) else { return };
        let text = |name: &str| headers.get(name)?.to_str().ok();
        if text(remaining).map(str::trim) == Some("0")
            && let Some(wait) = wait_in(headers, reset)
        {
            self.close(wait);
        }
    }

    pub(crate) fn close(&self, wait: Duration) {
        let until = Instant::now() + wait.min(LONGEST);
        let mut state = self.state.lock();
        state.closed_until = state.closed_until.max(Some(until));
    }
}

pub(crate) fn rate_limited(wait: Duration) -> Error {
    let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
    Error::new(ErrorKind::RateLimit, format!("The service accepts no more requests with this account for {seconds} s."))
        .hint(format!("Try again in {seconds} s."))
        .after(wait)
}

/// Parses the delay in a header: seconds, an HTTP date, an RFC 3339 timestamp, or seconds since 1970.
pub(crate) fn wait_in(headers: &HeaderMap, name: &str) -> Option<Duration> {
    /// Larger numbers are timestamps, not delays.
    const EPOCH: u64 = 1_000_000_000;
    let text = headers.get(name)?.to_str().ok()?.trim();
    if name.eq_ignore_ascii_case("retry-after")
        && let Some(wait) = hikite_egress::retry_after(headers)
    {
        return Some(wait.min(LONGEST));
    }
    let whole = text.split('.').next().and_then(|text| text.parse::<u64>().ok());
    let moment_ms = match whole {
        Some(seconds) if seconds < EPOCH => return Some(Duration::from_secs(seconds).min(LONGEST)),
        Some(seconds) => seconds.checked_mul(1000)?,
        None => time::read(&rfc3339(text))?,
    };
    let now = hikite_egress::now_ms(headers);
    Some(Duration::from_millis(moment_ms.saturating_sub(now)).min(LONGEST))
}

/// Adds seconds to a timestamp such as `2026-11-15T09:00Z`.
fn rfc3339(text: &str) -> String {
    let is_short = text.len() == 17 && text.ends_with('Z');
    if is_short { format!("{}:00Z", &text[..16]) } else { text.to_owned() }
}

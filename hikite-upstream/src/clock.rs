//! Wall clock, for timestamps that outlive the process.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the milliseconds since 1970.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock here")]
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

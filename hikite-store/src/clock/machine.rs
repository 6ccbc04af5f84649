//! The clocks of this machine. Nothing else in the store, in identity or in the gateway reads the wall clock, except for
//! the start of a trace.

use std::fs::read_to_string;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use super::{Boot, MachineClock};

/// Returns the milliseconds since the Unix epoch.
#[expect(clippy::disallowed_methods, reason = "the one place that reads the wall clock here")]
pub fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Reads the clocks of this machine at one moment. The uptime is available on Linux only.
pub fn machine_clock() -> MachineClock {
    MachineClock { wall_ms: now_ms(), boot: boot() }
}

fn boot() -> Option<Boot> {
    let id = read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    let uptime = read_to_string("/proc/uptime").ok()?;
    let seconds = uptime.split(' ').next()?.parse().ok()?;
    let uptime = Duration::try_from_secs_f64(seconds).ok()?;
    let uptime_ms = u64::try_from(uptime.as_millis()).ok()?;
    Some(Boot { id: id.trim().to_owned(), uptime_ms })
}

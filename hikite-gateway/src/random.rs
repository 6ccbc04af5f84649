//! Random numbers for jitter. Nothing secret depends on them.

/// Returns a number between 0 and 1.
pub(crate) fn share() -> f64 {
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(random) / f64::from(u32::MAX)
}

//! The one source of jitter here: nothing secret depends on it.

/// A number between 0 and 1.
pub(crate) fn share() -> f64 {
    let random = getrandom::u32().unwrap_or(u32::MAX / 2);
    f64::from(random) / f64::from(u32::MAX)
}

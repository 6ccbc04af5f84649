//! Limit of open files. hikite raises its own soft limit; child processes get the original limit, because some programs
//! are slow or broken with a large one.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Upper bound: some kernels refuse more.
const MOST: u64 = 1 << 20;
/// Limit that macOS accepts when it reports no hard limit.
const MODEST: u64 = 10_240;

static BEFORE: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit of open files to the hard limit and returns the new value, or `None` if there is no limit.
pub fn raise_file_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let soft = limit.current?;
    let wanted = limit.maximum.unwrap_or(MOST).min(MOST);
    for wanted in [wanted, wanted.min(MODEST)] {
        if wanted <= soft {
            break;
        }
        if setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit }).is_ok() {
            let _ = BEFORE.set(soft);
            return Some(wanted);
        }
    }
    Some(soft)
}

/// Returns the original soft limit, if it was raised.
pub(crate) fn before() -> Option<u64> {
    BEFORE.get().copied()
}

/// Sets the soft limit for this process and its children.
pub(crate) fn set(soft: u64) {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(soft), ..limit });
}

//! Limit of open files. hikite raises its own soft limit; child processes get the original limit, because some programs
//! are slow or broken with a large one.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Upper bound: some kernels refuse more.
const OPEN_FILES_MAX: u64 = 1 << 20;
/// Limit that macOS accepts when it reports no hard limit.
const MACOS_OPEN_FILES_MAX: u64 = 10_240;

static ORIGINAL_SOFT_LIMIT: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit of open files to the hard limit and returns the new value, or `None` if there is no limit.
pub fn raise_file_limit() -> Option<u64> {
    let limit = getrlimit(Resource::Nofile);
    let soft = limit.current?;
    let wanted = limit.maximum.unwrap_or(OPEN_FILES_MAX).min(OPEN_FILES_MAX);
    for wanted in [wanted, wanted.min(MACOS_OPEN_FILES_MAX)] {
        if wanted <= soft {
            break;
        }
        if setrlimit(Resource::Nofile, Rlimit { current: Some(wanted), ..limit }).is_ok() {
            let _ = ORIGINAL_SOFT_LIMIT.set(soft);
            return Some(wanted);
        }
    }
    Some(soft)
}

/// Returns the original soft limit, if it was raised.
pub(crate) fn original_soft_limit() -> Option<u64> {
    ORIGINAL_SOFT_LIMIT.get().copied()
}

/// Sets the soft limit for this process and its children.
pub(crate) fn set(soft: u64) {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(soft), ..limit });
}

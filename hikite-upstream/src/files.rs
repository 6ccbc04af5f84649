//! How many files this process may have open. hikite raises its own limit as far as it may; the servers it starts get the
//! one that hikite was started with, because some programs are slow or wrong with a large one.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// More than anybody needs; some kernels refuse more.
const MOST: u64 = 1 << 20;
/// What macOS grants where it says that there is no limit.
const MODEST: u64 = 10_240;

static BEFORE: OnceLock<u64> = OnceLock::new();

/// Raises the soft limit of open files to the hard one, and gives what it is then; nothing where there is no limit.
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

/// The soft limit that hikite was started with, where it is another by now.
pub(crate) fn before() -> Option<u64> {
    BEFORE.get().copied()
}

/// Sets the soft limit for this process and what it starts.
pub(crate) fn set(soft: u64) {
    let limit = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(soft), ..limit });
}

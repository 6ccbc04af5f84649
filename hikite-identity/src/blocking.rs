//! Runs blocking work without holding up the other tasks of its worker thread.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// Runs blocking work of any cost. On a multi-threaded runtime the other tasks of this worker thread move elsewhere.
pub fn run_blocking<T>(work: impl FnOnce() -> T) -> T {
    let has_others = |runtime: Handle| runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
    if Handle::try_current().is_ok_and(has_others) { block_in_place(work) } else { work() }
}

//! The request that the running task works for, so that every line of the log that it writes can say so.

use hikite_core::source::Origin;

tokio::task_local! {
    static ORIGIN: Origin;
}

/// Runs the future for a request.
pub fn within<F: Future>(origin: Origin, future: F) -> impl Future<Output = F::Output> {
    ORIGIN.scope(origin, future)
}

/// What is known of the request of this task, if it works for one.
pub fn current<T>(read: impl FnOnce(&Origin) -> T) -> Option<T> {
    ORIGIN.try_with(read).ok()
}

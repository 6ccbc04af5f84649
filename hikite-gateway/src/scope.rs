//! Task-local origin of the current request, which log lines include.

use hikite_core::source::Origin;

tokio::task_local! {
    static ORIGIN: Origin;
}

/// Runs a future within a request's scope.
pub fn within<F: Future>(origin: Origin, future: F) -> impl Future<Output = F::Output> {
    ORIGIN.scope(origin, future)
}

/// Reads the origin of the current task's request, if there is one.
pub fn current<T>(read: impl FnOnce(&Origin) -> T) -> Option<T> {
    ORIGIN.try_with(read).ok()
}

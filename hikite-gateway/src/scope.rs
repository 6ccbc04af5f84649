//! Task-local origin of the current request, which log lines include.

use hikite_core::source::CallOrigin;

tokio::task_local! {
    static ORIGIN: CallOrigin;
}

/// Runs a future within a request's scope.
pub fn within<F: Future>(origin: CallOrigin, future: F) -> impl Future<Output = F::Output> {
    ORIGIN.scope(origin, future)
}

/// Reads the origin of the current task's request, if there is one.
pub fn current<T>(read: impl FnOnce(&CallOrigin) -> T) -> Option<T> {
    ORIGIN.try_with(read).ok()
}

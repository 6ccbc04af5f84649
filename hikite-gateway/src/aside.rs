//! Work that keeps a processor busy. There are few threads for requests, so what else waits for this one is handed to
//! another meanwhile.

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

/// What is smaller is done before another could take over.
const LARGE: usize = 256 * 1024;

pub(crate) fn aside<T>(work: impl FnOnce() -> T) -> T {
    let has_others = |runtime: Handle| runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
    if Handle::try_current().is_ok_and(has_others) { block_in_place(work) } else { work() }
}

/// The same for work that grows with what it is done to.
pub(crate) fn aside_if_large<T>(bytes: usize, work: impl FnOnce() -> T) -> T {
    if bytes > LARGE { aside(work) } else { work() }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn where_there_is_one_thread_it_is_done_there() {
        assert_eq!(aside_if_large(LARGE + 1, || 7), 7);
    }

    /// The work waits for somebody else who shares its thread.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_go_on_meanwhile() {
        let (tell, told) = std::sync::mpsc::channel();
        let (begin, start) = oneshot::channel();
        let tasks = tokio_util::task::TaskTracker::new();
        tasks.spawn(async move {
            start.await.expect("it begins");
            tell.send(()).expect("somebody waits");
        });
        let work = tasks.spawn(async move {
            aside_if_large(LARGE + 1, || {
                begin.send(()).expect("somebody waits");
                told.recv_timeout(Duration::from_secs(20))
            })
        });
        assert_eq!(work.await.expect("it ends"), Ok(()), "the other was held up");
    }
}

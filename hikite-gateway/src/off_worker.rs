//! Runs CPU-bound work without blocking the few worker threads that serve requests. Work that takes longer than about a
//! millisecond leaves its worker thread; the decision follows from an estimated cost, its size times the work per byte.

use std::sync::LazyLock;

use tokio::sync::Semaphore;
use tokio::task::coop;

pub use hikite_identity::run_blocking;

/// Cost below which work runs inline. Costs are in bytes of JSON that are parsed and visited once.
const SMALL: usize = 2 * 1024;
/// Cost below which moving to another thread takes longer than the work itself, about a third of a millisecond.
const LARGE: usize = 32 * 1024;

/// Permits for large work that runs concurrently. More would only compete for the processors with each other and with
/// the threads that answer requests.
static LARGE_PERMITS: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Semaphore::new(processors.clamp(2, 16))
});

/// Runs work according to its cost: inline, inline after yielding, or as blocking work once a permit is free.
pub async fn off_worker<T>(cost: usize, work: impl FnOnce() -> T) -> T {
    if cost > SMALL {
        // Boxed, so that small calls do not carry the size of this future.
        Box::pin(wait_for_permit(cost, work)).await
    } else {
        work()
    }
}

async fn wait_for_permit<T>(cost: usize, work: impl FnOnce() -> T) -> T {
    if cost > LARGE {
        let _permit = LARGE_PERMITS.acquire().await;
        return run_blocking(work);
    }
    // A task could run many of these in a row without ever awaiting anything else.
    for _ in 0..cost / SMALL {
        coop::consume_budget().await;
    }
    work()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use tokio::sync::oneshot;

    use super::*;

    #[tokio::test]
    async fn where_there_is_one_thread_it_is_done_there() {
        for cost in [0, SMALL + 1, LARGE + 1] {
            assert_eq!(off_worker(cost, || 7).await, 7);
        }
    }

    /// The work waits for another task that shares its worker thread.
    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn others_go_on_meanwhile() {
        let (tell, told) = std::sync::mpsc::channel();
        let (begin, start) = oneshot::channel();
        let tasks = tokio_util::task::TaskTracker::new();
        tasks.spawn(async move {
            start.await.expect("it begins");
            tell.send(()).expect("somebody waits");
        });
        let work = tasks.spawn(off_worker(LARGE + 1, move || {
            begin.send(()).expect("somebody waits");
            told.recv_timeout(Duration::from_secs(20))
        }));
        assert_eq!(work.await.expect("it ends"), Ok(()), "the other was held up");
    }

    /// A thousand runs without a pause: another task is polled before all of them are done.
    #[tokio::test]
    async fn many_small_ones_let_others_have_their_turn() {
        let done = std::cell::Cell::new(0);
        let works = async {
            for _ in 0..1000 {
                off_worker(LARGE, || done.set(done.get() + 1)).await;
            }
        };
        let other = async {
            tokio::task::yield_now().await;
            done.get()
        };
        let ((), seen) = tokio::join!(works, other);
        assert!(seen < 1000, "the other came last");
    }
}

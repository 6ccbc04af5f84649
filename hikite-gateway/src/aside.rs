//! Work that keeps a processor busy. There are few threads for requests, so what takes longer than about a millisecond
//! leaves them: by what it is estimated to cost, which is its size and what is done with each byte.

use std::sync::LazyLock;

use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::task::{block_in_place, coop};

/// Costs are told in bytes of JSON that are read and looked at once. What costs less is done at once.
const SMALL: usize = 2 * 1024;
/// Cheaper work is done before another thread could take over: a third of a millisecond or so.
const LARGE: usize = 32 * 1024;

/// Large work that is done at the same time. More would only take the processors from each other, and from the threads
/// that answer requests.
static PLACES: LazyLock<Semaphore> = LazyLock::new(|| {
    let processors = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    Semaphore::new(processors.clamp(2, 16))
});

/// Does work of which this thread should be relieved, whatever it costs. Other tasks of the thread go on elsewhere.
pub fn aside<T>(work: impl FnOnce() -> T) -> T {
    let has_others = |runtime: Handle| runtime.runtime_flavor() == RuntimeFlavor::MultiThread;
    if Handle::try_current().is_ok_and(has_others) { block_in_place(work) } else { work() }
}

/// Does work where its cost says: here, here after others had their turn, or aside as soon as there is a place.
pub async fn by_cost<T>(cost: usize, work: impl FnOnce() -> T) -> T {
    if cost > SMALL {
        // Boxed, so that it takes no room in calls that are small.
        Box::pin(wait_for_place(cost, work)).await
    } else {
        work()
    }
}

async fn wait_for_place<T>(cost: usize, work: impl FnOnce() -> T) -> T {
    if cost > LARGE {
        let _place = PLACES.acquire().await;
        return aside(work);
    }
    // One task may do many of these without ever waiting for anything.
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
            assert_eq!(by_cost(cost, || 7).await, 7);
        }
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
        let work = tasks.spawn(by_cost(LARGE + 1, move || {
            begin.send(()).expect("somebody waits");
            told.recv_timeout(Duration::from_secs(20))
        }));
        assert_eq!(work.await.expect("it ends"), Ok(()), "the other was held up");
    }

    /// A thousand works without a pause between them: somebody else has a turn before they are all done.
    #[tokio::test]
    async fn many_small_ones_let_others_have_their_turn() {
        let done = std::cell::Cell::new(0);
        let works = async {
            for _ in 0..1000 {
                by_cost(LARGE, || done.set(done.get() + 1)).await;
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

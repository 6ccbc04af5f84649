//! Handshake steps that a server need not answer: the receipt of `notifications/initialized`, and the headers of the
//! GET stream. The first request waits for them, because a server may ask its first question on that stream. A step
//! that timed out is not awaited again until it has completed in time.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio_util::task::TaskTracker;

/// Timeout for the receipt of `notifications/initialized`.
const RECEIPT: Duration = Duration::from_secs(10);
/// Timeout for the headers of the GET stream: some servers withhold them until the first event.
const STREAM: Duration = Duration::from_secs(1);

/// Optional handshake steps of one server, and whether they were late last time.
#[derive(Clone, Debug)]
pub(crate) struct HandshakeSteps {
    pub(crate) receipt: Arc<HandshakeStep>,
    pub(crate) stream: Arc<HandshakeStep>,
}

impl Default for HandshakeSteps {
    fn default() -> Self {
        Self { receipt: Arc::new(HandshakeStep::within(RECEIPT)), stream: Arc::new(HandshakeStep::within(STREAM)) }
    }
}

#[derive(Debug)]
pub(crate) struct HandshakeStep {
    time: Duration,
    was_late: AtomicBool,
}

impl HandshakeStep {
    fn within(time: Duration) -> Self {
        Self { time, was_late: AtomicBool::new(false) }
    }

    /// Waits for the step up to its timeout, or not at all if it was late last time. Records in either case whether it
    /// was late.
    pub(crate) async fn wait(self: &Arc<Self>, done: impl Future + Send + 'static, tasks: &TaskTracker) {
        let was_late = self.was_late.load(Ordering::Relaxed);
        let step = Arc::clone(self);
        let timed = tasks.spawn(async move {
            let is_late = tokio::time::timeout(step.time, done).await.is_err();
            step.was_late.store(is_late, Ordering::Relaxed);
        });
        if !was_late {
            let _ = timed.await;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};

    use tokio::time::Instant;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_late_step_is_waited_for_once_until_it_is_in_time_again() {
        let (step, tasks) = (Arc::new(HandshakeStep::within(STREAM)), TaskTracker::new());
        let waits = async |done: bool| {
            let begin = Instant::now();
            if done {
                step.wait(ready(()), &tasks).await;
            } else {
                step.wait(pending::<()>(), &tasks).await;
            }
            begin.elapsed()
        };
        assert_eq!(waits(true).await, Duration::ZERO);
        assert_eq!(waits(false).await, STREAM);
        assert_eq!(waits(false).await, Duration::ZERO);
        tokio::time::sleep(STREAM * 2).await;
        assert_eq!(waits(true).await, Duration::ZERO);
        tokio::time::sleep(STREAM).await;
        assert_eq!(waits(false).await, STREAM, "it was in time, so it is waited for again");
    }
}

//! The time one call has. Progress starts it anew; while the client is being asked something it stands still.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::json::{Object, Raw};
use hikite_core::source::{Backchannel, BoxFuture, Question, QuestionKind};
use parking_lot::Mutex;
use tokio::time::Instant;

/// The call's way back to the client, which hears everything that extends the deadline.
pub(crate) struct Deadline {
    back: Arc<dyn Backchannel>,
    timeout: Duration,
    clock: Mutex<Clock>,
}

struct Clock {
    until: Instant,
    questions: usize,
}

impl Deadline {
    pub(crate) fn new(back: Arc<dyn Backchannel>, timeout: Duration) -> Arc<Self> {
        let clock = Mutex::new(Clock { until: Instant::now() + timeout, questions: 0 });
        Arc::new(Self { back, timeout, clock })
    }

    /// Resolves when the time is over.
    pub(crate) async fn expired(&self) {
        loop {
            let until = {
                let mut clock = self.clock.lock();
                if clock.questions > 0 {
                    clock.until = Instant::now() + self.timeout;
                }
                clock.until
            };
            if Instant::now() >= until {
                return;
            }
            tokio::time::sleep_until(until).await;
        }
    }

    fn extend(&self) {
        self.clock.lock().until = Instant::now() + self.timeout;
    }
}

/// Counts an open question, however its future ends.
struct Open(Arc<Deadline>);

impl Drop for Open {
    fn drop(&mut self) {
        self.0.clock.lock().questions -= 1;
        self.0.extend();
    }
}

/// `Backchannel` is implemented for the shared handle, because an open question outlives the borrow.
pub(crate) struct Extending(pub(crate) Arc<Deadline>);

impl Backchannel for Extending {
    fn progress(&self, params: Object) {
        self.0.extend();
        self.0.back.progress(params);
    }

    fn log(&self, params: Raw) {
        self.0.back.log(params);
    }

    fn lacks(&self, kind: QuestionKind) {
        self.0.back.lacks(kind);
    }

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Raw, Raw>> {
        self.0.clock.lock().questions += 1;
        let open = Open(Arc::clone(&self.0));
        let asked = self.0.back.ask(question);
        Box::pin(async move {
            let _open = open;
            asked.await
        })
    }
}

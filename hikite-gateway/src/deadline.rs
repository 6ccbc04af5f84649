//! Deadline of one call. Progress restarts it. While the client is being asked a question it stands still, and the
//! call's concurrency permit is released to others.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::json::{Object, Raw};
use hikite_core::source::{Backchannel, BoxFuture, InputRequest, InputRequestKind};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::admission::{AdmissionGate, AdmissionShare};

/// A deadline, with the backchannel whose messages extend it.
pub(crate) struct Deadline {
    pub(crate) timeout: Duration,
    back: Arc<dyn Backchannel>,
    gate: Arc<AdmissionGate>,
    /// Released together with the permit.
    share: Option<Arc<AdmissionShare>>,
    clock: Mutex<DeadlineClock>,
}

struct DeadlineClock {
    until: Instant,
    questions: usize,
    /// `true` while the permit is released.
    is_released: bool,
}

impl Deadline {
    pub(crate) fn new(
        back: Arc<dyn Backchannel>,
        gate: Arc<AdmissionGate>,
        share: Option<Arc<AdmissionShare>>,
        timeout: Duration,
    ) -> Arc<Self> {
        let clock = DeadlineClock { until: Instant::now() + timeout, questions: 0, is_released: false };
        Arc::new(Self { timeout, back, gate, share, clock: Mutex::new(clock) })
    }

    /// Returns the remaining time.
    pub(crate) fn left(&self) -> Duration {
        self.clock.lock().until.saturating_duration_since(Instant::now())
    }

    /// Waits until the deadline has passed.
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

    /// Returns `true` while the call's permit is released.
    pub(crate) fn has_released_permits(&self) -> bool {
        self.clock.lock().is_released
    }

    fn begin_question(&self) {
        let mut clock = self.clock.lock();
        clock.questions += 1;
        if !std::mem::replace(&mut clock.is_released, true) {
            self.gate.release_permits(self.share.as_deref());
        }
    }

    /// Takes the permit back when the last open question is answered.
    async fn end_question(&self) {
        let last = {
            let clock = self.clock.lock();
            clock.is_released && clock.questions == 1
        };
        if last {
            self.gate.reacquire_permits(self.share.as_deref()).await;
            self.clock.lock().is_released = false;
        }
    }
}

/// Counts an open question, however its future ends.
struct QuestionGuard(Arc<Deadline>);

impl Drop for QuestionGuard {
    fn drop(&mut self) {
        self.0.clock.lock().questions -= 1;
        self.0.extend();
    }
}

/// The `Backchannel` of a call with a deadline; owns a shared handle, because an open question outlives the borrow.
pub(crate) struct ExtendingBackchannel(pub(crate) Arc<Deadline>);

impl Backchannel for ExtendingBackchannel {
    fn progress(&self, params: Object) {
        self.0.extend();
        self.0.back.progress(params);
    }

    fn log(&self, params: Raw) {
        self.0.back.log(params);
    }

    fn capability_missing(&self, kind: InputRequestKind) {
        self.0.back.capability_missing(kind);
    }

    fn ask(&self, question: InputRequest) -> BoxFuture<'static, Result<Raw, Raw>> {
        self.0.begin_question();
        let open = QuestionGuard(Arc::clone(&self.0));
        let pending = self.0.back.ask(question);
        Box::pin(async move {
            let answer = pending.await;
            open.0.end_question().await;
            answer
        })
    }
}

//! Deadline of one call. Progress restarts it. While the client is being asked a question it stands still, and the
//! call's concurrency permit is released to others.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::json::{Object, Raw};
use hikite_core::source::{Backchannel, BoxFuture, Question, QuestionKind};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::gate::{Gate, Share};

/// A deadline, with the backchannel whose messages extend it.
pub(crate) struct Deadline {
    pub(crate) timeout: Duration,
    back: Arc<dyn Backchannel>,
    gate: Arc<Gate>,
    /// Released together with the permit.
    share: Option<Arc<Share>>,
    clock: Mutex<Clock>,
}

struct Clock {
    until: Instant,
    questions: usize,
    /// `true` while the permit is released.
    away: bool,
}

impl Deadline {
    pub(crate) fn new(
        back: Arc<dyn Backchannel>,
        gate: Arc<Gate>,
        share: Option<Arc<Share>>,
        timeout: Duration,
    ) -> Arc<Self> {
        let clock = Clock { until: Instant::now() + timeout, questions: 0, away: false };
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
    pub(crate) fn is_away(&self) -> bool {
        self.clock.lock().away
    }

    fn leave(&self) {
        let mut clock = self.clock.lock();
        clock.questions += 1;
        if !std::mem::replace(&mut clock.away, true) {
            self.gate.lend(self.share.as_deref());
        }
    }

    /// Takes the permit back when the last open question is answered.
    async fn come_back(&self) {
        let last = {
            let clock = self.clock.lock();
            clock.away && clock.questions == 1
        };
        if last {
            self.gate.take_back(self.share.as_deref()).await;
            self.clock.lock().away = false;
        }
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

/// The `Backchannel` of a call with a deadline; owns a shared handle, because an open question outlives the borrow.
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
        self.0.leave();
        let open = Open(Arc::clone(&self.0));
        let asked = self.0.back.ask(question);
        Box::pin(async move {
            let answer = asked.await;
            open.0.come_back().await;
            answer
        })
    }
}

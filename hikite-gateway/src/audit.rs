//! One record per invocation, whatever becomes of it: the guard writes it when it is closed or dropped. Argument
//! values are never in it.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Session;
use hikite_core::error::Error;
use hikite_core::json::Raw;
use tokio::time::Instant;

#[derive(Debug)]
pub(crate) struct Audit {
    session: Arc<Session>,
    /// `category/name` or the method with its subject.
    what: String,
    module: Arc<str>,
    started: Instant,
    /// Dropped unclosed means that the caller went away.
    outcome: &'static str,
    bytes: usize,
    /// Why it failed, in words that are for the log alone.
    cause: Option<Box<str>>,
    /// How often the source was asked.
    pub(crate) attempts: u32,
    /// The result is one that was given before, or another call's.
    pub(crate) cached: bool,
}

impl Audit {
    pub(crate) fn open(session: Arc<Session>, module: Arc<str>, what: String) -> Self {
        let (started, outcome) = (Instant::now(), "cancelled");
        Self { session, what, module, started, outcome, bytes: 0, cause: None, attempts: 0, cached: false }
    }

    pub(crate) fn close(mut self, outcome: &Result<Raw, Error>) {
        match outcome {
            Ok(result) => {
                self.outcome = "ok";
                self.bytes = result.bytes().len();
            }
            Err(error) => {
                self.outcome = error.code();
                self.cause.clone_from(&error.cause);
            }
        }
    }
}

impl Drop for Audit {
    fn drop(&mut self) {
        tracing::info!(
            target: "hikite::call",
            caller = &*self.session.caller.subject,
            session = self.session.id.0,
            module = &*self.module,
            call = self.what,
            outcome = self.outcome,
            ms = milliseconds(self.started.elapsed()),
            bytes = self.bytes,
            attempts = self.attempts,
            cached = self.cached,
            cause = self.cause.as_deref(),
        );
    }
}

/// With three decimals: most of what the gateway adds is microseconds.
fn milliseconds(elapsed: Duration) -> f64 {
    (elapsed.as_secs_f64() * 1e6).round() / 1e3
}

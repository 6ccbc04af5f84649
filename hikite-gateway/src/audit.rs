//! One record per invocation, whatever becomes of it: the guard writes it when it is closed or dropped. Argument
//! values are never in it.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Session;
use hikite_core::error::Error;
use hikite_core::json::Raw;
use hikite_core::source::{CallContext, Method, Origin};
use tokio::time::Instant;

use crate::meter::ModuleMeter;

#[derive(Debug)]
pub(crate) struct Audit {
    meter: Arc<ModuleMeter>,
    session: Arc<Session>,
    origin: Origin,
    method: Method,
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
    pub(crate) fn open(
        meter: &Arc<ModuleMeter>,
        context: &CallContext,
        module: &Arc<str>,
        method: Method,
        what: String,
    ) -> Self {
        meter.call_begins();
        Self {
            meter: Arc::clone(meter),
            session: Arc::clone(&context.session),
            origin: context.origin.clone(),
            method,
            what,
            module: Arc::clone(module),
            started: Instant::now(),
            outcome: "cancelled",
            bytes: 0,
            cause: None,
            attempts: 0,
            cached: false,
        }
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
        let elapsed = self.started.elapsed();
        self.meter.call_ends(self.method, self.outcome, elapsed);
        tracing::info!(
            target: "hikite::call",
            request_id = self.origin.request_id.as_deref(),
            trace_id = self.origin.trace_id(),
            caller = &*self.session.caller.subject,
            session = self.session.id.0,
            module = &*self.module,
            call = self.what,
            outcome = self.outcome,
            ms = milliseconds(elapsed),
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

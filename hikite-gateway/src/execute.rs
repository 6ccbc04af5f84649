//! The path of an allowed call: result cache, admission, deadline, and for each attempt circuit breaker and source. Only
//! requests about a running MCP task take another one (`execute_unmetered`).

use std::num::NonZeroU32;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use hikite_core::call_policy::RetryPolicy;
use hikite_core::catalog::Module;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_core::retry;
use hikite_core::source::{CallContext, Invocation};

use crate::admission::{AdmissionGate, CallPermit};
use crate::audit::{Audit, CallDetails};
use crate::cache::Cache;
use crate::call_settings::CallSettings;
use crate::deadline::{Deadline, ExtendingBackchannel};
use crate::meter::{TOOL_ERROR, is_error_result};
use crate::random;
use crate::request::SourceRequest;
use crate::trace::TraceStep;

/// A call to execute. `what` names it in the audit record.
pub(crate) struct PreparedCall {
    pub(crate) what: String,
    pub(crate) terms: CallSettings,
    pub(crate) invocation: Invocation,
}

/// Executes one invocation.
pub(crate) async fn execute(
    cache: &Cache,
    gate: &Arc<AdmissionGate>,
    module: &Module,
    call: PreparedCall,
    context: CallContext,
    audit: &mut Audit<'_>,
) -> Result<Raw, Error> {
    let PreparedCall { what, terms, invocation } = call;
    audit.runs(&gate.meter, &module.name, invocation.method, what);
    let details = &mut audit.details;
    match &terms.cache_request {
        None => run(gate, module, &terms, invocation, context, details).await,
        Some(cache_request) => {
            let running = run(gate, module, &terms, invocation, context, details);
            // Boxed, so that calls without caching do not carry the size of this future.
            let answer = Box::pin(cache.answer(cache_request, terms.timeout, running)).await;
            details.cached = answer.reused;
            if answer.reused {
                gate.meter.cache_hit();
                details.tool_error = answer.outcome.as_ref().is_ok_and(is_error_result);
            }
            answer.outcome
        }
    }
}

/// Executes a request about a running task. Neither the concurrency nor the rate limit is charged again.
pub(crate) async fn execute_unmetered(
    gate: &Arc<AdmissionGate>,
    module: &Module,
    what: String,
    invocation: Invocation,
    mut context: CallContext,
    audit: &mut Audit<'_>,
) -> Result<Raw, Error> {
    audit.runs(&gate.meter, &module.name, invocation.method, what);
    audit.details.attempts = 1;
    let request = SourceRequest::begin(&gate.meter, module, &invocation, &mut context);
    let call = AssertUnwindSafe(module.source.call(invocation, context)).catch_unwind();
    let outcome = match tokio::time::timeout(gate.throttle.timeout, call).await {
        Ok(outcome) => outcome.unwrap_or_else(|_| Err(panicked(module))),
        Err(_) => Err(timed_out(&module.name, gate.throttle.timeout)),
    };
    audit.details.tool_error = request.end(&outcome) == Some(TOOL_ERROR);
    outcome
}

async fn run(
    gate: &Arc<AdmissionGate>,
    module: &Module,
    terms: &CallSettings,
    invocation: Invocation,
    context: CallContext,
    details: &mut CallDetails,
) -> Result<Raw, Error> {
    let account = context.account.clone();
    let account = account.as_ref();
    let mut step = TraceStep::begin(gate.meter.tracer(), "queue", &context.origin);
    let turn = gate.enter(&module.name, account, &context.session.caller).await;
    let turn = turn.inspect_err(|error| step.fail(error.code()))?;
    drop(step);
    let deadline = Deadline::new(Arc::clone(&context.back), Arc::clone(gate), turn.share(), terms.timeout);
    let _permits = CallPermits { turn: Some(turn), deadline: Arc::clone(&deadline) };
    let context = CallContext { back: Arc::new(ExtendingBackchannel(Arc::clone(&deadline))), ..context };
    let CallDetails { attempts, tool_error, .. } = details;
    let mut attempt = async |invocation, context, made| {
        let attempt = gate.health.attempt(&module.name, account, made == 0)?;
        let outcome = once(gate, module, &deadline, (invocation, made), context, tool_error).await;
        attempt.close(&outcome, terms.has_short_timeout);
        outcome
    };
    let Some(retry) = terms.retry else {
        *attempts = 1;
        return attempt(invocation, context, 0).await;
    };
    loop {
        *attempts += 1;
        let outcome = attempt(invocation.clone(), context.clone(), *attempts - 1).await;
        let Err(error) = &outcome else { return outcome };
        match backoff((gate, account), retry, *attempts, error, deadline.left()) {
            Some(backoff) => {
                gate.meter.retried();
                let _step = TraceStep::begin(gate.meter.tracer(), "pause before another attempt", &context.origin);
                tokio::time::sleep(backoff).await;
            }
            None => return outcome,
        }
    }
}

/// Makes one attempt, bounded by the deadline. A panic fails this call alone.
async fn once(
    gate: &AdmissionGate,
    module: &Module,
    deadline: &Deadline,
    (invocation, made): (Invocation, u32),
    mut context: CallContext,
    tool_error: &mut bool,
) -> Result<Raw, Error> {
    let mut request = SourceRequest::begin(&gate.meter, module, &invocation, &mut context);
    request.set_attempts(made);
    let call = AssertUnwindSafe(module.source.call(invocation, context)).catch_unwind();
    let outcome = tokio::select! {
        biased;
        outcome = call => outcome.unwrap_or_else(|_| Err(panicked(module))),
        () = deadline.expired() => Err(timed_out(&module.name, deadline.timeout)),
    };
    *tool_error = request.end(&outcome) == Some(TOOL_ERROR);
    outcome
}

/// Returns the delay before the next attempt, or `None` if the call is not repeated. `made` counts the attempts so far.
fn backoff(
    (gate, account): (&AdmissionGate, Option<&Arc<str>>),
    retry: RetryPolicy,
    made: u32,
    error: &Error,
    left: Duration,
) -> Option<Duration> {
    let allowed = made <= retry.attempts && error.kind.definition().retry;
    let backoff = retry::backoff(retry, made - 1, random::share()).max(error.retry_after.unwrap_or_default());
    // The budget comes last: asking for a retry spends it.
    (allowed && backoff < left && gate.may_retry(account)).then_some(backoff)
}

/// The permits of a running call. Permits released during a question are not returned a second time.
struct CallPermits<'a> {
    turn: Option<CallPermit<'a>>,
    deadline: Arc<Deadline>,
}

impl Drop for CallPermits<'_> {
    fn drop(&mut self) {
        if let Some(turn) = self.turn.take().filter(|_| self.deadline.has_released_permits()) {
            turn.forget();
        }
    }
}

fn panicked(module: &Module) -> Error {
    Error::new(ErrorKind::Internal, format!("The call to `{}` failed inside hikite.", module.name))
}

fn timed_out(module: &str, timeout: Duration) -> Error {
    let seconds = timeout.as_secs_f64();
    let error = Error::new(ErrorKind::Timeout, format!("`{module}` did not answer within {seconds} s."))
        .hint(format!("Ask for less, or increase `timeout` of the call, of the tool or of `{module}`."));
    let timeout_ms = u32::try_from(timeout.as_millis()).ok().and_then(NonZeroU32::new);
    Error { timeout_ms, ..error }
}

#[cfg(test)]
mod tests;

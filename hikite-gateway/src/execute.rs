//! The one path of an allowed call: result cache, admission, deadline, circuit breaker, source, and retries where they
//! are allowed.

use std::num::NonZeroU32;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use hikite_core::about::Retry;
use hikite_core::catalog::Module;
use hikite_core::error::{Error, Kind};
use hikite_core::json::Raw;
use hikite_core::retry;
use hikite_core::source::{CallContext, Invocation};

use crate::audit::{Audit, Course};
use crate::cache::Cache;
use crate::deadline::{Deadline, Extending};
use crate::gate::{Gate, Turn};
use crate::meter::{TOOL_ERROR, says_error};
use crate::random;
use crate::request::Request;
use crate::terms::Terms;
use crate::trace::Step;

/// A call to execute. `what` names it in the audit record.
pub(crate) struct Call {
    pub(crate) what: String,
    pub(crate) terms: Terms,
    pub(crate) invocation: Invocation,
}

/// Executes one invocation.
pub(crate) async fn execute(
    cache: &Cache,
    gate: &Arc<Gate>,
    module: &Module,
    call: Call,
    context: CallContext,
    audit: &mut Audit<'_>,
) -> Result<Raw, Error> {
    let Call { what, terms, invocation } = call;
    audit.runs(&gate.meter, &module.name, invocation.method, what);
    let course = &mut audit.course;
    match &terms.keep {
        None => run(gate, module, &terms, invocation, context, course).await,
        Some(keep) => {
            let running = run(gate, module, &terms, invocation, context, course);
            // Boxed, so that calls without caching do not carry the size of this future.
            let answer = Box::pin(cache.answer(keep, terms.timeout, running)).await;
            course.cached = answer.again;
            if answer.again {
                gate.meter.cache_hit();
                course.tool_error = answer.outcome.as_ref().is_ok_and(says_error);
            }
            answer.outcome
        }
    }
}

/// Executes a request about a running task. Neither the concurrency nor the rate limit is charged again.
pub(crate) async fn execute_aside(
    gate: &Arc<Gate>,
    module: &Module,
    what: String,
    invocation: Invocation,
    mut context: CallContext,
    audit: &mut Audit<'_>,
) -> Result<Raw, Error> {
    audit.runs(&gate.meter, &module.name, invocation.method, what);
    audit.course.attempts = 1;
    let request = Request::begin(&gate.meter, module, &invocation, &mut context);
    let call = AssertUnwindSafe(module.source.call(invocation, context)).catch_unwind();
    let outcome = match tokio::time::timeout(gate.throttle.timeout, call).await {
        Ok(outcome) => outcome.unwrap_or_else(|_| Err(panicked(module))),
        Err(_) => Err(timed_out(&module.name, gate.throttle.timeout)),
    };
    audit.course.tool_error = request.end(&outcome) == Some(TOOL_ERROR);
    outcome
}

async fn run(
    gate: &Arc<Gate>,
    module: &Module,
    terms: &Terms,
    invocation: Invocation,
    context: CallContext,
    course: &mut Course,
) -> Result<Raw, Error> {
    let account = context.account.clone();
    let account = account.as_ref();
    let mut step = Step::begin(gate.meter.tracer(), "queue", &context.origin);
    let turn = gate.enter(&module.name, account, &context.session.caller).await;
    let turn = turn.inspect_err(|error| step.fail(error.code()))?;
    drop(step);
    let deadline = Deadline::new(Arc::clone(&context.back), Arc::clone(gate), turn.share(), terms.timeout);
    let _place = Place { turn: Some(turn), deadline: Arc::clone(&deadline) };
    let context = CallContext { back: Arc::new(Extending(Arc::clone(&deadline))), ..context };
    let Course { attempts, tool_error, .. } = course;
    let mut attempt = async |invocation, context, made| {
        let attempt = gate.health.attempt(&module.name, account, made == 0)?;
        let outcome = once(gate, module, &deadline, (invocation, made), context, tool_error).await;
        attempt.close(&outcome, terms.hasty);
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
        match pause((gate, account), retry, *attempts, error, deadline.left()) {
            Some(pause) => {
                gate.meter.retried();
                let _step = Step::begin(gate.meter.tracer(), "pause before another attempt", &context.origin);
                tokio::time::sleep(pause).await;
            }
            None => return outcome,
        }
    }
}

/// Makes one attempt, bounded by the deadline. A panic fails this call alone.
async fn once(
    gate: &Gate,
    module: &Module,
    deadline: &Deadline,
    (invocation, made): (Invocation, u32),
    mut context: CallContext,
    tool_error: &mut bool,
) -> Result<Raw, Error> {
    let mut request = Request::begin(&gate.meter, module, &invocation, &mut context);
    request.is_again(made);
    let call = AssertUnwindSafe(module.source.call(invocation, context)).catch_unwind();
    let outcome = tokio::select! {
        biased;
        outcome = call => outcome.unwrap_or_else(|_| Err(panicked(module))),
        () = deadline.expired() => Err(timed_out(&module.name, deadline.timeout)),
    };
    *tool_error = request.end(&outcome) == Some(TOOL_ERROR);
    outcome
}

/// Returns the delay before the next attempt, or `None` if there is to be none.
fn pause(
    (gate, account): (&Gate, Option<&Arc<str>>),
    retry: Retry,
    made: u32,
    error: &Error,
    left: Duration,
) -> Option<Duration> {
    let allowed = made <= retry.attempts && error.kind.face().retry;
    let pause = retry::pause(retry, made - 1, random::share()).max(error.retry_after.unwrap_or_default());
    // The budget comes last: asking for a retry spends it.
    (allowed && pause < left && gate.may_try_again(account)).then_some(pause)
}

/// The permits of a running call. Permits released during a question are not returned a second time.
struct Place<'a> {
    turn: Option<Turn<'a>>,
    deadline: Arc<Deadline>,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        if let Some(turn) = self.turn.take().filter(|_| self.deadline.is_away()) {
            turn.forget();
        }
    }
}

fn panicked(module: &Module) -> Error {
    Error::new(Kind::Internal, format!("the call of `{}` failed inside hikite", module.name))
}

fn timed_out(module: &str, timeout: Duration) -> Error {
    let seconds = timeout.as_secs_f64();
    let error = Error::new(Kind::Timeout, format!("`{module}` did not answer within {seconds} s")).hint(
        format!("ask for less, or give it more time: `timeout` of the call, of the tool or of `{module}`"),
    );
    let after_ms = u32::try_from(timeout.as_millis()).ok().and_then(NonZeroU32::new);
    Error { after_ms, ..error }
}

#[cfg(test)]
mod tests;

//! The one path of a call, once it is known to be allowed: audit record, turn, deadline, source.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use hikite_core::catalog::Module;
use hikite_core::error::{Error, Kind};
use hikite_core::json::Raw;
use hikite_core::source::{CallContext, Invocation};

use crate::audit::Audit;
use crate::deadline::{Deadline, Extending};
use crate::gate::{Gate, Turn};
use crate::request::Request;

/// Runs one invocation. `what` names it in the audit record.
pub(crate) async fn execute(
    gate: &Arc<Gate>,
    module: &Module,
    what: String,
    invocation: Invocation,
    context: CallContext,
) -> Result<Raw, Error> {
    let audit = Audit::open(&gate.meter, &context, &module.name, invocation.method, what);
    let outcome = run(gate, module, invocation, context).await;
    audit.close(&outcome);
    outcome
}

/// The same for what is asked of a task that runs already: neither its turn nor its rate is counted again.
pub(crate) async fn execute_aside(
    gate: &Arc<Gate>,
    module: &Module,
    what: String,
    invocation: Invocation,
    mut context: CallContext,
) -> Result<Raw, Error> {
    let audit = Audit::open(&gate.meter, &context, &module.name, invocation.method, what);
    let request = Request::begin(&gate.meter, module, &invocation, &mut context);
    let call = AssertUnwindSafe(module.source.call(invocation, context)).catch_unwind();
    let outcome = match tokio::time::timeout(gate.throttle.timeout, call).await {
        Ok(outcome) => outcome.unwrap_or_else(|_| Err(panicked(module))),
        Err(_) => Err(timed_out(&module.name, gate)),
    };
    request.end(&outcome);
    audit.close(&outcome);
    outcome
}

async fn run(
    gate: &Arc<Gate>,
    module: &Module,
    invocation: Invocation,
    context: CallContext,
) -> Result<Raw, Error> {
    let turn = gate.enter(&module.name).await?;
    let deadline = Deadline::new(Arc::clone(&context.back), Arc::clone(gate));
    let _place = Place { turn: Some(turn), deadline: Arc::clone(&deadline) };
    let mut context = CallContext { back: Arc::new(Extending(Arc::clone(&deadline))), ..context };
    let request = Request::begin(&gate.meter, module, &invocation, &mut context);
    // A panic fails this call alone.
    let call = AssertUnwindSafe(module.source.call(invocation, context)).catch_unwind();
    let outcome = tokio::select! {
        biased;
        outcome = call => outcome.unwrap_or_else(|_| Err(panicked(module))),
        () = deadline.expired() => Err(timed_out(&module.name, gate)),
    };
    request.end(&outcome);
    outcome
}

/// The place of a running call; what was lent meanwhile is not given back a second time.
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

fn timed_out(module: &str, gate: &Gate) -> Error {
    let seconds = gate.throttle.timeout.as_secs_f64();
    Error::new(Kind::Timeout, format!("`{module}` did not answer within {seconds} s"))
        .hint(format!("ask for less, or raise `mcpServers.{module}.timeout`"))
}

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
use crate::gate::Gate;

/// Runs one invocation. `what` names it in the audit record.
pub(crate) async fn execute(
    gate: &Gate,
    module: &Module,
    what: String,
    invocation: Invocation,
    context: CallContext,
) -> Result<Raw, Error> {
    let audit = Audit::open(Arc::clone(&context.session), Arc::clone(&module.name), what);
    let outcome = run(gate, module, invocation, context).await;
    audit.close(&outcome);
    outcome
}

async fn run(
    gate: &Gate,
    module: &Module,
    invocation: Invocation,
    context: CallContext,
) -> Result<Raw, Error> {
    let _turn = gate.enter(&module.name).await?;
    let deadline = Deadline::new(Arc::clone(&context.back), gate.throttle.timeout);
    let context = CallContext { back: Arc::new(Extending(Arc::clone(&deadline))), ..context };
    // A panic fails this call alone.
    let call = AssertUnwindSafe(module.source.call(invocation, context)).catch_unwind();
    tokio::select! {
        biased;
        outcome = call => outcome.unwrap_or_else(|_| {
            Err(Error::new(Kind::Internal, format!("the call of `{}` failed inside hikite", module.name)))
        }),
        () = deadline.expired() => Err(timed_out(&module.name, gate)),
    }
}

fn timed_out(module: &str, gate: &Gate) -> Error {
    let seconds = gate.throttle.timeout.as_secs_f64();
    Error::new(Kind::Timeout, format!("`{module}` did not answer within {seconds} s"))
        .hint(format!("ask for less, or raise `mcpServers.{module}.timeout`"))
}

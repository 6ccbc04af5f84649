//! Backchannel of one task of a batch. Log messages of its server reach the client; progress notifications do not,
//! because the batch reports progress in tasks.

use std::sync::Arc;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{Backchannel, BoxFuture, CallContext, InputRequest, InputRequestKind};

/// Hint for a tool that needs to ask its user.
pub(super) const CALL_ALONE_HINT: &str = "Call the tool alone, outside a batch.";

struct TaskBackchannel {
    back: Arc<dyn Backchannel>,
    /// `true` if the client can answer questions while the batch runs. A client that answers with its next request
    /// would leave all running tasks waiting.
    asks: bool,
}

/// Wraps the context of a batch for one of its tasks.
pub(super) fn task_context(context: CallContext) -> CallContext {
    let back = Arc::new(TaskBackchannel { back: context.back, asks: !context.accepts_input_required });
    CallContext { back, ..context }
}

impl Backchannel for TaskBackchannel {
    fn progress(&self, _: Object) {}

    fn log(&self, params: Raw) {
        self.back.log(params);
    }

    // A question that one task could not ask is reported with that task, not instead of the others.
    fn capability_missing(&self, _: InputRequestKind) {}

    fn ask(&self, question: InputRequest) -> BoxFuture<'static, Result<Raw, Raw>> {
        if self.asks {
            return self.back.ask(question);
        }
        let refused = Error::new(ErrorKind::MethodNotFound, "Tools cannot ask the user anything in a batch.")
            .hint(CALL_ALONE_HINT);
        Box::pin(std::future::ready(Err(refused.rpc())))
    }
}

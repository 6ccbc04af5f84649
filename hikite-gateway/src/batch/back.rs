//! Backchannel of one task of a batch. Log messages of its server reach the client; progress notifications do not,
//! because the batch reports progress in tasks.

use std::sync::Arc;

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{Backchannel, BoxFuture, CallContext, Question, QuestionKind};

/// Hint for a tool that needs to ask its user.
pub(super) const ALONE: &str = "call the tool alone, outside a batch";

struct Inside {
    back: Arc<dyn Backchannel>,
    /// `true` if the client can answer questions while the batch runs. A client that answers with its next request
    /// would leave all running tasks waiting.
    asks: bool,
}

/// Wraps the context of a batch for one of its tasks.
pub(super) fn inside(context: CallContext) -> CallContext {
    let back = Arc::new(Inside { back: context.back, asks: !context.takes_rounds });
    CallContext { back, ..context }
}

impl Backchannel for Inside {
    fn progress(&self, _: Object) {}

    fn log(&self, params: Raw) {
        self.back.log(params);
    }

    // A question that one task could not ask is reported with that task, not instead of the others.
    fn lacks(&self, _: QuestionKind) {}

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Raw, Raw>> {
        if self.asks {
            return self.back.ask(question);
        }
        let refused = Error::new(Kind::MethodNotFound, "nobody can be asked anything in a batch").hint(ALONE);
        Box::pin(std::future::ready(Err(refused.rpc())))
    }
}

//! The way back of one task: what a server says reaches the client of the batch, but how far its own call is does not;
//! the batch counts tasks.

use std::sync::Arc;

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{Backchannel, BoxFuture, CallContext, Question, QuestionKind};

/// What to do about a tool that needs its user.
pub(super) const ALONE: &str = "call the tool alone, outside a batch";

struct Inside {
    back: Arc<dyn Backchannel>,
    /// Whether the client can be asked while the batch runs. One that answers with its next request would have to
    /// leave everything else that runs waiting.
    asks: bool,
}

/// The context of a task in a batch with this one.
pub(super) fn inside(context: CallContext) -> CallContext {
    let back = Arc::new(Inside { back: context.back, asks: !context.takes_rounds });
    CallContext { back, ..context }
}

impl Backchannel for Inside {
    fn progress(&self, _: Object) {}

    fn log(&self, params: Raw) {
        self.back.log(params);
    }

    // What one task could not ask is told with that task, not instead of all the others.
    fn lacks(&self, _: QuestionKind) {}

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Raw, Raw>> {
        if self.asks {
            return self.back.ask(question);
        }
        let refused = Error::new(Kind::MethodNotFound, "nobody can be asked anything in a batch").hint(ALONE);
        Box::pin(std::future::ready(Err(refused.rpc())))
    }
}

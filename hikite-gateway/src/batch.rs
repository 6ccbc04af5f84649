//! Many calls in one: a plan is checked whole before anything runs, then its tasks run side by side as far as they may,
//! each on the same path as a single call.

use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::plan::OnError;
use hikite_core::source::CallContext;

use crate::audit::Audit;
use crate::gateway::Gateway;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Batch {
    /// An array of tasks, or a string with one task per line.
    pub commands: Raw,
    /// Check and tell, but run nothing.
    pub dry_run: bool,
    pub concurrency: Option<usize>,
    pub on_error: OnError,
    /// Those of `tools/call`: what is in `_meta` goes along with every task.
    pub params: Object,
}

impl Gateway {
    pub(crate) async fn batch(
        &self,
        batch: Batch,
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        let _ = (batch, context, audit, self);
        std::future::ready(Err(Error::new(Kind::Internal, "no batch yet"))).await
    }
}

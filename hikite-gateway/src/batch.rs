//! Many calls in one: a plan is checked whole before anything runs, then its tasks run side by side as far as they may,
//! each on the same path as a single call. Nothing runs on when nobody waits for it any more.

mod back;
mod board;
mod budget;
mod check;
mod observe;
mod preview;
mod report;
mod run;
#[cfg(test)]
mod tests;

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::plan::OnError;
use hikite_core::share::ShareHolder;
use hikite_core::source::{BoxFuture, CallContext};

use crate::aside::by_cost;
use crate::audit::Audit;
use crate::command::Command;
use crate::gateway::Gateway;
use observe::Progress;
use run::Run;

pub use observe::{Ending, Observer, Silent};
pub use report::Report;

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
    /// Runs a batch for a program or a person, who is told how it goes; `surface` is where it came from.
    pub async fn run_batch(
        &self,
        surface: &'static str,
        batch: Batch,
        context: CallContext,
        observer: &dyn Observer,
    ) -> Result<Report, Error> {
        let command = Command::Batch(batch.clone());
        let mut audit = self.audit(surface, &command, &context).await?;
        let outcome = match context.session.caller.must_have(command.scope()) {
            Ok(()) => self.report(batch, context, &mut audit, observer).await,
            Err(error) => Err(error),
        };
        audit.close(&outcome.as_ref().map(|report| report.document.clone()).map_err(Clone::clone));
        self.release(outcome).await
    }

    /// The same as the result of a tool; its client is told of every task that ends. The future has a type of its own
    /// because each task comes back to the path that led here.
    pub(crate) fn batch<'a>(
        &'a self,
        batch: Batch,
        context: CallContext,
        audit: &'a mut Audit<'_>,
    ) -> BoxFuture<'a, Result<Raw, Error>> {
        Box::pin(async move {
            let progress = Progress::to(&context.back);
            let report = self.report(batch, context, audit, &progress).await?;
            Ok(report.result())
        })
    }

    async fn report(
        &self,
        batch: Batch,
        context: CallContext,
        audit: &mut Audit<'_>,
        observer: &dyn Observer,
    ) -> Result<Report, Error> {
        let checked = self.check_batch(&batch, &context.session).await?;
        audit.allowed(format!("{} tasks", checked.plan.tasks.len()));
        if batch.dry_run {
            return Ok(by_cost(preview::cost(&checked), || preview::preview(&checked)).await);
        }
        let _place = self.batches.take_free(&ShareHolder::from(&context.session.caller), ())?;
        let run = Run::new(self, &checked.plan, (audit.surface(), batch, context), observer);
        let report = report::report(&checked.plan, run.to_the_end().await);
        audit.course.tool_error = report.failed;
        Ok(report)
    }
}

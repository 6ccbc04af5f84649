//! Batches: a plan is checked as a whole before anything runs, then its tasks run concurrently, each on the path of a
//! single call. Everything stops when the caller stops waiting.

mod backchannel;
mod budget;
mod check;
mod observer;
mod preview;
mod report;
mod run;
mod task_result;
#[cfg(test)]
mod tests;

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::plan::OnError;
use hikite_core::share::ShareHolder;
use hikite_core::source::{BoxFuture, CallContext};

use crate::audit::Audit;
use crate::command::Command;
use crate::gateway::Gateway;
use crate::off_worker::off_worker;
use observer::ProgressObserver;
use run::BatchRun;

pub use observer::{Observer, SilentObserver, TaskCompletion};
pub use report::BatchReport;

/// A batch request.
#[derive(Clone, Debug)]
pub struct Batch {
    /// An array of tasks, or a string with one task per line.
    pub commands: Raw,
    /// Check and report, but run nothing.
    pub dry_run: bool,
    pub concurrency: Option<usize>,
    pub on_error: OnError,
    /// Params of the `tools/call`; its `_meta` accompanies every task.
    pub params: Object,
}

impl Gateway {
    /// Runs a batch and reports progress to the observer. `surface` names the origin of the request.
    pub async fn run_batch(
        &self,
        surface: &'static str,
        batch: Batch,
        context: CallContext,
        observer: &dyn Observer,
    ) -> Result<BatchReport, Error> {
        let command = Command::Batch(batch.clone());
        let mut audit = self.audit(surface, &command, &context).await?;
        let outcome = match context.session.caller.require(command.scope()) {
            Ok(()) => self.report(batch, context, &mut audit, observer).await,
            Err(error) => Err(error),
        };
        audit.close(&outcome.as_ref().map(|report| report.document.clone()).map_err(Clone::clone));
        self.release(outcome).await
    }

    /// Runs a batch as a tool call, with progress notifications to its client. The future is boxed because each task
    /// re-enters the dispatch path that led here.
    pub(crate) fn batch<'a>(
        &'a self,
        batch: Batch,
        context: CallContext,
        audit: &'a mut Audit<'_>,
    ) -> BoxFuture<'a, Result<Raw, Error>> {
        Box::pin(async move {
            let progress = ProgressObserver::to(&context.back);
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
    ) -> Result<BatchReport, Error> {
        let checked = self.check_batch(&batch, &context.session).await?;
        audit.allowed(format!("{} tasks", checked.plan.tasks.len()));
        if batch.dry_run {
            return Ok(off_worker(preview::cost(&checked), || preview::preview(&checked)).await);
        }
        let _place = self.batches.take_free(&ShareHolder::from(&context.session.caller), ())?;
        let run = BatchRun::new(self, &checked.plan, (audit.surface(), batch, context), observer);
        let report = report::report(&checked.plan, run.run_to_end().await);
        audit.details.tool_error = report.failed;
        Ok(report)
    }
}

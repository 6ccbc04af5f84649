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

use std::sync::Arc;

use hikite_core::error::Error;
use hikite_core::json::Raw;
use hikite_core::limits::Limits;
use hikite_core::share::ShareHolder;
use hikite_core::source::CallContext;

use crate::answers::Answers;
use crate::audit::{Audit, Auditor};
use crate::catalogs::Catalogs;
use crate::command::{Batch, Command};
use crate::executor::Executor;
use crate::lookup::Lookup;
use crate::off_worker::off_worker;
use crate::search::Search;
use crate::share::SharedSlots;
use observer::ProgressObserver;
use run::BatchRun;

pub use observer::{Observer, SilentObserver, TaskCompletion};
pub use report::BatchReport;

pub struct Batches {
    pub(crate) limits: Arc<Limits>,
    pub(crate) catalogs: Arc<Catalogs>,
    pub(crate) lookup: Lookup,
    pub(crate) auditor: Arc<Auditor>,
    pub(crate) executor: Arc<Executor>,
    pub(crate) answers: Arc<Answers>,
    pub(crate) search: Arc<Search>,
    /// Limit on batches that run at the same time.
    pub(crate) slots: SharedSlots<()>,
}

impl std::fmt::Debug for Batches {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Batches").finish_non_exhaustive()
    }
}

impl Batches {
    /// Runs a batch and reports progress to the observer. `surface` names the origin of the request.
    pub async fn run(
        &self,
        surface: &'static str,
        batch: Batch,
        context: CallContext,
        observer: &dyn Observer,
    ) -> Result<BatchReport, Error> {
        let command = Command::Batch(batch.clone());
        let mut audit = self.auditor.open(surface, &command, &context).await?;
        let outcome = match context.session.caller.require(command.scope()) {
            Ok(()) => self.report(batch, context, &mut audit, observer).await,
            Err(error) => Err(error),
        };
        audit.close(&outcome.as_ref().map(|report| report.document.clone()).map_err(Clone::clone));
        self.auditor.release(outcome).await
    }

    /// Runs a batch as a tool call, with progress notifications to its client.
    pub(crate) async fn run_as_tool(
        &self,
        batch: Batch,
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        let progress = ProgressObserver::to(&context.back);
        let report = self.report(batch, context, audit, &progress).await?;
        Ok(report.result())
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
        let _place = self.slots.take_free(&ShareHolder::from(&context.session.caller), ())?;
        let run = BatchRun::new(self, &checked.plan, (audit.surface(), batch, context), observer);
        let report = report::report(&checked.plan, run.run_to_end().await);
        audit.details.tool_error = report.failed;
        Ok(report)
    }
}

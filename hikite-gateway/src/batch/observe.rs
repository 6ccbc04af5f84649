//! Observers of a running batch.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::json::{Object, Raw};
use hikite_core::plan::{Plan, Status, Task};
use hikite_core::source::Backchannel;

use super::report::milliseconds;

/// Receives the events of a batch. Called from the batch itself, so it must not block.
pub trait Observer: Send + Sync {
    /// Called once, after all checks passed and before the first task starts.
    fn begins(&self, _: &Plan) {}
    /// Called when the task at this index of the plan starts.
    fn starts(&self, _: usize) {}
    fn ends(&self, ending: &Ending<'_>);
}

/// A finished task.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'a> {
    /// Index in the plan.
    pub at: usize,
    pub task: &'a Task,
    pub status: Status,
    pub took: Duration,
    /// Number of finished tasks including this one, followed by the number of all tasks.
    pub done: usize,
    pub total: usize,
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Observer for Silent {
    fn ends(&self, _: &Ending<'_>) {}
}

/// Sends progress notifications to the client that requested the batch, if it wants them.
pub(super) struct Progress(Arc<dyn Backchannel>);

impl Progress {
    pub(super) fn to(back: &Arc<dyn Backchannel>) -> Self {
        Self(Arc::clone(back))
    }
}

impl Observer for Progress {
    fn ends(&self, ending: &Ending<'_>) {
        let message = ending.to_string();
        let count = |count: usize| Raw::of(&count);
        let progress = Object::default().with("progress", count(ending.done));
        self.0.progress(progress.with("total", count(ending.total)).with("message", message));
    }
}

impl std::fmt::Display for Ending<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.task.id, self.status.name())?;
        match self.status {
            Status::Skipped | Status::Cancelled => Ok(()),
            _ => write!(f, " ({} ms)", milliseconds(self.took)),
        }
    }
}

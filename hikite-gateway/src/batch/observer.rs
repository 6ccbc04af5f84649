//! Observers of a running batch.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::json::{Object, Raw};
use hikite_core::plan::{Plan, Task, TaskStatus};
use hikite_core::source::Backchannel;

use super::report::milliseconds;

/// Receives the events of a batch. Called from the batch itself, so it must not block.
pub trait Observer: Send + Sync {
    /// Called once, after all checks passed and before the first task starts.
    fn begins(&self, _: &Plan) {}
    /// Called when the task at this index of the plan starts.
    fn starts(&self, _: usize) {}
    fn ends(&self, ending: &TaskCompletion<'_>);
}

/// A finished task.
#[derive(Clone, Copy, Debug)]
pub struct TaskCompletion<'a> {
    /// Index in the plan.
    pub at: usize,
    pub task: &'a Task,
    pub status: TaskStatus,
    pub took: Duration,
    /// Number of finished tasks including this one, followed by the number of all tasks.
    pub done: usize,
    pub total: usize,
}

/// An observer that ignores everything.
#[derive(Clone, Copy, Debug)]
pub struct SilentObserver;

impl Observer for SilentObserver {
    fn ends(&self, _: &TaskCompletion<'_>) {}
}

/// Sends progress notifications to the client that requested the batch, if it wants them.
pub(super) struct ProgressObserver(Arc<dyn Backchannel>);

impl ProgressObserver {
    pub(super) fn to(back: &Arc<dyn Backchannel>) -> Self {
        Self(Arc::clone(back))
    }
}

impl Observer for ProgressObserver {
    fn ends(&self, ending: &TaskCompletion<'_>) {
        let message = ending.to_string();
        let count = |count: usize| Raw::of(&count);
        let progress = Object::default().with("progress", count(ending.done));
        self.0.progress(progress.with("total", count(ending.total)).with("message", message));
    }
}

impl std::fmt::Display for TaskCompletion<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.task.id, self.status.name())?;
        match self.status {
            TaskStatus::Skipped | TaskStatus::Cancelled => Ok(()),
            _ => write!(f, " ({} ms)", milliseconds(self.took)),
        }
    }
}

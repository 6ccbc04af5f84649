//! Who is told how a batch goes.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::json::{Object, Raw};
use hikite_core::plan::{Plan, Status, Task};
use hikite_core::source::Backchannel;

use super::report::milliseconds;

/// Called from the batch itself; must not block.
pub trait Observer: Send + Sync {
    /// Everything is right, and it begins.
    fn begins(&self, _: &Plan) {}
    /// A task begins: its place in the plan.
    fn starts(&self, _: usize) {}
    fn ends(&self, ending: &Ending<'_>);
}

/// A task has ended.
#[derive(Clone, Copy, Debug)]
pub struct Ending<'a> {
    /// Its place in the plan.
    pub at: usize,
    pub task: &'a Task,
    pub status: Status,
    pub took: Duration,
    /// Tasks that have ended, with this one, and all there are.
    pub done: usize,
    pub total: usize,
}

/// Nobody.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Observer for Silent {
    fn ends(&self, _: &Ending<'_>) {}
}

/// The client that asked for the batch, if it wants progress.
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

//! The pure part of batch execution: tasks, references between them, their order, and the fate of tasks that cannot
//! run.

pub mod condition;
mod graph;
pub mod parser;
pub(crate) mod reference;
pub mod schedule;
pub mod template;

use std::sync::Arc;
use std::time::Duration;

use crate::key::ToolKey;
use crate::selector::Selector;

pub use condition::TaskCondition;
pub use schedule::{Schedule, ScheduleStep};
pub use template::{JsonTemplate, ReferenceScope, UnresolvedReference};

/// A validated batch: ids are unique, references resolve to tasks, and there are no dependency cycles.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Tasks in the order in which they were sent.
    pub tasks: Vec<Task>,
}

#[derive(Clone, Debug)]
pub struct Task {
    pub id: Arc<str>,
    pub tool: ToolKey,
    /// Arguments; resolves to an object.
    pub params: JsonTemplate,
    pub output: TaskOutput,
    pub select: Option<Selector>,
    pub condition: Option<TaskCondition>,
    /// List for whose elements the tool runs once each.
    pub for_each: Option<JsonTemplate>,
    pub on_error: OnError,
    pub timeout: Option<Duration>,
    pub account: Option<String>,
    /// Indexes of the tasks it depends on, sorted and unique: those in `after` and those it references.
    pub after: Vec<usize>,
}

/// Form of a task's result in the batch response.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TaskOutput {
    #[default]
    None,
    Compact,
    Raw,
}

/// Effect of a task's failure on other tasks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// Dependents are skipped; other tasks continue.
    #[default]
    Skip,
    /// Dependents still run; references to the failed task are unresolved.
    Continue,
    /// All other tasks are cancelled.
    FailFast,
}

impl OnError {
    pub const ALL: [(&'static str, Self); 3] =
        [("skip", Self::Skip), ("continue", Self::Continue), ("fail_fast", Self::FailFast)];
}

/// Final status of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    Ok,
    Error,
    Skipped,
    Timeout,
    Cancelled,
}

impl TaskStatus {
    pub const ALL: [Self; 5] = [Self::Ok, Self::Error, Self::Skipped, Self::Timeout, Self::Cancelled];

    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Skipped => "skipped",
            Self::Timeout => "timeout",
            Self::Cancelled => "cancelled",
        }
    }
}

impl Plan {
    /// Groups tasks into waves: each task depends only on tasks of earlier waves.
    pub fn waves(&self) -> Vec<Vec<usize>> {
        let after: Vec<&[usize]> = self.tasks.iter().map(|task| task.after.as_slice()).collect();
        waves(&after).unwrap_or_default()
    }
}

/// Groups the nodes of a dependency graph into waves. `after` lists the dependencies of each node. Returns `None` if
/// there is a dependency cycle.
pub fn waves(after: &[&[usize]]) -> Option<Vec<Vec<usize>>> {
    let mut waves: Vec<Vec<usize>> = Vec::new();
    for (place, wave) in graph::waves(after).into_iter().enumerate() {
        let wave = wave?;
        if waves.len() <= wave {
            waves.resize_with(wave + 1, Vec::new);
        }
        waves[wave].push(place);
    }
    Some(waves)
}

#[cfg(test)]
mod tests;

//! A batch before and while it runs, as far as that is pure: tasks, what they refer to, in which order they may run and
//! what becomes of those that cannot.

pub mod condition;
mod graph;
pub mod read;
pub(crate) mod reference;
pub mod schedule;
pub mod template;

use std::sync::Arc;
use std::time::Duration;

use crate::key::ToolKey;
use crate::select::Selector;

pub use condition::Condition;
pub use schedule::{Schedule, Step};
pub use template::{Missing, Scope, Template};

/// Tasks that were checked: their ids are known, and nothing waits for itself.
#[derive(Clone, Debug)]
pub struct Plan {
    /// In the order they were given.
    pub tasks: Vec<Task>,
}

#[derive(Clone, Debug)]
pub struct Task {
    pub id: Arc<str>,
    pub tool: ToolKey,
    /// An object.
    pub params: Template,
    pub output: Output,
    pub select: Option<Selector>,
    pub condition: Option<Condition>,
    /// A list, for each element of which the tool is run once.
    pub for_each: Option<Template>,
    pub on_error: OnError,
    pub timeout: Option<Duration>,
    pub account: Option<String>,
    /// The places of the tasks that it waits for, in order, each once: those of `after` and those it refers to.
    pub after: Vec<usize>,
}

/// Whether a task's result is in the answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Output {
    #[default]
    None,
    Compact,
    Raw,
}

/// What a failure means for the rest.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnError {
    /// What waits for the task is skipped, everything else goes on.
    #[default]
    Skip,
    /// What waits for the task runs all the same; what it refers to is missing.
    Continue,
    /// Everything else is cancelled.
    FailFast,
}

impl OnError {
    pub const ALL: [(&'static str, Self); 3] =
        [("skip", Self::Skip), ("continue", Self::Continue), ("fail_fast", Self::FailFast)];
}

/// How a task ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Ok,
    Error,
    Skipped,
    Timeout,
    Cancelled,
}

impl Status {
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
    /// Tasks in waves: each waits for tasks of earlier waves alone.
    pub fn waves(&self) -> Vec<Vec<usize>> {
        let after: Vec<&[usize]> = self.tasks.iter().map(|task| task.after.as_slice()).collect();
        waves(&after).unwrap_or_default()
    }
}

/// The same for whatever else waits for one another: the places of each wave, `None` if some wait in a circle.
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

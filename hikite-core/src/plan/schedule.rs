//! Which task is next while a plan runs. Knows how many may run at once, who waits for whom, and what a failure means.

use super::{Plan, Status};

#[derive(Debug)]
pub struct Schedule<'a> {
    plan: &'a Plan,
    concurrency: usize,
}

/// What to do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Run this task; it counts as running until it is finished.
    Run(usize),
    /// This task ends without having run, because of another.
    Skip { task: usize, cause: usize },
    /// This task ends as cancelled, because of another; if it runs it is stopped. It is finished by that.
    Cancel(usize),
}

impl<'a> Schedule<'a> {
    pub fn new(plan: &'a Plan, concurrency: usize) -> Self {
        Self { plan, concurrency }
    }

    /// What can be done at once; `None` while everything that is left waits for what runs, and at the end.
    pub fn step(&mut self) -> Option<Step> {
        let _ = (self.plan, self.concurrency);
        None
    }

    pub fn finish(&mut self, task: usize, status: Status) {
        let _ = (task, status);
    }
}

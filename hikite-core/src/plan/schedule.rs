//! Decides which task of a plan runs next, from the concurrency limit, the dependencies and the failures so far. Runs
//! nothing and waits for nothing: the caller reports finished tasks.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::graph::Dependents;
use super::{OnError, Plan, TaskStatus};

#[derive(Debug)]
pub struct Schedule<'a> {
    plan: &'a Plan,
    concurrency: usize,
    dependents: Dependents,
    states: Vec<TaskState>,
    /// Tasks that can start; the first in plan order is on top.
    ready: BinaryHeap<Reverse<usize>>,
    /// Decided steps that have not been returned yet.
    pending_steps: VecDeque<ScheduleStep>,
    running: usize,
    unfinished: usize,
}

/// Next action for the caller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleStep {
    /// Start this task; it counts as running until `finish`.
    Run(usize),
    /// The task ends without running because of task `cause`.
    Skip { task: usize, cause: usize },
    /// The task ends as cancelled; if it is running, stop it. Do not report it with `finish`.
    Cancel(usize),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TaskState {
    /// Number of unfinished dependencies.
    Waiting(usize),
    Running,
    Ended,
}

impl<'a> Schedule<'a> {
    /// Creates a schedule. A `concurrency` of 0 counts as 1.
    pub fn new(plan: &'a Plan, concurrency: usize) -> Self {
        let states: Vec<TaskState> = plan.tasks.iter().map(|task| TaskState::Waiting(task.after.len())).collect();
        let ready = (0..states.len()).filter(|task| states[*task] == TaskState::Waiting(0)).map(Reverse).collect();
        Self {
            plan,
            concurrency: concurrency.max(1),
            dependents: Dependents::of(plan.tasks.iter().map(|task| task.after.as_slice())),
            unfinished: states.len(),
            states,
            ready,
            pending_steps: VecDeque::new(),
            running: 0,
        }
    }

    /// Returns the next step; `None` while only running tasks can bring progress, and at the end.
    pub fn step(&mut self) -> Option<ScheduleStep> {
        if let Some(step) = self.pending_steps.pop_front() {
            return Some(step);
        }
        if self.running >= self.concurrency {
            return None;
        }
        let Reverse(task) = self.ready.pop()?;
        self.states[task] = TaskState::Running;
        self.running += 1;
        Some(ScheduleStep::Run(task))
    }

    /// Reports that a running task ended; `Skipped` if its `if` did not hold. Ignored if the task is not running.
    pub fn finish(&mut self, task: usize, status: TaskStatus) {
        if self.states.get(task) != Some(&TaskState::Running) {
            return;
        }
        self.end(task);
        let failed = matches!(status, TaskStatus::Error | TaskStatus::Timeout | TaskStatus::Cancelled);
        match self.plan.tasks[task].on_error {
            OnError::FailFast if failed => self.cancel_all(),
            OnError::Skip | OnError::FailFast if status != TaskStatus::Ok => self.skip_dependents(task),
            _ => self.release_dependents(task),
        }
    }

    /// Returns `true` if every task has ended and all steps have been returned.
    pub fn is_finished(&self) -> bool {
        self.unfinished == 0 && self.pending_steps.is_empty()
    }

    fn end(&mut self, task: usize) {
        if self.states[task] == TaskState::Running {
            self.running -= 1;
        }
        self.states[task] = TaskState::Ended;
        self.unfinished -= 1;
    }

    fn release_dependents(&mut self, task: usize) {
        for dependent in self.dependents.get(task) {
            if let TaskState::Waiting(others) = &mut self.states[*dependent] {
                *others -= 1;
                if *others == 0 {
                    self.ready.push(Reverse(*dependent));
                }
            }
        }
    }

    /// Skips all direct and transitive dependents. A skipped task with `on_error: continue` does not skip its own
    /// dependents.
    fn skip_dependents(&mut self, cause: usize) {
        let mut skipped = VecDeque::from([cause]);
        while let Some(task) = skipped.pop_front() {
            if task != cause && self.plan.tasks[task].on_error == OnError::Continue {
                self.release_dependents(task);
                continue;
            }
            for place in 0..self.dependents.get(task).len() {
                let dependent = self.dependents.get(task)[place];
                if self.states[dependent] != TaskState::Ended {
                    self.end(dependent);
                    self.pending_steps.push_back(ScheduleStep::Skip { task: dependent, cause });
                    skipped.push_back(dependent);
                }
            }
        }
    }

    fn cancel_all(&mut self) {
        self.ready.clear();
        for task in 0..self.states.len() {
            if self.states[task] != TaskState::Ended {
                self.end(task);
                self.pending_steps.push_back(ScheduleStep::Cancel(task));
            }
        }
    }
}

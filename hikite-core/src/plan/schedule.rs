//! Which task is next while a plan runs. Knows how many may run at once, who waits for whom, and what a failure means.
//! It runs nothing and waits for nothing: it is told what has ended.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::graph::Dependents;
use super::{OnError, Plan, Status};

#[derive(Debug)]
pub struct Schedule<'a> {
    plan: &'a Plan,
    concurrency: usize,
    dependents: Dependents,
    states: Vec<State>,
    /// The first in the order of the plan is on top.
    ready: BinaryHeap<Reverse<usize>>,
    /// What was decided and not told yet.
    told_next: VecDeque<Step>,
    running: usize,
    left: usize,
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

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// For so many others.
    Waiting(usize),
    Running,
    Ended,
}

impl<'a> Schedule<'a> {
    /// At least one task may run at a time.
    pub fn new(plan: &'a Plan, concurrency: usize) -> Self {
        let states: Vec<State> = plan.tasks.iter().map(|task| State::Waiting(task.after.len())).collect();
        let ready =
            (0..states.len()).filter(|task| states[*task] == State::Waiting(0)).map(Reverse).collect();
        Self {
            plan,
            concurrency: concurrency.max(1),
            dependents: Dependents::of(plan.tasks.iter().map(|task| task.after.as_slice())),
            left: states.len(),
            states,
            ready,
            told_next: VecDeque::new(),
            running: 0,
        }
    }

    /// What can be done at once; `None` while everything that is left waits for what runs, and at the end.
    pub fn step(&mut self) -> Option<Step> {
        if let Some(step) = self.told_next.pop_front() {
            return Some(step);
        }
        if self.running >= self.concurrency {
            return None;
        }
        let Reverse(task) = self.ready.pop()?;
        self.states[task] = State::Running;
        self.running += 1;
        Some(Step::Run(task))
    }

    /// A task that runs has ended; `Skipped` if its `if` did not hold. What is no longer running is left as it is.
    pub fn finish(&mut self, task: usize, status: Status) {
        if self.states.get(task) != Some(&State::Running) {
            return;
        }
        self.end(task);
        let failed = matches!(status, Status::Error | Status::Timeout | Status::Cancelled);
        match self.plan.tasks[task].on_error {
            OnError::FailFast if failed => self.cancel_all(),
            OnError::Skip | OnError::FailFast if status != Status::Ok => self.skip_dependents(task),
            _ => self.release_dependents(task),
        }
    }

    /// Whether every task has ended and was told of.
    pub fn is_over(&self) -> bool {
        self.left == 0 && self.told_next.is_empty()
    }

    fn end(&mut self, task: usize) {
        if self.states[task] == State::Running {
            self.running -= 1;
        }
        self.states[task] = State::Ended;
        self.left -= 1;
    }

    fn release_dependents(&mut self, task: usize) {
        for dependent in self.dependents.get(task) {
            if let State::Waiting(others) = &mut self.states[*dependent] {
                *others -= 1;
                if *others == 0 {
                    self.ready.push(Reverse(*dependent));
                }
            }
        }
    }

    /// All that waits for it, and what waits for that; but for a skipped task, too, its own `on_error` says whether
    /// others can go on without it.
    fn skip_dependents(&mut self, cause: usize) {
        let mut skipped = VecDeque::from([cause]);
        while let Some(task) = skipped.pop_front() {
            if task != cause && self.plan.tasks[task].on_error == OnError::Continue {
                self.release_dependents(task);
                continue;
            }
            for place in 0..self.dependents.get(task).len() {
                let dependent = self.dependents.get(task)[place];
                if self.states[dependent] != State::Ended {
                    self.end(dependent);
                    self.told_next.push_back(Step::Skip { task: dependent, cause });
                    skipped.push_back(dependent);
                }
            }
        }
    }

    fn cancel_all(&mut self) {
        self.ready.clear();
        for task in 0..self.states.len() {
            if self.states[task] != State::Ended {
                self.end(task);
                self.told_next.push_back(Step::Cancel(task));
            }
        }
    }
}

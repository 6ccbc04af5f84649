//! Results of the tasks of a batch so far. A result stays while some task may still refer to it and counts against the
//! memory budget of the batch.

use std::sync::Arc;

use hikite_core::error::Error;
use hikite_core::json::{Raw, weight};
use hikite_core::plan::{Plan, ReferenceScope};
use serde_json::Value;

use super::budget::{MemoryBudget, Reservation};
use super::report::TaskEnd;

pub(super) struct TaskResults<'a> {
    plan: &'a Plan,
    results: Vec<Option<HeldResult>>,
    /// Number of unfinished tasks that depend on each task.
    waiting: Vec<usize>,
    budget: MemoryBudget,
    ended: Vec<Option<TaskEnd>>,
    pub(super) done: usize,
}

struct HeldResult {
    value: Arc<Value>,
    _hold: Reservation,
}

/// The results that one task may refer to.
pub(super) struct TaskInputs(Vec<(usize, Arc<Value>)>);

impl<'a> TaskResults<'a> {
    pub(super) fn new(plan: &'a Plan, budget: MemoryBudget) -> Self {
        let tasks = plan.tasks.len();
        let mut waiting = vec![0; tasks];
        for other in plan.tasks.iter().flat_map(|task| &task.after) {
            waiting[*other] += 1;
        }
        let (results, ended) = ((0..tasks).map(|_| None).collect(), (0..tasks).map(|_| None).collect());
        Self { plan, results, waiting, budget, ended, done: 0 }
    }

    /// Returns the results that a starting task can refer to.
    pub(super) fn inputs(&self, at: usize) -> TaskInputs {
        let kept = |other: &usize| Some((*other, Arc::clone(&self.results[*other].as_ref()?.value)));
        TaskInputs(self.plan.tasks[at].after.iter().filter_map(kept).collect())
    }

    /// Stores a result for the tasks that depend on it; without such tasks it is dropped.
    pub(super) fn store(&mut self, at: usize, value: &Raw) -> Result<(), Error> {
        if self.waiting[at] > 0 {
            // Reserves the size of the text first, which is less than that of the parsed value.
            let mut hold = self.budget.hold(value.bytes().len())?;
            let value = value.value();
            hold.resize(weight(&value))?;
            self.results[at] = Some(HeldResult { value: Arc::new(value), _hold: hold });
        }
        Ok(())
    }

    pub(super) fn has_ended(&self, at: usize) -> bool {
        self.ended[at].is_some()
    }

    pub(super) fn end(&mut self, at: usize, ended: TaskEnd) {
        self.ended[at] = Some(ended);
        self.done += 1;
        for other in &self.plan.tasks[at].after {
            self.waiting[*other] -= 1;
            if self.waiting[*other] == 0 {
                self.results[*other] = None;
            }
        }
    }

    /// Returns all finished tasks in the order of the plan.
    pub(super) fn ended(self) -> Vec<TaskEnd> {
        self.ended.into_iter().flatten().collect()
    }
}

impl TaskInputs {
    /// Calls `read` with these results in scope, and with the current element inside a `for_each` list.
    pub(super) fn read<T>(&self, item: Option<(&Value, usize)>, read: impl FnOnce(&ReferenceScope<'_>) -> T) -> T {
        // Dependencies are in the order of the plan, hence sorted.
        let result = |at: usize| {
            let found = self.0.binary_search_by_key(&at, |(place, _)| *place).ok()?;
            self.0.get(found).map(|(_, value)| &**value)
        };
        read(&ReferenceScope { result: &result, item })
    }
}

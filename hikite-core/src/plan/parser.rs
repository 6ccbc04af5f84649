//! Parses a batch from a list of tasks or from text with one task per line. Reports all violations at once, each with
//! its location.

mod entry;
mod task;

use std::cell::Cell;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::reference::{KnownNames, shortened};
use super::{OnError, Plan, Task, graph};
use crate::json::Raw;
use crate::violation::Violation;
use entry::TaskEntry;

const FAULTS_MAX: usize = 20;
/// Most tasks of a cycle that are named in a message.
const CYCLE_MAX: usize = 12;

impl Plan {
    /// Parses and validates a batch. `commands` is an array of tasks, or a string with one task per line; `tasks_max`
    /// limits their number.
    pub fn read(commands: &Raw, on_error: OnError, tasks_max: usize) -> Result<Self, Vec<Violation>> {
        let mut faults = PlanViolations::default();
        let mut entries = entry::entries(commands, tasks_max, &mut faults);
        let places = places(&mut entries, &mut faults);
        let suggestions_left = Cell::new(FAULTS_MAX);
        let complete = entries.iter().all(|entry| entry.about.id.is_some());
        let names = KnownNames { tasks: &places, complete, item: false, suggestions_left: &suggestions_left };
        let defaults = BatchDefaults { on_error, tasks_max };
        let read = |entry| task::read(entry, names, defaults, &mut faults);
        let tasks: Vec<Task> = entries.into_iter().map(read).collect();
        cycles(&tasks, &mut faults);
        faults.end().map(|()| Self { tasks })
    }
}

/// Batch settings that apply to all tasks.
#[derive(Clone, Copy)]
struct BatchDefaults {
    on_error: OnError,
    tasks_max: usize,
}

/// Location of a field. Field names contain no characters that a JSON Pointer must escape.
#[derive(Clone, Copy)]
pub(super) struct FieldLocation<'a> {
    task: usize,
    field: &'a str,
}

/// Violations found so far, up to a number that a model can read.
#[derive(Debug, Default)]
pub(super) struct PlanViolations {
    list: Vec<Violation>,
    more: usize,
    /// Task that is being read; prefixed to each message.
    about: Option<TaskLabel>,
}

/// Designation of a task in messages.
#[derive(Clone, Debug)]
struct TaskLabel {
    place: usize,
    /// Line where the task begins, if it was sent as text.
    line: Option<usize>,
    id: Option<Arc<str>>,
}

impl PlanViolations {
    pub(super) fn add(&mut self, pointer: impl Into<String>, message: impl AsRef<str>) {
        if self.list.len() == FAULTS_MAX {
            self.more += 1;
            return;
        }
        let about = self.about.as_ref().map(|about| format!("{about}: ")).unwrap_or_default();
        self.list.push(Violation::new(pointer, format!("{about}{}", message.as_ref())));
    }

    /// Adds a violation whose message is expensive to build; the message is built only if it will be reported.
    pub(super) fn add_with(&mut self, fault: impl FnOnce() -> (String, String)) {
        if self.list.len() == FAULTS_MAX {
            self.more += 1;
        } else {
            let (pointer, message) = fault();
            self.add(pointer, message);
        }
    }

    fn end(mut self) -> Result<(), Vec<Violation>> {
        if self.more > 0 {
            self.list.push(Violation::new("/commands", format!("and {} more", self.more)));
        }
        if self.list.is_empty() { Ok(()) } else { Err(self.list) }
    }
}

impl fmt::Display for TaskLabel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (&self.id, self.line) {
            (Some(id), _) => write!(f, "task `{}`", shortened(id)),
            (None, Some(line)) => write!(f, "line {line}"),
            (None, None) => write!(f, "task {}", self.place + 1),
        }
    }
}

impl fmt::Display for FieldLocation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "/commands/{}/{}", self.task, self.field)
    }
}

/// Reads the task ids and maps each to its index, the first one if several tasks share it.
fn places(entries: &mut [TaskEntry], faults: &mut PlanViolations) -> HashMap<Arc<str>, usize> {
    let mut places: HashMap<Arc<str>, usize> = HashMap::with_capacity(entries.len());
    for place in 0..entries.len() {
        let entry = &entries[place];
        let Some(members) = &entry.members else { continue };
        let message = match task::id(members) {
            Err(message) => message,
            Ok(id) => {
                let first = *places.entry(id.clone()).or_insert(place);
                let which = TaskLabel { id: None, ..entries[first].about.clone() };
                entries[place].about.id = Some(id.clone());
                if first == place {
                    continue;
                }
                format!("`{}` is also the id of {which}", shortened(&id))
            }
        };
        faults.about = Some(TaskLabel { id: None, ..entries[place].about.clone() });
        faults.add(format!("/commands/{place}/id"), message);
    }
    places
}

fn cycles(tasks: &[Task], faults: &mut PlanViolations) {
    faults.about = None;
    let after: Vec<&[usize]> = tasks.iter().map(|task| task.after.as_slice()).collect();
    for cycle in graph::cycles(&after) {
        let name = |task: &usize| shortened(&tasks[*task].id).into_owned();
        let mut named: Vec<String> = cycle.iter().take(CYCLE_MAX).map(name).collect();
        if cycle.len() > CYCLE_MAX {
            named.push(format!("… ({} more)", cycle.len() - CYCLE_MAX));
        }
        named.extend(cycle.first().map(name));
        let first = cycle.first().copied().unwrap_or_default();
        faults.add(
            format!("/commands/{first}/after"),
            format!("the tasks form a dependency cycle: {}", named.join(" → ")),
        );
    }
}

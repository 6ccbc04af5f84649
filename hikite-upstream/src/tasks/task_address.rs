//! Connections where tasks run. Servers with sessions choose task ids freely, so two connections may use the same one:
//! the id given to clients includes the connection number.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use hikite_core::json::Object;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::connection::Connection;
use crate::outbound::Outbound;

/// Connections that have created tasks, by number.
#[derive(Debug, Default)]
pub(crate) struct TaskConnections(Mutex<HashMap<u64, Weak<Connection>>>);

/// Parsed form of a task id given to a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct TaskAddress {
    number: u64,
    /// Set for stateless servers, which know their tasks on any connection.
    pub(crate) on_any_connection: bool,
    pub(crate) server_id: String,
}

impl TaskAddress {
    fn id(&self) -> String {
        let mark = if self.on_any_connection { "+" } else { "" };
        format!("{}{mark}:{}", self.number, self.server_id)
    }

    pub(crate) fn read(id: &str) -> Option<Self> {
        let (head, server_id) = id.split_once(':')?;
        let (head, on_any_connection) = head.strip_suffix('+').map_or((head, false), |head| (head, true));
        let number = head.parse().ok()?;
        (!server_id.is_empty()).then(|| Self { number, on_any_connection, server_id: server_id.to_owned() })
    }
}

impl TaskConnections {
    /// Replaces the task id with the one for clients. The connection is kept open while the task runs.
    pub(crate) fn put(&self, mut task: Object, connection: &Arc<Connection>) -> Object {
        let server_id = task.text("taskId").unwrap_or_default();
        let on_any_connection = connection.is_stateless();
        // A stateless task over HTTP does not depend on the connection.
        if !(on_any_connection && connection.outbound().is_some_and(Outbound::is_http)) {
            connection.running.begin(&server_id, &task, Instant::now());
        }
        let mut known = self.0.lock();
        known.retain(|_, connection| connection.upgrade().is_some_and(|connection| connection.is_open()));
        known.insert(connection.number, Arc::downgrade(connection));
        task.set("taskId", TaskAddress { number: connection.number, on_any_connection, server_id }.id().as_str());
        task
    }

    /// Returns the connection that created a task, if it is open.
    pub(crate) fn of(&self, task_address: &TaskAddress) -> Option<Arc<Connection>> {
        self.0.lock().get(&task_address.number)?.upgrade().filter(|connection| connection.is_open())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_which_connection_has_the_task() {
        for (number, on_any_connection, id) in [(3, false, "3:a:b"), (4, true, "4+:a:b")] {
            let task_address = TaskAddress { number, on_any_connection, server_id: "a:b".into() };
            assert_eq!(task_address.id(), id);
            assert_eq!(TaskAddress::read(id), Some(task_address));
        }
        for wrong in ["", "a", ":a", "x:a", "3:", "+:a"] {
            assert_eq!(TaskAddress::read(wrong), None, "{wrong}");
        }
    }
}

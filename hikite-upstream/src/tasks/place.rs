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
pub(crate) struct Places(Mutex<HashMap<u64, Weak<Connection>>>);

/// Parsed form of a task id given to a client.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Place {
    number: u64,
    /// Set for stateless servers, which know their tasks on any connection.
    pub(crate) anywhere: bool,
    pub(crate) own: String,
}

impl Place {
    fn id(&self) -> String {
        let mark = if self.anywhere { "+" } else { "" };
        format!("{}{mark}:{}", self.number, self.own)
    }

    pub(crate) fn read(id: &str) -> Option<Self> {
        let (head, own) = id.split_once(':')?;
        let (head, anywhere) = head.strip_suffix('+').map_or((head, false), |head| (head, true));
        let number = head.parse().ok()?;
        (!own.is_empty()).then(|| Self { number, anywhere, own: own.to_owned() })
    }
}

impl Places {
    /// Replaces the task id with the one for clients. The connection is kept open while the task runs.
    pub(crate) fn put(&self, mut task: Object, connection: &Arc<Connection>) -> Object {
        let own = task.text("taskId").unwrap_or_default();
        let anywhere = connection.is_stateless();
        // A stateless task over HTTP does not depend on the connection.
        if !(anywhere && connection.outbound().is_some_and(Outbound::is_http)) {
            connection.running.begin(&own, &task, Instant::now());
        }
        let mut known = self.0.lock();
        known.retain(|_, connection| connection.upgrade().is_some_and(|connection| connection.is_open()));
        known.insert(connection.number, Arc::downgrade(connection));
        task.set("taskId", Place { number: connection.number, anywhere, own }.id().as_str());
        task
    }

    /// Returns the connection that created a task, if it is open.
    pub(crate) fn of(&self, place: &Place) -> Option<Arc<Connection>> {
        self.0.lock().get(&place.number)?.upgrade().filter(|connection| connection.is_open())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_which_connection_has_the_task() {
        for (number, anywhere, id) in [(3, false, "3:a:b"), (4, true, "4+:a:b")] {
            let place = Place { number, anywhere, own: "a:b".into() };
            assert_eq!(place.id(), id);
            assert_eq!(Place::read(id), Some(place));
        }
        for wrong in ["", "a", ":a", "x:a", "3:", "+:a"] {
            assert_eq!(Place::read(wrong), None, "{wrong}");
        }
    }
}

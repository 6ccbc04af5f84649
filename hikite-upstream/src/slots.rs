//! Slots of one upstream: one that all sessions share, and those of single sessions.

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use hikite_core::caller::SessionId;
use parking_lot::Mutex;

use crate::connection::{Connection, ConnectionPurpose};
use crate::slot::UpstreamSlot;

#[derive(Debug)]
pub(crate) struct Slots {
    pub(crate) shared: Arc<UpstreamSlot>,
    pub(crate) owned: Mutex<HashMap<SessionId, Arc<UpstreamSlot>>>,
    /// Connections that may still be open, even outside their slots. Their calls are cancelled on close.
    alive: Mutex<Vec<Weak<Connection>>>,
}

impl Default for Slots {
    fn default() -> Self {
        let shared = Arc::new(UpstreamSlot::new(ConnectionPurpose::Shared, None));
        Self { shared, owned: Mutex::default(), alive: Mutex::default() }
    }
}

impl Slots {
    pub(crate) fn all(&self) -> Vec<Arc<UpstreamSlot>> {
        self.owned.lock().values().cloned().chain([Arc::clone(&self.shared)]).collect()
    }

    /// Returns the live connection that belongs to a session alone.
    pub(crate) fn live_of(&self, session: SessionId) -> Option<Arc<Connection>> {
        self.owned.lock().get(&session).and_then(|slot| slot.live())
    }

    pub(crate) fn is_running(&self) -> bool {
        self.shared.live().is_some() || self.owned.lock().values().any(|slot| slot.live().is_some())
    }

    /// Removes a slot that was created for a session before it was known to be unnecessary.
    pub(crate) fn drop_owned(&self, session: SessionId) {
        if let Some(slot) = self.owned.lock().remove(&session) {
            slot.supersede();
        }
    }

    pub(crate) fn track(&self, connection: &Arc<Connection>) {
        let mut alive = self.alive.lock();
        alive.retain(|other| other.strong_count() > 0);
        alive.push(Arc::downgrade(connection));
    }

    /// Returns the connections that are still open, and forgets them.
    pub(crate) fn take_alive(&self) -> Vec<Arc<Connection>> {
        self.alive.lock().drain(..).filter_map(|connection| connection.upgrade()).collect()
    }
}

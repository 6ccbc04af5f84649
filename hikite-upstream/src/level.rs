//! Log levels that sessions requested of one upstream. A shared connection uses the most verbose of them; each
//! session's own level is applied when its messages are sent.

use std::collections::HashMap;

use hikite_core::caller::SessionId;
use hikite_core::level::Level;
use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(crate) struct Levels(Mutex<HashMap<SessionId, Level>>);

impl Levels {
    pub(crate) fn set(&self, session: SessionId, level: Level) {
        self.0.lock().insert(session, level);
    }

    pub(crate) fn of(&self, session: SessionId) -> Option<Level> {
        self.0.lock().get(&session).copied()
    }

    pub(crate) fn most_talkative(&self) -> Option<Level> {
        self.0.lock().values().min().copied()
    }

    pub(crate) fn forget(&self, session: SessionId) {
        self.0.lock().remove(&session);
    }
}

//! Log levels that sessions requested of one upstream. A shared connection uses the most verbose of them; each
//! session's own level is applied when its messages are sent.

use std::collections::HashMap;

use hikite_core::caller::SessionId;
use hikite_core::log_level::LogLevel;
use parking_lot::Mutex;

#[derive(Debug, Default)]
pub(crate) struct SessionLogLevels(Mutex<HashMap<SessionId, LogLevel>>);

impl SessionLogLevels {
    pub(crate) fn set(&self, session: SessionId, level: LogLevel) {
        self.0.lock().insert(session, level);
    }

    pub(crate) fn of(&self, session: SessionId) -> Option<LogLevel> {
        self.0.lock().get(&session).copied()
    }

    pub(crate) fn most_verbose(&self) -> Option<LogLevel> {
        self.0.lock().values().min().copied()
    }

    pub(crate) fn forget(&self, session: SessionId) {
        self.0.lock().remove(&session);
    }
}

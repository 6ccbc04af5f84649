//! Which log level the sessions of one upstream asked for. A server on a shared connection is told the most
//! talkative of them; each session's own level is applied where its messages go out.

use std::collections::HashMap;

use hikite_core::caller::SessionId;
use parking_lot::Mutex;

pub(crate) const LEVELS: [&str; 8] =
    ["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"];

#[derive(Debug, Default)]
pub(crate) struct Levels(Mutex<HashMap<SessionId, usize>>);

impl Levels {
    /// Remembers a session's wish; unknown words are ignored.
    pub(crate) fn set(&self, session: SessionId, level: &str) {
        if let Some(rank) = LEVELS.iter().position(|known| *known == level) {
            self.0.lock().insert(session, rank);
        }
    }

    pub(crate) fn of(&self, session: SessionId) -> Option<&'static str> {
        self.0.lock().get(&session).map(|rank| LEVELS[*rank])
    }

    pub(crate) fn most_talkative(&self) -> Option<&'static str> {
        self.0.lock().values().min().map(|rank| LEVELS[*rank])
    }

    pub(crate) fn forget(&self, session: SessionId) {
        self.0.lock().remove(&session);
    }
}

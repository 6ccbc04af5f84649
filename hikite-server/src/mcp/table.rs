//! The sessions of HTTP clients by the id they were given. An id means nothing to any other caller.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Caller;
use hikite_core::error::{Error, Kind};
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::app::App;
use crate::mcp::session::Session;

#[derive(Debug)]
pub(crate) struct Sessions {
    by_id: RwLock<HashMap<String, Arc<Session>>>,
    capacity: usize,
}

impl Sessions {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { by_id: RwLock::default(), capacity }
    }

    pub(crate) fn insert(&self, session: Arc<Session>) -> Result<String, Error> {
        let id = random_id()?;
        let mut by_id = self.by_id.write();
        if by_id.len() >= self.capacity {
            return Err(Error::new(Kind::Overloaded, "too many sessions are open").hint("try again later"));
        }
        by_id.insert(id.clone(), session);
        Ok(id)
    }

    pub(crate) fn get(&self, id: &str, caller: &Caller) -> Option<Arc<Session>> {
        self.by_id.read().get(id).filter(|session| session.core.caller == *caller).cloned()
    }

    pub(crate) fn remove(&self, id: &str, caller: &Caller) -> Option<Arc<Session>> {
        self.get(id, caller)?;
        self.by_id.write().remove(id)
    }

    /// Ends all sessions and their streams.
    pub(crate) fn clear(&self) {
        for (_, session) in self.by_id.write().drain() {
            session.outbox.close();
        }
    }

    /// Forgets sessions that nobody has used for long.
    pub(crate) async fn expire(app: Arc<App>) {
        let idle = app.limits.session_idle;
        let mut tick =
            tokio::time::interval((idle / 4).clamp(Duration::from_millis(50), Duration::from_secs(60)));
        while app.stopping.run_until_cancelled(tick.tick()).await.is_some() {
            let Some(before) = Instant::now().checked_sub(idle) else { continue };
            let in_use = |session: &Session| {
                session.last_used() >= before
                    || !session.running.lock().is_empty()
                    || session.outbox.is_open()
            };
            app.sessions.by_id.write().retain(|_, session| in_use(session));
        }
    }
}

/// 128 random bits.
pub(crate) fn random_id() -> Result<String, Error> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|_| Error::new(Kind::Internal, "the operating system gave no random bytes"))?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)))
}

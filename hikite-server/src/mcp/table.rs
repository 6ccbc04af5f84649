//! The sessions of HTTP clients by the id they were given: sealed, and worth nothing to any other caller.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Caller;
use hikite_core::error::{Error, Kind};
use hikite_core::hex::hex;
use hikite_core::json::Raw;
use hikite_core::seal::Seal;
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::app::App;
use crate::mcp::session::Session;

#[derive(Debug)]
pub(crate) struct Sessions {
    by_id: RwLock<HashMap<String, Arc<Session>>>,
    capacity: usize,
    seal: Seal,
}

impl Sessions {
    pub(crate) fn new(capacity: usize, seal: Seal) -> Self {
        Self { by_id: RwLock::default(), capacity, seal }
    }

    pub(crate) fn insert(&self, session: Arc<Session>) -> Result<String, Error> {
        let id = self.name(&session)?;
        let mut by_id = self.by_id.write();
        if by_id.len() >= self.capacity {
            return Err(Error::new(Kind::Overloaded, "too many sessions are open").hint("try again later"));
        }
        by_id.insert(id.clone(), session);
        Ok(id)
    }

    /// The id says by itself which revision was agreed, and its seal whose it is. An id that stands in the table
    /// is one of ours, so nothing has to be opened on the path of a request.
    fn name(&self, session: &Session) -> Result<String, Error> {
        let payload = format!("{} {}", session.revision, random_id()?);
        let [subject, project] = session.core.caller.parts();
        Ok(self.seal.put(payload.as_bytes(), &[b"session", subject, project]))
    }

    pub(crate) fn get(&self, id: &str, caller: &Caller) -> Option<Arc<Session>> {
        self.by_id.read().get(id).filter(|session| is_of(&session.core.caller, caller)).cloned()
    }

    pub(crate) fn remove(&self, id: &str, caller: &Caller) -> Option<Arc<Session>> {
        self.get(id, caller)?;
        self.by_id.write().remove(id)
    }

    /// What an admin may see of them, the oldest first.
    pub(crate) fn objects(&self) -> Vec<Raw> {
        let mut sessions: Vec<Arc<Session>> = self.by_id.read().values().cloned().collect();
        sessions.sort_by_key(|session| session.core.id);
        sessions.iter().map(|session| session.object()).collect()
    }

    /// Ends one by its number, whoever it belongs to; whether there was one.
    pub(crate) fn end(&self, number: u64) -> bool {
        let mut by_id = self.by_id.write();
        let found = by_id.iter().find(|(_, session)| session.core.id.0 == number);
        let Some(session) = found.map(|(id, _)| id.clone()).and_then(|id| by_id.remove(&id)) else {
            return false;
        };
        session.end();
        true
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
            app.lanes.expire(before);
            let may_stay = |session: &Session| app.gateway.people().still_knows(&session.core.caller);
            app.sessions.by_id.write().retain(|_, session| in_use(session) && may_stay(session));
        }
    }
}

/// Whether a request of `caller` belongs to a session of `owner`. From one that works in no project, a request may
/// work in one; what was begun in a project stays there.
fn is_of(owner: &Caller, caller: &Caller) -> bool {
    owner == caller || owner.project.is_none() && owner.is_same_person(caller)
}

/// 128 random bits.
pub(crate) fn random_id() -> Result<String, Error> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|_| Error::new(Kind::Internal, "the operating system gave no random bytes"))?;
    Ok(hex(&bytes))
}

#[cfg(test)]
mod tests {
    use hikite_gateway::{Surface, Surfaces};
    use hikite_wire::handshake::Hello;

    use super::*;
    use crate::probe::app;

    fn hello() -> Hello {
        let params = Raw::parse(r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#).expect("valid");
        Hello::read(Some(&params)).expect("a hello")
    }

    #[tokio::test]
    async fn an_id_is_sealed_and_means_nothing_to_another_caller() {
        let (app, owner) = (app(), Caller::owner());
        let stranger = Caller::named("stranger");
        let session = Session::open(&app, owner.clone(), Surfaces::of([Surface::Direct]), hello());
        let id = app.sessions.insert(session).expect("room");
        assert!(app.sessions.get(&id, &owner).is_some());
        assert!(app.sessions.get(&id, &stranger).is_none());
        assert!(app.sessions.remove(&id, &stranger).is_none());
        assert!(app.sessions.get(&format!("{id}x"), &owner).is_none());
        let bound: [&[u8]; 3] = [b"session", b"owner", b""];
        let payload = app.gateway.seal().open(&id, &bound).expect("ours");
        assert!(String::from_utf8_lossy(&payload).starts_with("2025-11-25 "));
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(app.sessions.get(&id, &owner.within("work".into())).is_some(), "one request, in a project");
        let token = Caller { token: Some("tok_1".into()), ..owner.clone() };
        assert!(app.sessions.get(&id, &token).is_none());
        let inside = owner.within("work".into());
        let session = Session::open(&app, inside.clone(), Surfaces::of([Surface::Direct]), hello());
        let begun = app.sessions.insert(session).expect("room");
        assert!(app.sessions.get(&begun, &inside).is_some());
        for other in [&owner, &owner.within("home".into())] {
            assert!(app.sessions.get(&begun, other).is_none(), "what was begun in a project stays there");
        }
        assert!(app.sessions.remove(&id, &owner).is_some());
        assert!(app.sessions.get(&id, &owner).is_none());
    }
}

//! The sessions of HTTP clients by id. Ids are sealed and useless to any other caller.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use hikite_core::caller::Caller;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::hex::hex;
use hikite_core::limits::Limits;
use hikite_core::share::{Allowance, ShareHolder};
use hikite_core::signer::HmacSigner;
use hikite_gateway::share::{SharedSlot, SharedSlots, SlotKind, SlotUsage};
use hikite_identity::People;
use parking_lot::RwLock;
use tokio::time::Instant;

use crate::app::App;
use crate::mcp::session::ClientSession;
use crate::mcp::session_token::SessionToken;

#[derive(Debug)]
pub(crate) struct SessionTable {
    by_id: RwLock<HashMap<Arc<str>, SessionEntry>>,
    /// Consulted when a session begins, not on the request path.
    places: SharedSlots<SessionSlot>,
    seal: HmacSigner,
}

/// The slot of a session.
#[derive(Debug)]
pub(crate) struct SessionSlot {
    id: Arc<str>,
    session: Weak<ClientSession>,
    since: Instant,
}

impl SessionSlot {
    /// Returns when the session was last used; `None` while it is in use.
    fn idle_since(&self) -> Option<Instant> {
        let Some(session) = self.session.upgrade() else { return Some(self.since) };
        (!session.is_busy()).then(|| session.last_used())
    }
}

const KIND: SlotKind = SlotKind { resource: "sessions", limit: "sessions", things: "sessions open" };

#[derive(Clone, Debug)]
pub(crate) struct SessionEntry {
    pub(crate) session: Arc<ClientSession>,
    /// The id of the session within the cluster.
    pub(crate) number: Arc<str>,
    /// The id under which this node holds the session, in a cluster.
    pub(crate) holder: Option<Arc<str>>,
    _place: Arc<SharedSlot<SessionSlot>>,
}

impl SessionTable {
    pub(crate) fn new(limits: &Limits, seal: HmacSigner) -> Self {
        let places = SharedSlots::new(KIND, Allowance::of(limits.sessions, limits.caller_share));
        Self { by_id: RwLock::default(), places, seal }
    }

    pub(crate) fn usage(&self) -> SlotUsage {
        self.places.usage()
    }

    /// Adds a new session and returns its id. `home` is the id of this node, in a cluster.
    pub(crate) fn insert(&self, session: Arc<ClientSession>, home: Option<Arc<str>>) -> Result<String, Error> {
        let number = random_id()?;
        let name = SessionToken::of(&session, &number, home.as_deref());
        let id = name.sealed(&self.seal, &session.core.caller);
        self.put(&id, session, number.into(), home)?;
        Ok(id)
    }

    /// Adds a session under an existing id. If its caller has used up its share, or all slots are taken, the longest
    /// idle session ends: of this caller, or of the largest holder.
    pub(crate) fn put(
        &self,
        id: &str,
        session: Arc<ClientSession>,
        number: Arc<str>,
        holder: Option<Arc<str>>,
    ) -> Result<(), Error> {
        let id: Arc<str> = id.into();
        let slot = SessionSlot { id: Arc::clone(&id), session: Arc::downgrade(&session), since: Instant::now() };
        let caller = ShareHolder::from(&session.core.caller);
        let (place, out) = self.places.take(&caller, slot, |slot, _| slot.idle_since())?;
        let gone = {
            let mut by_id = self.by_id.write();
            by_id.insert(id, SessionEntry { session, number, holder, _place: Arc::new(place) });
            out.and_then(|out| by_id.remove(&out.id))
        };
        // Ended outside the lock, because all sources are notified.
        if let Some(gone) = gone {
            tracing::info!(session = gone.session.core.id.0, "a session was closed to make room for another");
            gone.session.end();
        }
        Ok(())
    }

    /// Unseals an id; `None` if it is not ours or not the caller's. Not needed for ids in the table, which keeps it off
    /// the request path.
    pub(crate) fn read(&self, id: &str, caller: &Caller) -> Option<SessionToken> {
        SessionToken::read(&self.seal, id, caller)
    }

    pub(crate) fn get(&self, id: &str, caller: &Caller) -> Option<Arc<ClientSession>> {
        let by_id = self.by_id.read();
        let entry = by_id.get(id).filter(|entry| is_of(&entry.session.core.caller, caller))?;
        Some(Arc::clone(&entry.session))
    }

    /// Returns the entry with its cluster data.
    pub(crate) fn entry(&self, id: &str, caller: &Caller) -> Option<SessionEntry> {
        self.by_id.read().get(id).filter(|entry| is_of(&entry.session.core.caller, caller)).cloned()
    }

    pub(crate) fn remove(&self, id: &str, caller: &Caller) -> Option<SessionEntry> {
        self.get(id, caller)?;
        self.by_id.write().remove(id)
    }

    /// Removes a session that another node holds: running requests may finish, but its streams end.
    pub(crate) fn remove_moved(&self, id: &str) {
        if let Some(entry) = self.by_id.write().remove(id) {
            entry.session.outbox.close();
        }
    }

    /// Returns all sessions as the admin API shows them, oldest first.
    pub(crate) fn objects(&self) -> Vec<hikite_api::Session> {
        let mut sessions: Vec<Arc<ClientSession>> =
            self.by_id.read().values().map(|entry| Arc::clone(&entry.session)).collect();
        sessions.sort_by_key(|session| session.core.id);
        sessions.iter().map(|session| session.object()).collect()
    }

    /// Ends a session by number, whoever owns it, and returns its entry.
    pub(crate) fn end(&self, number: u64) -> Option<SessionEntry> {
        let mut by_id = self.by_id.write();
        let found = by_id.iter().find(|(_, entry)| entry.session.core.id.0 == number);
        let id = found.map(|(id, _)| id.clone())?;
        let entry = by_id.remove(&id)?;
        entry.session.end();
        Some(entry)
    }

    /// Ends all sessions and their streams.
    pub(crate) fn clear(&self) {
        for (_, entry) in self.by_id.write().drain() {
            entry.session.outbox.close();
        }
    }

    /// Ends the sessions of callers who lost access.
    pub(crate) fn end_revoked(&self, people: &People) {
        let is_gone = |entry: &SessionEntry| !people.is_still_valid(&entry.session.core.caller);
        let gone: Vec<Arc<str>> =
            self.by_id.read().iter().filter(|(_, entry)| is_gone(entry)).map(|(id, _)| id.clone()).collect();
        for id in gone {
            if let Some(entry) = self.by_id.write().remove(&id) {
                entry.session.end();
            }
        }
    }

    /// Removes idle sessions periodically.
    pub(crate) async fn expire(app: Arc<App>) {
        let idle = app.limits.session_idle;
        let mut tick = tokio::time::interval((idle / 4).clamp(Duration::from_millis(50), Duration::from_secs(60)));
        while app.stopping.run_until_cancelled(tick.tick()).await.is_some() {
            let Some(before) = Instant::now().checked_sub(idle) else { continue };
            let in_use = |session: &ClientSession| session.last_used() >= before || session.is_busy();
            app.stateless_sessions.expire(before);
            let may_stay = |session: &ClientSession| app.gateway.people().is_still_valid(&session.core.caller);
            let stays = |entry: &SessionEntry| in_use(&entry.session) && may_stay(&entry.session);
            app.sessions.by_id.write().retain(|_, entry| stays(entry));
        }
    }
}

/// Returns `true` if a request of `caller` belongs to a session of `owner`. A session without a project also serves
/// requests that name one; a session of a project serves only that project.
fn is_of(owner: &Caller, caller: &Caller) -> bool {
    owner == caller || owner.project.is_none() && owner.has_same_credentials(caller)
}

/// Returns 128 random bits in hex.
pub(crate) fn random_id() -> Result<String, Error> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|_| Error::new(ErrorKind::Internal, "The operating system returned no random bytes."))?;
    Ok(hex(&bytes))
}

#[cfg(test)]
mod tests {
    use hikite_core::json::Raw;
    use hikite_gateway::{Surface, Surfaces};
    use hikite_wire::handshake::InitializeRequest;

    use super::*;
    use crate::test_app::app;

    fn hello() -> InitializeRequest {
        let params = Raw::parse(r#"{"protocolVersion":"2025-11-25","capabilities":{}}"#).expect("valid");
        InitializeRequest::read(Some(&params)).expect("a hello")
    }

    #[tokio::test]
    async fn an_id_is_sealed_and_means_nothing_to_another_caller() {
        let (app, owner) = (app(), Caller::owner());
        let stranger = Caller::named("stranger");
        let session = ClientSession::open(&app, owner.clone(), Surfaces::of([Surface::Direct]), hello());
        let id = app.sessions.insert(session, None).expect("room");
        assert!(app.sessions.get(&id, &owner).is_some());
        assert!(app.sessions.get(&id, &stranger).is_none());
        assert!(app.sessions.remove(&id, &stranger).is_none());
        assert!(app.sessions.get(&format!("{id}x"), &owner).is_none());
        let bound: [&[u8]; 4] = [b"session", b"owner", b"", b""];
        let payload = app.gateway.seal().open(&id, &bound).expect("ours");
        assert!(String::from_utf8_lossy(&payload).starts_with("2025-11-25 "));
        assert!(id.bytes().all(|byte| byte.is_ascii_graphic()));
        assert!(app.sessions.get(&id, &owner.within("work".into())).is_some(), "one request, in a project");
        let token = Caller { token: Some("tok_1".into()), ..owner.clone() };
        assert!(app.sessions.get(&id, &token).is_none());
        let inside = owner.within("work".into());
        let session = ClientSession::open(&app, inside.clone(), Surfaces::of([Surface::Direct]), hello());
        let begun = app.sessions.insert(session, None).expect("room");
        assert!(app.sessions.get(&begun, &inside).is_some());
        for other in [&owner, &owner.within("home".into())] {
            assert!(app.sessions.get(&begun, other).is_none(), "what was begun in a project stays there");
        }
        assert!(app.sessions.remove(&id, &owner).is_some());
        assert!(app.sessions.get(&id, &owner).is_none());
    }
}

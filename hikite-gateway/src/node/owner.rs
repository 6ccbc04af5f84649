//! Who serves a session: the process that it began in, while that is there; then whoever took it over in the store. Only
//! what was written there counts, so that of two who want it one gets it.

use std::sync::Arc;

use hikite_core::error::{Error, Kind};
use hikite_store::NOBODY;

use super::{Nodes, Peer};

/// Of several who want a session at once somebody gets it; the others look again, so often.
const TRIES: usize = 8;

/// Who serves a session.
#[derive(Clone, Debug)]
pub enum Owner {
    /// We do, from now on.
    Us,
    Other(Peer),
    /// It is over.
    Nobody,
}

impl Nodes {
    /// Who serves a session that began at `home`, as far as that is known without asking.
    pub fn known_owner(&self, session: &str, home: &str) -> Option<Peer> {
        let peers = self.peers.load();
        if let Some(peer) = peers.get(home) {
            return Some(peer.clone());
        }
        peers.get(self.held.lock().get(session)?).cloned()
    }

    /// The same, for certain. We take it over if nobody else is there to serve it; one that leaves lets another do so.
    pub async fn owner(&self, session: &str, home: &str) -> Result<Owner, Error> {
        let own = self.id();
        if self.has_left() {
            // Until it is written down that we left.
            let _turn = self.renewing.lock().await;
        } else if *own == *home {
            return Ok(Owner::Nobody);
        }
        if let Some(owner) = self.living(home).await? {
            return Ok(Owner::Other(owner));
        }
        for _ in 0..TRIES {
            let lease = self.store.session_lease(session).await?;
            let seen = lease.as_ref().map_or(0, |lease| lease.fence);
            if let Some(lease) = lease {
                // One that we held and hold no more has ended here.
                if lease.holder == NOBODY || *lease.holder == *own && !self.has_left() {
                    return Ok(Owner::Nobody);
                }
                if let Some(owner) = self.living(&lease.holder).await? {
                    self.remember(session, &owner.id);
                    return Ok(Owner::Other(owner));
                }
            }
            if self.has_left() {
                self.doubt().await?;
                let other = self.peers.load().values().next().cloned();
                return other.map(Owner::Other).ok_or_else(leaving);
            }
            if self.store.take_session(session, &own, seen).await? {
                tracing::info!("a session of a node that is gone goes on here");
                return Ok(Owner::Us);
            }
        }
        Err(Error::new(Kind::Overloaded, "too many nodes want this session").hint("try again in a moment"))
    }

    /// What was known of a session was wrong.
    pub fn forget(&self, session: &str) {
        self.held.lock().remove(session);
    }

    /// The session is over, for all.
    pub async fn end(&self, session: &str) -> Result<(), Error> {
        Ok(self.store.end_session(session).await?)
    }

    /// The process, if it is there; if not, it is gone for good.
    async fn living(&self, id: &str) -> Result<Option<Peer>, Error> {
        if let Some(peer) = self.peer(id).await? {
            return Ok(Some(peer));
        }
        if self.store.is_node_gone(id).await? {
            return Ok(None);
        }
        // It said just now that it is there.
        match self.peer(id).await? {
            Some(peer) => Ok(Some(peer)),
            None => Err(Error::new(Kind::Overloaded, "the node that holds this session is not known yet")
                .hint("try again in a moment")),
        }
    }

    fn remember(&self, session: &str, holder: &Arc<str>) {
        let mut held = self.held.lock();
        if held.len() >= self.held_max {
            // It is known again after one more question.
            held.clear();
        }
        held.insert(session.to_owned(), Arc::clone(holder));
    }
}

fn leaving() -> Error {
    Error::new(Kind::Overloaded, "this node leaves, and there is no other").hint("try again in a moment")
}

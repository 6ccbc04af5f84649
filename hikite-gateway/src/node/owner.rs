//! Session ownership: a session belongs to the node it began on while that node lives, then to the node that took it
//! over in the store. Only the store's record counts, so that of two candidates one wins.

use std::sync::Arc;

use hikite_core::error::{Error, ErrorKind};
use hikite_store::NOBODY;

use super::{Nodes, Peer};

/// Attempts to take over a session that other nodes want at the same time.
const TAKEOVER_ATTEMPTS: usize = 8;

/// The node that serves a session.
#[derive(Clone, Debug)]
pub enum Owner {
    /// This node, from now on.
    Local,
    Other(Peer),
    /// The session has ended.
    Nobody,
}

impl Nodes {
    /// Returns the peer that serves a session begun on `home`, if it is known without asking the store.
    pub fn known_owner(&self, session: &str, home: &str) -> Option<Peer> {
        let peers = self.peers.load();
        if let Some(peer) = peers.get(home) {
            return Some(peer.clone());
        }
        peers.get(self.held.lock().get(session)?).cloned()
    }

    /// Returns the owner of a session according to the store, and takes the session over if its node is gone. A node
    /// that is leaving takes over nothing.
    pub async fn owner(&self, session: &str, home: &str) -> Result<Owner, Error> {
        let own = self.id();
        if self.is_leaving() {
            // Wait until our departure is written to the store.
            let _turn = self.renewing.lock().await;
        } else if *own == *home {
            return Ok(Owner::Nobody);
        }
        if let Some(owner) = self.live_peer(home).await? {
            return Ok(Owner::Other(owner));
        }
        for _ in 0..TAKEOVER_ATTEMPTS {
            let lease = self.store.nodes().session_lease(session).await?;
            let seen = lease.as_ref().map_or(0, |lease| lease.fence);
            if let Some(lease) = lease {
                // A lease in our name without a session here means that the session ended here.
                if lease.holder == NOBODY || *lease.holder == *own && !self.is_leaving() {
                    return Ok(Owner::Nobody);
                }
                if let Some(owner) = self.live_peer(&lease.holder).await? {
                    self.remember(session, &owner.id);
                    return Ok(Owner::Other(owner));
                }
            }
            if self.is_leaving() {
                self.refresh_peers().await?;
                let other = self.peers.load().values().next().cloned();
                return other.map(Owner::Other).ok_or_else(leaving);
            }
            if self.store.nodes().take_session(session, &own, seen).await? {
                tracing::info!("a session of a node that is gone continues here");
                return Ok(Owner::Local);
            }
        }
        Err(Error::new(ErrorKind::Overloaded, "Too many nodes try to take over this session.")
            .hint("Try again in a moment."))
    }

    /// Drops the cached holder of a session.
    pub fn forget(&self, session: &str) {
        self.held.lock().remove(session);
    }

    /// Ends a session for all nodes.
    pub async fn end(&self, session: &str) -> Result<(), Error> {
        Ok(self.store.nodes().end_session(session).await?)
    }

    /// Returns a node if it is alive; `None` means that it is gone for good.
    async fn live_peer(&self, id: &str) -> Result<Option<Peer>, Error> {
        if let Some(peer) = self.peer(id).await? {
            return Ok(Some(peer));
        }
        if self.store.nodes().is_gone(id).await? {
            return Ok(None);
        }
        // The node joined after the list was read.
        match self.peer(id).await? {
            Some(peer) => Ok(Some(peer)),
            None => Err(Error::new(ErrorKind::Overloaded, "The node that holds this session is not known yet.")
                .hint("Try again in a moment.")),
        }
    }

    fn remember(&self, session: &str, holder: &Arc<str>) {
        let mut session_holders = self.held.lock();
        if session_holders.len() >= self.held_max {
            // Dropped entries cost one store query each.
            session_holders.clear();
        }
        session_holders.insert(session.to_owned(), Arc::clone(holder));
    }
}

fn leaving() -> Error {
    Error::new(ErrorKind::Overloaded, "This node is shutting down, and there is no other.")
        .hint("Try again in a moment.")
}

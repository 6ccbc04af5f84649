//! Cluster membership of the processes that share one store, and session ownership among them. Every node sends a
//! heartbeat each second; one that misses several is declared gone in the store, irrevocably, before another node
//! takes over its sessions. A node that was declared gone continues under a new id and without sessions.

mod owner;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::hex::hex;
use hikite_store::Store;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

pub use owner::Owner;

/// Heartbeat interval.
const BEAT: Duration = Duration::from_secs(1);
/// Time that a heartbeat stays valid.
const LIFE: Duration = Duration::from_secs(4);
/// Time after which all nodes have noticed a departure: each reads the node list once per heartbeat.
const HEARD: Duration = BEAT.saturating_mul(2);
/// Heartbeats between two cleanups of session leases.
const TEND: u32 = 600;
/// Minimum time between lease renewals forced by requests while the store is unreachable, and the timeout of each.
const TRY_AGAIN: Duration = Duration::from_secs(2);
const TRIED: Duration = Duration::from_millis(500);

/// Another node.
#[derive(Clone, Debug)]
pub struct Peer {
    pub id: Arc<str>,
    /// Base URL without a trailing slash.
    pub url: Arc<str>,
    /// Cancelled when the node is gone.
    pub gone: CancellationToken,
}

pub struct Nodes {
    store: Store,
    url: Arc<str>,
    own: ArcSwap<LocalNode>,
    peers: ArcSwap<HashMap<Arc<str>, Peer>>,
    /// Cached holders of sessions that other nodes took over.
    held: Mutex<HashMap<String, Arc<str>>>,
    held_max: usize,
    left: AtomicBool,
    renewing: tokio::sync::Mutex<()>,
    /// Serializes the lease renewals forced by `holds`.
    renewal_check: tokio::sync::Mutex<()>,
    lost: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

/// This node's id, and the time until which the other nodes consider it alive.
#[derive(Debug)]
struct LocalNode {
    id: Arc<str>,
    until: Mutex<Instant>,
    last_attempt: Mutex<Instant>,
}

impl LocalNode {
    fn new(id: Arc<str>, now: Instant) -> Self {
        Self { id, until: Mutex::new(now + LIFE), last_attempt: Mutex::new(now) }
    }
}

impl std::fmt::Debug for Nodes {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Nodes").field("id", &self.own.load().id).finish_non_exhaustive()
    }
}

impl Nodes {
    /// Joins the cluster under an id that was never used before. At most `held_max` sessions of other nodes are
    /// cached.
    pub async fn join(store: Store, url: &str, id: &str, held_max: usize) -> Result<Arc<Self>, Error> {
        let now = Instant::now();
        store.nodes().announce(id, url, LIFE).await?;
        let nodes = Arc::new(Self {
            store,
            url: url.trim_end_matches('/').into(),
            own: ArcSwap::from_pointee(LocalNode::new(id.into(), now)),
            peers: ArcSwap::default(),
            held: Mutex::default(),
            held_max,
            left: AtomicBool::new(false),
            renewing: tokio::sync::Mutex::default(),
            renewal_check: tokio::sync::Mutex::default(),
            lost: OnceLock::new(),
        });
        nodes.read_peers().await?;
        Ok(nodes)
    }

    /// Sets the callback for being declared gone: this node's sessions belong to others then.
    pub fn on_lost(&self, act: impl Fn() + Send + Sync + 'static) {
        let _ = self.lost.set(Box::new(act));
    }

    /// Returns this node's id. It changes after the node was declared gone.
    pub fn id(&self) -> Arc<str> {
        Arc::clone(&self.own.load().id)
    }

    pub fn is_leaving(&self) -> bool {
        self.left.load(Ordering::Acquire)
    }

    /// Sends heartbeats and reads the node list until `stopping` fires.
    pub async fn run(self: Arc<Self>, stopping: CancellationToken) {
        let mut reachable = true;
        let mut beats = 0_u32;
        while stopping.run_until_cancelled(tokio::time::sleep(BEAT)).await.is_some() {
            if self.is_leaving() {
                return;
            }
            // A store request that hangs must not stop the heartbeats for good.
            let done = tokio::time::timeout(LIFE, self.beat(beats == 0)).await;
            let done = done.unwrap_or_else(|_| Err(Error::new(ErrorKind::Overloaded, "The store does not respond.")));
            match &done {
                Err(error) if reachable => {
                    tracing::warn!(%error, "failed to announce this node to the other nodes");
                }
                Ok(()) if !reachable => tracing::info!("this node is announced to the other nodes again"),
                _ => {}
            }
            reachable = done.is_ok();
            beats = (beats + 1) % TEND;
        }
    }

    async fn beat(&self, cleans_up: bool) -> Result<(), Error> {
        self.renew().await?;
        self.read_peers().await?;
        if cleans_up {
            self.store.nodes().renew_sessions(&self.id()).await?;
        }
        Ok(())
    }

    /// Returns `true` if sessions held under this id are still ours. While the lease is valid this only reads the
    /// clock.
    pub async fn holds(&self, name: &str) -> bool {
        let own = self.own.load_full();
        if self.is_leaving() || *own.id != *name {
            return false;
        }
        if Instant::now() < *own.until.lock() {
            return true;
        }
        // The process was suspended, or the store is unreachable. In the latter case no other node can take over
        // either.
        let _turn = self.renewal_check.lock().await;
        let is_over = Instant::now() >= *own.until.lock();
        if is_over && Instant::now() > *own.last_attempt.lock() + TRY_AGAIN {
            let renewed = tokio::time::timeout(TRIED, self.renew()).await;
            *own.last_attempt.lock() = Instant::now();
            if !matches!(renewed, Ok(Ok(()))) {
                tracing::debug!("this node continues without notifications from the store");
            }
        }
        *self.own.load().id == *name
    }

    async fn renew(&self) -> Result<(), Error> {
        let _turn = self.renewing.lock().await;
        if self.is_leaving() {
            return Ok(());
        }
        let own = self.own.load_full();
        let now = Instant::now();
        if self.store.nodes().renew(&own.id, LIFE).await? {
            *own.until.lock() = now + LIFE;
            return Ok(());
        }
        let id = random_id()?;
        tracing::warn!("the other nodes considered this node gone and took over its sessions");
        self.own.store(Arc::new(LocalNode::new(id.as_str().into(), now)));
        if let Some(act) = self.lost.get() {
            act();
        }
        Ok(self.store.nodes().announce(&id, &self.url, LIFE).await?)
    }

    /// Reads the node list from the store.
    async fn read_peers(&self) -> Result<(), Error> {
        let rows = self.store.nodes().all().await?;
        let (own, before) = (self.id(), self.peers.load_full());
        let mut now = HashMap::new();
        for row in rows.into_iter().filter(|row| *row.id != *own) {
            let id: Arc<str> = row.id.into();
            let known = before.get(&id).cloned();
            let fresh = || Peer {
                id: Arc::clone(&id),
                url: row.url.trim_end_matches('/').into(),
                gone: CancellationToken::new(),
            };
            now.insert(Arc::clone(&id), known.unwrap_or_else(fresh));
        }
        for (_, peer) in before.iter().filter(|(id, _)| !now.contains_key(*id)) {
            peer.gone.cancel();
        }
        self.peers.store(Arc::new(now));
        Ok(())
    }

    /// Returns the number of nodes, this one included.
    pub fn count(&self) -> usize {
        self.peers.load().len() + 1
    }

    /// Returns the known peer whose id starts with `beginning`.
    pub fn peer_by_prefix(&self, beginning: &str) -> Option<Peer> {
        let peers = self.peers.load();
        peers.iter().find(|(id, _)| id.starts_with(beginning)).map(|(_, peer)| peer.clone())
    }

    /// Returns a peer by id. Asks the store if the peer is not known yet.
    pub async fn peer(&self, id: &str) -> Result<Option<Peer>, Error> {
        if let Some(peer) = self.peers.load().get(id) {
            return Ok(Some(peer.clone()));
        }
        self.read_peers().await?;
        Ok(self.peers.load().get(id).cloned())
    }

    /// Reads the node list again after a peer did not answer.
    pub async fn refresh_peers(&self) -> Result<(), Error> {
        self.read_peers().await
    }

    /// Leaves the cluster and returns when the other nodes have noticed: until then they forward requests here, and
    /// one that arrives during shutdown may or may not have been processed.
    pub async fn leave(&self) {
        self.left.store(true, Ordering::Release);
        {
            let _turn = self.renewing.lock().await;
            match tokio::time::timeout(LIFE, self.store.nodes().end(&self.id())).await {
                Ok(Ok(())) => {}
                Ok(Err(error)) => {
                    tracing::warn!(%error, "failed to tell the other nodes that this node is leaving");
                }
                Err(_) => {
                    tracing::warn!(
                        "failed to tell the other nodes that this node is leaving: the store does not respond"
                    );
                }
            }
        }
        if !self.peers.load().is_empty() {
            tokio::time::sleep(HEARD).await;
        }
    }
}

/// Returns 128 random bits in hex.
pub(crate) fn random_id() -> Result<String, Error> {
    let mut bytes = [0_u8; 16];
    getrandom::fill(&mut bytes)
        .map_err(|_| Error::new(ErrorKind::Internal, "The operating system returned no random bytes."))?;
    Ok(hex(&bytes))
}

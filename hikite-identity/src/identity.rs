//! Identity: users, their logins, the clients that act for them, and their grants. Everything is in the
//! store; users and grants are also in memory, so that a request needs one lookup. Knows neither HTTP nor the config:
//! callers pass lifetimes and the issuer.

mod bearer;
mod client;
mod code;
mod consent;
mod federated_user;
mod grant;
mod key;
mod login;
mod password;
mod redirect;
mod removal;
mod review;
mod secret;
mod setup;
mod signing;
mod snapshot;
mod target;
mod user;
mod well_known;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use hikite_core::caller::Scopes;
use hikite_core::error::Error;
use hikite_store::clock::{machine_clock, now_ms};
use hikite_store::{ChangeSet, GrantRow, Record, Store, change_kind};
use parking_lot::Mutex;
use tokio::sync::Semaphore;

use crate::secret_store::SecretStore;
pub use bearer::BearerLookup;
use bearer::VerifiedTokenCache;
use client::UnusedClients;
pub use client::{ClientOrigin, ClientQuota, ClientRecord, ClientRegistry, ClientStatus, NewClient};
pub use code::{ApprovedRequest, CodeExchange};
pub use consent::Consent;
pub use grant::OF_CLIENT;
pub use grant::{RefreshRequest, TokenIssuer, TokenPair};
use key::IdentityKeys;
pub use key::{RotationReason, ServerKeys, sealing_key};
pub use login::{LoginSession, LoginSessions};
pub use redirect::RedirectUri;
pub use removal::REMOVED_MESSAGE;
pub use removal::was_removed;
pub use secret::{hash, secret};
use snapshot::IdentitySnapshot;
pub use target::ResourceTarget;
pub use user::{ID as USER_ID, Role, Successor, User, UserAuthority, UserRegistry};
pub(crate) use user::{Users, only_the_owner};
pub use well_known::WellKnownClient;

/// Kinds of documents in the store.
const SETUP: &str = "setup";
const CODE: &str = "code";
/// A used code, with the grant that it became.
const USED_CODE: &str = "spent-code";
/// Removed users of external issuers.
pub(crate) const REMOVED: &str = "removed";
/// Kinds of a user's documents that other modules write.
const CHALLENGE: &str = "challenge";
const CONNECTION: &str = "connection";

/// Reads scopes by name; unknown ones are ignored.
fn read_scopes(names: &[String]) -> Scopes {
    names.iter().filter_map(|name| Scopes::parse(name)).fold(Scopes::NONE, Scopes::with)
}

fn milliseconds(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// Prefix of grant ids.
const GRANT_ID: &str = "grt_";
/// Number of passwords hashed concurrently; each takes 19 MiB and a core.
const HASHES: usize = 2;

/// Issuer, audience and lifetimes of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TokenTerms {
    pub issuer: Arc<str>,
    pub audience: Arc<str>,
    pub access: Duration,
    pub refresh: Duration,
}

/// Reason why a client gets no token: an OAuth error code, with a text for the developer.
#[derive(Clone, Debug)]
pub enum TokenError {
    Client(&'static str),
    Grant(&'static str),
    Scope(&'static str),
    /// The requested resource is outside the grant.
    Target(&'static str),
    /// A one-time credential was used again, so somebody else has seen it; its grant is revoked.
    Replay(Replay),
    /// An internal failure.
    Failed(Error),
}

/// A replayed credential.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Action in the audit record.
    pub action: &'static str,
    pub subject: String,
    pub grant: String,
    pub why: &'static str,
}

impl From<Error> for TokenError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<hikite_store::StoreError> for TokenError {
    fn from(error: hikite_store::StoreError) -> Self {
        Self::Failed(error.into())
    }
}

pub struct Identity {
    secret_store: Arc<SecretStore>,
    store: Store,
    keys: ArcSwapOption<IdentityKeys>,
    /// Serializes opening and creating keys.
    opening: tokio::sync::Mutex<()>,
    /// Time of the last lookup of an unknown key.
    looked: AtomicU64,
    /// Serializes changes, so that memory follows the store in order.
    change_lock: tokio::sync::Mutex<()>,
    snapshot: ArcSwap<IdentitySnapshot>,
    /// Store revision that memory reflects.
    revision: AtomicI64,
    verified_tokens: VerifiedTokenCache,
    hashing: Arc<Semaphore>,
    unused: Mutex<UnusedClients>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    pub fn new(secret_store: Arc<SecretStore>) -> Self {
        Self {
            store: secret_store.store().clone(),
            secret_store,
            keys: ArcSwapOption::empty(),
            opening: tokio::sync::Mutex::default(),
            looked: AtomicU64::new(0),
            change_lock: tokio::sync::Mutex::default(),
            snapshot: ArcSwap::default(),
            revision: AtomicI64::new(-1),
            verified_tokens: VerifiedTokenCache::default(),
            hashing: Arc::new(Semaphore::new(HASHES)),
            unused: Mutex::default(),
        }
    }

    /// Opens or creates the keys, without which no token can be verified.
    pub async fn prepare(&self) -> Result<(), Error> {
        self.keys().current().await.map(drop)
    }

    /// Reads all users and grants from the store.
    pub async fn read_store(&self) -> Result<(), Error> {
        let _change = self.change_lock.lock().await;
        self.read().await
    }

    /// Applies changes of the store as far as they concern identity.
    pub async fn follow_store(&self, changes: &ChangeSet) -> Result<(), Error> {
        let _change = self.change_lock.lock().await;
        if changes.continue_from(self.revision.load(Ordering::Relaxed)) {
            return self.apply_changes(changes).await;
        }
        self.read().await
    }

    async fn read(&self) -> Result<(), Error> {
        let changes = self.store.changes().since(self.revision.load(Ordering::Relaxed)).await?;
        self.apply_changes(&changes).await
    }

    async fn apply_changes(&self, changes: &ChangeSet) -> Result<(), Error> {
        let now = now_ms();
        // `None` means that a kind must be read as a whole; an empty list means that nothing changed.
        let ids = (changes.ids(change_kind::USER), changes.ids(GrantRow::KIND), changes.ids(REMOVED));
        if let (Some(users), Some(grants), Some([])) = (&ids.0, &ids.1, ids.2.as_deref()) {
            let mut snapshot = IdentitySnapshot::clone(&self.snapshot.load());
            for id in users {
                match self.store.users().by_id(id).await?.as_ref().and_then(User::of) {
                    Some(user) => snapshot.put_user(Arc::new(user)),
                    None => snapshot.remove_user_by_id(id),
                }
            }
            for id in grants {
                match self.store.grants().get(id, now).await? {
                    Some(grant) => snapshot.put_grant(&grant),
                    None => snapshot.remove_grants(&[(*id).to_owned()]),
                }
            }
            if !users.is_empty() || !grants.is_empty() {
                self.snapshot.store(Arc::new(snapshot));
            }
        } else {
            self.store.users().adopt().await?;
            let users = self.store.users().all().await?;
            let grants = self.store.grants().all(now).await?;
            let removed = self.store.documents().all(REMOVED, None, now).await?;
            self.snapshot.store(Arc::new(IdentitySnapshot::of(&users, &grants, &removed)));
        }
        self.revision.store(changes.to, Ordering::Relaxed);
        Ok(())
    }

    /// Deletes expired documents by the store's clock; nothing while that clock is in doubt.
    pub async fn sweep(&self) -> Result<u64, Error> {
        if self.store.clock().check(&machine_clock()).await?.is_some() {
            return Ok(0);
        }
        Ok(self.store.delete_expired(self.store.clock().now_ms().await?).await?)
    }

    pub fn users(&self) -> UserRegistry<'_> {
        UserRegistry(self)
    }

    pub fn clients(&self) -> ClientRegistry<'_> {
        ClientRegistry(self)
    }

    pub fn logins(&self) -> LoginSessions<'_> {
        LoginSessions(self)
    }

    pub fn tokens(&self) -> TokenIssuer<'_> {
        TokenIssuer(self)
    }

    pub fn keys(&self) -> ServerKeys<'_> {
        ServerKeys(self)
    }

    /// Updates memory after the store was changed.
    async fn update_snapshot(&self, change: impl FnOnce(&mut IdentitySnapshot)) {
        let _change = self.change_lock.lock().await;
        let mut snapshot = IdentitySnapshot::clone(&self.snapshot.load());
        change(&mut snapshot);
        self.snapshot.store(Arc::new(snapshot));
    }
}

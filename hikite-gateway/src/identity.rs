//! Identity: users, their logins, the clients that act for them, and their grants. Everything is a document in the
//! store; users and grants are also in memory, so that a request needs one lookup. Knows neither HTTP nor the config:
//! callers pass lifetimes and the issuer.

mod bearer;
mod book;
mod client;
mod code;
mod consent;
mod grant;
mod key;
mod known;
mod login;
mod password;
mod redirect;
mod removal;
mod review;
mod secret;
mod setup;
mod signing;
mod stranger;
mod target;
mod user;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use hikite_core::error::Error;
use hikite_store::{Changes, Store, change_kind};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Semaphore;

use crate::clock::{machine_clock, now_ms};
use crate::safe::Safe;
pub use bearer::Bearer;
use bearer::Seen;
use book::Book;
pub(crate) use book::Users;
use client::UnusedClients;
pub use client::{Client, ClientForm, ClientRoom, Origin, Standing};
pub use code::{Ask, Code};
pub use consent::Consent;
pub(crate) use grant::OF_CLIENT;
pub use grant::{Pair, Refresh};
use key::Keys;
pub use key::{Rotation, sealing_key};
pub use known::Known;
pub use login::Login;
pub use redirect::Redirect;
pub use removal::WAS_REMOVED;
pub(crate) use removal::was_removed;
pub use secret::{hash, secret};
pub use target::Target;
pub(crate) use user::{ID as USER_ID, only_the_owner};
pub use user::{Right, Role, Successor, User};

/// Kinds of documents in the store.
const SETUP: &str = "setup";
const LOGIN: &str = "login";
const CLIENT: &str = "client";
const CONSENT: &str = "consent";
const CODE: &str = "code";
/// A used code, with the grant that it became.
const SPENT: &str = "spent-code";
pub(crate) const GRANT: &str = "grant";
/// Removed users of external issuers.
pub(crate) const REMOVED: &str = "removed";
/// Kinds of a user's documents that other modules write.
const PASSKEY: &str = "passkey";
const CHALLENGE: &str = "challenge";
const CONNECTION: &str = "connection";

/// Prefix of grant ids.
const GRANT_ID: &str = "grt_";
/// Number of passwords hashed concurrently; each takes 19 MiB and a core.
const HASHES: usize = 2;

/// Issuer, audience and lifetimes of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Terms {
    pub issuer: Arc<str>,
    pub audience: Arc<str>,
    pub access: Duration,
    pub refresh: Duration,
}

/// Reason why a client gets no token: an OAuth error code, with a text for the developer.
#[derive(Clone, Debug)]
pub enum Denied {
    Client(&'static str),
    Grant(&'static str),
    Scope(&'static str),
    /// The requested resource is outside the grant.
    Target(&'static str),
    /// A one-time credential was used again, so somebody else has seen it; its grant is revoked.
    Again(Again),
    /// An internal failure.
    Failed(Error),
}

/// A replayed credential.
#[derive(Clone, Debug)]
pub struct Again {
    /// Action in the audit record.
    pub action: &'static str,
    pub subject: String,
    pub grant: String,
    pub why: &'static str,
}

impl From<Error> for Denied {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<hikite_store::StoreError> for Denied {
    fn from(error: hikite_store::StoreError) -> Self {
        Self::Failed(error.into())
    }
}

pub struct Identity {
    safe: Arc<Safe>,
    store: Store,
    keys: ArcSwapOption<Keys>,
    /// Serializes opening and creating keys.
    opening: tokio::sync::Mutex<()>,
    /// Time of the last lookup of an unknown key.
    looked: AtomicU64,
    /// Serializes changes, so that memory follows the store in order.
    turn: tokio::sync::Mutex<()>,
    book: ArcSwap<Book>,
    /// Store revision that memory reflects.
    revision: AtomicI64,
    seen: Seen,
    hashing: Arc<Semaphore>,
    unused: Mutex<UnusedClients>,
}

impl std::fmt::Debug for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Identity").finish_non_exhaustive()
    }
}

impl Identity {
    pub fn new(safe: Arc<Safe>) -> Self {
        Self {
            store: safe.store().clone(),
            safe,
            keys: ArcSwapOption::empty(),
            opening: tokio::sync::Mutex::default(),
            looked: AtomicU64::new(0),
            turn: tokio::sync::Mutex::default(),
            book: ArcSwap::default(),
            revision: AtomicI64::new(-1),
            seen: Seen::default(),
            hashing: Arc::new(Semaphore::new(HASHES)),
            unused: Mutex::default(),
        }
    }

    /// Opens or creates the keys, without which no token can be verified.
    pub async fn prepare(&self) -> Result<(), Error> {
        self.keys().await.map(drop)
    }

    /// Reads all users and grants from the store.
    pub async fn read_store(&self) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        self.read().await
    }

    /// Applies changes of the store as far as they concern identity.
    pub(crate) async fn follow_store(&self, changes: &Changes) -> Result<(), Error> {
        let _turn = self.turn.lock().await;
        if changes.continue_from(self.revision.load(Ordering::Relaxed)) {
            return self.take_in(changes).await;
        }
        self.read().await
    }

    async fn read(&self) -> Result<(), Error> {
        let changes = self.store.changes_since(self.revision.load(Ordering::Relaxed)).await?;
        self.take_in(&changes).await
    }

    async fn take_in(&self, changes: &Changes) -> Result<(), Error> {
        let now = now_ms();
        // `None` means that a kind must be read as a whole; an empty list means that nothing changed.
        let ids = (changes.ids(change_kind::USER), changes.ids(GRANT), changes.ids(REMOVED));
        if let (Some(users), Some(grants), Some([])) = (&ids.0, &ids.1, ids.2.as_deref()) {
            let mut book = Book::clone(&self.book.load());
            for id in users {
                match self.store.user_by_id(id).await?.as_ref().and_then(User::of) {
                    Some(user) => book.put_user(Arc::new(user)),
                    None => book.lose_user(id),
                }
            }
            for id in grants {
                match self.store.entry(GRANT, id, now).await?.as_ref().and_then(grant::mark) {
                    Some(mark) => book.put_grant(id, mark),
                    None => book.remove_grants(&[(*id).to_owned()]),
                }
            }
            if !users.is_empty() || !grants.is_empty() {
                self.book.store(Arc::new(book));
            }
        } else {
            self.store.adopt_users().await?;
            let users = self.store.users().await?;
            let grants = self.store.entries(GRANT, None, now).await?;
            let removed = self.store.entries(REMOVED, None, now).await?;
            self.book.store(Arc::new(Book::of(&users, &grants, &removed)));
        }
        self.revision.store(changes.to, Ordering::Relaxed);
        Ok(())
    }

    /// Deletes expired documents by the store's clock; nothing while that clock is in doubt.
    pub async fn sweep(&self) -> Result<u64, Error> {
        if self.store.watch_clock(&machine_clock()).await?.is_some() {
            return Ok(0);
        }
        Ok(self.store.sweep_entries(self.store.now_ms().await?).await?)
    }

    /// Returns the JSON Web Key Set of our signing keys.
    pub async fn key_set(&self) -> Result<Value, Error> {
        Ok(self.keys().await?.signing.document())
    }

    /// Updates memory after the store was changed.
    async fn learn(&self, change: impl FnOnce(&mut Book)) {
        let _turn = self.turn.lock().await;
        let mut book = Book::clone(&self.book.load());
        change(&mut book);
        self.book.store(Arc::new(book));
    }
}

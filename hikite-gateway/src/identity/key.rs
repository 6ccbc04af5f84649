//! Server keys: the signing keys of access tokens, and the sealing key of refresh tokens and form tokens. All are in
//! the vault, created by the first process; the others load them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hikite_core::error::{Error, Kind};
use hikite_core::seal::Seal;
use hikite_core::secret::Secret;
use hikite_vault::{Jwks, MasterKey, Ring};

use super::Identity;
use super::secret::failed;
use super::signing::Signing;
use crate::clock::now_ms;
use crate::safe::{HOUSE, Kept, Safe};

const PROVIDER: &str = "oauth";
const SIGNING: &str = "signing-key";
const SEALING: &str = "sealing-key";
/// Shortest interval, in milliseconds, between lookups caused by unknown keys.
const LOOK_MS: u64 = 1000;

/// Reason for a key rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// The newest key is old. If another process rotated first, its key is used.
    Due,
    Asked,
    /// The old keys are compromised: their signatures are no longer accepted.
    Lost,
}

pub(super) struct Keys {
    pub(super) signing: Signing,
    /// Version of the secret in the vault.
    version: u64,
    pub(super) public: Jwks,
    /// Seals refresh tokens.
    pub(super) refresh: Seal,
    /// Seals CSRF tokens of forms, bound to a login.
    pub(super) form: Seal,
    /// Wraps the key of each grant.
    pub(super) ring: Ring,
}

impl Keys {
    async fn open(safe: &Safe, now: u64) -> Result<Self, Error> {
        let kept = once(safe, SIGNING, || Ok(Signing::random(now).map_err(failed)?.text())).await?;
        let signing = Signing::read(&kept.secret).map_err(failed)?.believed(now);
        let sealing = sealing_key(safe).await?;
        Ok(Self {
            public: signing.public(),
            signing,
            version: kept.version,
            refresh: Seal::new(sealing.derive("refresh")),
            form: Seal::new(sealing.derive("form")),
            ring: Ring::new(sealing, Vec::new()),
        })
    }
}

impl Identity {
    pub(super) async fn keys(&self) -> Result<Arc<Keys>, Error> {
        if let Some(keys) = self.keys.load_full() {
            return Ok(keys);
        }
        let _opening = self.opening.lock().await;
        match self.keys.load_full() {
            Some(keys) => Ok(keys),
            None => self.open_keys(self.store.now_ms().await?).await,
        }
    }

    /// Loads keys of other processes, rotates an old key and drops expired ones.
    pub async fn tend_keys(&self) -> Result<(), Error> {
        // The keys are shared: a node with a wrong clock must not retire them.
        self.tend_keys_at(self.store.now_ms().await?).await
    }

    pub(super) async fn tend_keys_at(&self, now: u64) -> Result<(), Error> {
        let keys = self.keys().await?;
        if keys.signing.is_due(now) {
            self.rotate_keys_at(now, Rotation::Due).await?;
            return Ok(());
        }
        let kept = self.safe.get(HOUSE, PROVIDER, SIGNING).await?;
        let is_same = kept.is_some_and(|kept| kept.version == keys.version);
        if !is_same || keys.signing.believed(now).len() < keys.signing.len() {
            let _opening = self.opening.lock().await;
            self.open_keys(now).await?;
        }
        Ok(())
    }

    /// Starts signing with a new key and returns its id. Signatures of the previous key stay valid until their tokens
    /// expire, unless it is compromised.
    pub async fn rotate_keys(&self, why: Rotation) -> Result<String, Error> {
        self.rotate_keys_at(self.store.now_ms().await?, why).await
    }

    pub(super) async fn rotate_keys_at(&self, now: u64, why: Rotation) -> Result<String, Error> {
        let _opening = self.opening.lock().await;
        loop {
            let keys = self.open_keys(now).await?;
            if why == Rotation::Due && !keys.signing.is_due(now) {
                return Ok(keys.signing.newest().kid().to_owned());
            }
            let next = keys.signing.next(now, why == Rotation::Lost).map_err(failed)?;
            if self.safe.put((HOUSE, PROVIDER, SIGNING), keys.version, &next.text()).await? {
                let keys = self.open_keys(now).await?;
                tracing::info!(key = keys.signing.newest().kid(), "access tokens are signed with a new key");
                return Ok(keys.signing.newest().kid().to_owned());
            }
        }
    }

    /// Looks in the store for a key that is unknown here, at a limited rate.
    pub async fn look_for_key(&self) -> Result<(), Error> {
        let (now, before) = (now_ms(), self.looked.load(Ordering::Relaxed));
        let is_soon = now < before.saturating_add(LOOK_MS);
        let exchange = self.looked.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed);
        if is_soon || exchange.is_err() {
            return Ok(());
        }
        self.tend_keys().await
    }

    /// Loads the keys from the vault and drops cached verifications if they changed. The caller must hold `opening`.
    async fn open_keys(&self, now: u64) -> Result<Arc<Keys>, Error> {
        let keys = Arc::new(Keys::open(&self.safe, now).await?);
        let before = self.keys.swap(Some(Arc::clone(&keys)));
        if before.is_some_and(|before| before.signing.document() != keys.signing.document()) {
            self.seen.forget();
        }
        Ok(keys)
    }
}

/// Returns the sealing key shared by all processes on this store; each purpose derives a key of its own from it.
pub async fn sealing_key(safe: &Safe) -> Result<MasterKey, Error> {
    let kept = once(safe, SEALING, || Ok(MasterKey::random().map_err(failed)?.text())).await?;
    MasterKey::parse(kept.secret.expose()).map_err(failed)
}

/// Reads a secret or creates it. If several processes create it at once, one wins and all use its value.
async fn once(safe: &Safe, field: &str, make: impl FnOnce() -> Result<Secret, Error>) -> Result<Kept, Error> {
    if let Some(kept) = safe.get(HOUSE, PROVIDER, field).await? {
        return Ok(kept);
    }
    let fresh = make()?;
    safe.put((HOUSE, PROVIDER, field), 0, &fresh).await?;
    let kept = safe.get(HOUSE, PROVIDER, field).await?;
    kept.ok_or_else(|| Error::new(Kind::Internal, "a key of the house was made and is gone"))
}

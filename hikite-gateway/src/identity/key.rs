//! The keys of the house: those that access tokens are signed with, one that refresh tokens and forms are sealed with. All
//! lie in the vault and are made by whichever process is the first; the others take what it made.

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
/// Whoever shows a key that nobody knows makes us look in the store, so often at most.
const LOOK_MS: u64 = 1000;

/// Why there shall be a new key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rotation {
    /// The newest is old. Where another process was faster, its key is the one.
    Due,
    Asked,
    /// Somebody else has the old ones: what they signed counts no more.
    Lost,
}

pub(super) struct Keys {
    pub(super) signing: Signing,
    /// The how many-th of the vault that is.
    version: u64,
    pub(super) public: Jwks,
    /// On refresh tokens.
    pub(super) refresh: Seal,
    /// On forms, for the login they were made for.
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

    /// Takes in what others have made, makes a new key when the newest is old, and forgets those whose time is over.
    pub async fn tend_keys(&self) -> Result<(), Error> {
        // The keys are everybody's: a node whose clock is wrong must not retire them.
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

    /// A new key signs from now on; its name. What the one before has signed is good until it ends, unless it is lost.
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

    /// Looks in the store for a key that is not known here, though not for everybody who asks.
    pub async fn look_for_key(&self) -> Result<(), Error> {
        let (now, before) = (now_ms(), self.looked.load(Ordering::Relaxed));
        let is_soon = now < before.saturating_add(LOOK_MS);
        let exchange = self.looked.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed);
        if is_soon || exchange.is_err() {
            return Ok(());
        }
        self.tend_keys().await
    }

    /// As the vault has them; what was verified with others counts no more. Whoever calls this holds the turn.
    async fn open_keys(&self, now: u64) -> Result<Arc<Keys>, Error> {
        let keys = Arc::new(Keys::open(&self.safe, now).await?);
        let before = self.keys.swap(Some(Arc::clone(&keys)));
        if before.is_some_and(|before| before.signing.document() != keys.signing.document()) {
            self.seen.forget();
        }
        Ok(keys)
    }
}

/// What every process on this store seals with, each purpose with a key of its own derived from it.
pub async fn sealing_key(safe: &Safe) -> Result<MasterKey, Error> {
    let kept = once(safe, SEALING, || Ok(MasterKey::random().map_err(failed)?.text())).await?;
    MasterKey::parse(kept.secret.expose()).map_err(failed)
}

/// Of several who make one at once, one is right, and all use it.
async fn once(safe: &Safe, field: &str, make: impl FnOnce() -> Result<Secret, Error>) -> Result<Kept, Error> {
    if let Some(kept) = safe.get(HOUSE, PROVIDER, field).await? {
        return Ok(kept);
    }
    let fresh = make()?;
    safe.put((HOUSE, PROVIDER, field), 0, &fresh).await?;
    let kept = safe.get(HOUSE, PROVIDER, field).await?;
    kept.ok_or_else(|| Error::new(Kind::Internal, "a key of the house was made and is gone"))
}

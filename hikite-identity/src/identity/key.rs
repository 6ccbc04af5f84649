//! Server keys: the signing keys of access tokens, and the sealing key of refresh tokens and form tokens. All are in
//! the vault, created by the first process; the others load them.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::secret::Secret;
use hikite_core::signer::HmacSigner;
use hikite_store::clock::now_ms;
use hikite_vault::{Jwks, KeyRing, MasterKey};
use serde_json::Value;

use super::Identity;
use super::secret::failed;
use super::signing::SigningKeys;
use crate::secret_store::{GATEWAY_ACCOUNT, SecretStore, StoredSecret};

const PROVIDER: &str = "oauth";
const SIGNING: &str = "signing-key";
const SEALING: &str = "sealing-key";
/// Shortest interval, in milliseconds, between lookups caused by unknown keys.
const LOOKUP_INTERVAL_MS: u64 = 1000;

/// Reason for a key rotation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RotationReason {
    /// The newest key is old. If another process rotated first, its key is used.
    Due,
    Requested,
    /// The old keys are compromised: their signatures are no longer accepted.
    Compromised,
}

pub(super) struct IdentityKeys {
    pub(super) signing: SigningKeys,
    /// Version of the secret in the vault.
    version: u64,
    pub(super) public: Jwks,
    /// Seals refresh tokens.
    pub(super) refresh: HmacSigner,
    /// Seals CSRF tokens of forms, bound to a login.
    pub(super) form: HmacSigner,
    /// Wraps the key of each grant.
    pub(super) ring: KeyRing,
}

impl IdentityKeys {
    async fn open(secret_store: &SecretStore, now: u64) -> Result<Self, Error> {
        let kept = once(secret_store, SIGNING, || Ok(SigningKeys::random(now).map_err(failed)?.text())).await?;
        let signing = SigningKeys::read(&kept.secret).map_err(failed)?.still_verifying(now);
        let sealing = sealing_key(secret_store).await?;
        Ok(Self {
            public: signing.public(),
            signing,
            version: kept.version,
            refresh: HmacSigner::new(sealing.derive("refresh")),
            form: HmacSigner::new(sealing.derive("form")),
            ring: KeyRing::new(sealing, Vec::new()),
        })
    }
}

/// The keys of this server.
#[derive(Clone, Copy, Debug)]
pub struct ServerKeys<'a>(pub(super) &'a Identity);

impl ServerKeys<'_> {
    pub(super) async fn current(self) -> Result<Arc<IdentityKeys>, Error> {
        if let Some(keys) = self.0.keys.load_full() {
            return Ok(keys);
        }
        let _opening = self.0.opening.lock().await;
        match self.0.keys.load_full() {
            Some(keys) => Ok(keys),
            None => self.open(self.0.store.clock().now_ms().await?).await,
        }
    }

    /// Returns the JSON Web Key Set of our signing keys.
    pub async fn document(self) -> Result<Value, Error> {
        Ok(self.current().await?.signing.document())
    }

    /// Loads keys of other processes, rotates an old key and drops expired ones.
    pub async fn maintain(self) -> Result<(), Error> {
        // The keys are shared: a node with a wrong clock must not retire them.
        self.maintain_at(self.0.store.clock().now_ms().await?).await
    }

    pub(super) async fn maintain_at(self, now: u64) -> Result<(), Error> {
        let keys = self.current().await?;
        if keys.signing.is_due(now) {
            self.rotate_at(now, RotationReason::Due).await?;
            return Ok(());
        }
        let kept = self.0.secret_store.get(GATEWAY_ACCOUNT, PROVIDER, SIGNING).await?;
        let is_same = kept.is_some_and(|kept| kept.version == keys.version);
        if !is_same || keys.signing.still_verifying(now).len() < keys.signing.len() {
            let _opening = self.0.opening.lock().await;
            self.open(now).await?;
        }
        Ok(())
    }

    /// Starts signing with a new key and returns its id. Signatures of the previous key stay valid until their tokens
    /// expire, unless it is compromised.
    pub async fn rotate(self, why: RotationReason) -> Result<String, Error> {
        self.rotate_at(self.0.store.clock().now_ms().await?, why).await
    }

    pub(super) async fn rotate_at(self, now: u64, why: RotationReason) -> Result<String, Error> {
        let _opening = self.0.opening.lock().await;
        loop {
            let keys = self.open(now).await?;
            if why == RotationReason::Due && !keys.signing.is_due(now) {
                return Ok(keys.signing.newest().kid().to_owned());
            }
            let next = keys.signing.next(now, why == RotationReason::Compromised).map_err(failed)?;
            if self.0.secret_store.put((GATEWAY_ACCOUNT, PROVIDER, SIGNING), keys.version, &next.text()).await? {
                let keys = self.open(now).await?;
                tracing::info!(key = keys.signing.newest().kid(), "access tokens are signed with a new key");
                return Ok(keys.signing.newest().kid().to_owned());
            }
        }
    }

    /// Looks in the store for a key that is unknown here, at a limited rate.
    pub async fn reload(self) -> Result<(), Error> {
        let (now, before) = (now_ms(), self.0.looked.load(Ordering::Relaxed));
        let is_soon = now < before.saturating_add(LOOKUP_INTERVAL_MS);
        let exchange = self.0.looked.compare_exchange(before, now, Ordering::Relaxed, Ordering::Relaxed);
        if is_soon || exchange.is_err() {
            return Ok(());
        }
        self.maintain().await
    }

    /// Loads the keys from the vault and drops cached verifications if they changed. The caller must hold `opening`.
    async fn open(self, now: u64) -> Result<Arc<IdentityKeys>, Error> {
        let keys = Arc::new(IdentityKeys::open(&self.0.secret_store, now).await?);
        let before = self.0.keys.swap(Some(Arc::clone(&keys)));
        if before.is_some_and(|before| before.signing.document() != keys.signing.document()) {
            self.0.verified_tokens.forget();
        }
        Ok(keys)
    }
}

/// Returns the sealing key shared by all processes on this store; each purpose derives a key of its own from it.
pub async fn sealing_key(secret_store: &SecretStore) -> Result<MasterKey, Error> {
    let kept = once(secret_store, SEALING, || Ok(MasterKey::random().map_err(failed)?.text())).await?;
    MasterKey::parse(kept.secret.expose()).map_err(failed)
}

/// Reads a secret or creates it. If several processes create it at once, one wins and all use its value.
async fn once(
    secret_store: &SecretStore,
    field: &str,
    make: impl FnOnce() -> Result<Secret, Error>,
) -> Result<StoredSecret, Error> {
    if let Some(kept) = secret_store.get(GATEWAY_ACCOUNT, PROVIDER, field).await? {
        return Ok(kept);
    }
    let fresh = make()?;
    secret_store.put((GATEWAY_ACCOUNT, PROVIDER, field), 0, &fresh).await?;
    let kept = secret_store.get(GATEWAY_ACCOUNT, PROVIDER, field).await?;
    kept.ok_or_else(|| Error::new(ErrorKind::Internal, "A signing key was created but is no longer in the store."))
}

//! The keys of the house: one to sign access tokens with, one that refresh tokens and forms are sealed with. Both lie in
//! the vault and are made once, by whichever process is the first.

use hikite_core::error::{Error, Kind};
use hikite_core::seal::Seal;
use hikite_core::secret::Secret;
use hikite_vault::{Jwks, MasterKey, Ring, SigningKey};
use serde_json::{Value, json};

use super::secret::failed;
use crate::safe::{HOUSE, Safe};

const PROVIDER: &str = "oauth";
const SIGNING: &str = "signing-key";
const SEALING: &str = "sealing-key";

pub(super) struct Keys {
    pub(super) signing: SigningKey,
    pub(super) public: Jwks,
    /// On refresh tokens.
    pub(super) refresh: Seal,
    /// On forms, for the login they were made for.
    pub(super) form: Seal,
    /// Wraps the key of each grant.
    pub(super) ring: Ring,
}

impl Keys {
    pub(super) async fn open(safe: &Safe) -> Result<Self, Error> {
        let signing = once(safe, SIGNING, || Ok(SigningKey::random().map_err(failed)?.secret().clone()));
        let signing = SigningKey::parse(&signing.await?).map_err(failed)?;
        let sealing = once(safe, SEALING, || Ok(MasterKey::random().map_err(failed)?.text()));
        let sealing = MasterKey::parse(sealing.await?.expose()).map_err(failed)?;
        Ok(Self {
            public: Jwks::read(&json!({ "keys": [signing.jwk()] })),
            signing,
            refresh: Seal::new(sealing.derive("refresh")),
            form: Seal::new(sealing.derive("form")),
            ring: Ring::new(sealing, Vec::new()),
        })
    }

    pub(super) fn document(&self) -> Value {
        json!({ "keys": [self.signing.jwk()] })
    }
}

/// Of several who make one at once, one is right, and all use it.
async fn once(
    safe: &Safe,
    field: &str,
    make: impl FnOnce() -> Result<Secret, Error>,
) -> Result<Secret, Error> {
    if let Some(kept) = safe.get(HOUSE, PROVIDER, field).await? {
        return Ok(kept.secret);
    }
    let fresh = make()?;
    if safe.put((HOUSE, PROVIDER, field), 0, &fresh).await? {
        return Ok(fresh);
    }
    let kept = safe.get(HOUSE, PROVIDER, field).await?;
    kept.map(|kept| kept.secret)
        .ok_or_else(|| Error::new(Kind::Internal, "a key of the house was made and is gone"))
}

//! The cached key set of one issuer. It is fetched again when it is old and when a token names an unknown key, but
//! never more often than once per `PAUSE_MS`.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use hikite_core::error::{Error, Kind};
use hikite_core::fetch::{Fetch, Word};
use hikite_vault::{Jwks, Unverified};
use parking_lot::Mutex;
use serde_json::Value;

use super::discovery::Discovery;

/// Age after which keys are fetched again.
const FRESH_MS: u64 = 10 * 60_000;
/// Age up to which keys stay valid while fetching fails; a revoked key must not live on.
const STALE_MS: u64 = 60 * 60_000;
/// Minimum time between two fetches, whatever keys tokens name.
const PAUSE_MS: u64 = 30_000;

#[derive(Debug)]
pub(crate) struct Keys {
    issuer: String,
    url: Option<String>,
    read: ArcSwapOption<Read>,
    /// Time of the last fetch attempt, in milliseconds since 1970.
    looked: Mutex<u64>,
    /// Serializes fetches; callers that wait for the lock share the result.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct Read {
    keys: Jwks,
    at: u64,
}

impl Keys {
    pub(crate) fn new(issuer: &str, url: Option<&str>) -> Self {
        Self {
            issuer: issuer.to_owned(),
            url: url.map(ToOwned::to_owned),
            read: ArcSwapOption::empty(),
            looked: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the claims of a token, if one of the keys signed it.
    pub(crate) fn verify(&self, token: &Unverified<'_>, now: u64) -> Option<Value> {
        let read = self.read.load();
        let read = read.as_ref().filter(|read| now < read.at.saturating_add(STALE_MS))?;
        read.keys.verify(token).ok()
    }

    /// Fetches the keys if there is a reason to and the last fetch is not too recent.
    pub(crate) async fn look(&self, fetch: &dyn Fetch, kid: Option<&str>, now: u64) -> Result<(), Error> {
        if !self.has_reason(kid, now) {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        {
            let mut looked = self.looked.lock();
            let is_soon = *looked > 0 && now < looked.saturating_add(PAUSE_MS);
            if is_soon || !self.has_reason(kid, now) {
                return Ok(());
            }
            *looked = now;
        }
        let keys = self.fetched(fetch).await?;
        self.read.store(Some(Arc::new(Read { keys, at: now })));
        Ok(())
    }

    fn has_reason(&self, kid: Option<&str>, now: u64) -> bool {
        let read = self.read.load();
        let Some(read) = read.as_ref() else { return true };
        now >= read.at.saturating_add(FRESH_MS) || kid.is_some_and(|kid| !read.keys.has(kid))
    }

    async fn fetched(&self, fetch: &dyn Fetch) -> Result<Jwks, Error> {
        let (url, word) = match &self.url {
            Some(url) => (url.clone(), Word::Owner),
            None => Discovery::read(fetch, &self.issuer).await?.address("jwks_uri")?,
        };
        let keys = Jwks::read(&fetch.get(&url, word).await?);
        if keys.is_empty() {
            let message = format!("the key set of `{}` holds no key that is understood", self.issuer);
            let hint = "keys of ES256, EdDSA and RSA are; a shared secret (HS256) is none";
            return Err(Error::new(Kind::UpstreamUnavailable, message).hint(hint));
        }
        Ok(keys)
    }
}

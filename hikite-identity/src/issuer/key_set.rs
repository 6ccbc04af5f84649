//! The cached key set of one issuer. It is fetched again when it is old and when a token names an unknown key, but
//! never more often than once per `PAUSE_MS`.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::fetch::{AddressTrust, DocumentFetcher};
use hikite_vault::{Jwks, UnverifiedToken};
use parking_lot::Mutex;
use serde_json::Value;

use super::discovery::IssuerMetadata;

/// Age after which keys are fetched again.
const FRESH_MS: u64 = 10 * 60_000;
/// Age up to which keys stay valid while fetching fails; a revoked key must not live on.
const STALE_MS: u64 = 60 * 60_000;
/// Minimum time between two fetches, whatever keys tokens name.
const PAUSE_MS: u64 = 30_000;

#[derive(Debug)]
pub(crate) struct IssuerKeySet {
    issuer: String,
    url: Option<String>,
    read: ArcSwapOption<FetchedKeys>,
    /// Time of the last fetch attempt, in milliseconds since 1970.
    last_attempt: Mutex<u64>,
    /// Serializes fetches; callers that wait for the lock share the result.
    turn: tokio::sync::Mutex<()>,
}

#[derive(Debug)]
struct FetchedKeys {
    keys: Jwks,
    at: u64,
}

impl IssuerKeySet {
    pub(crate) fn new(issuer: &str, url: Option<&str>) -> Self {
        Self {
            issuer: issuer.to_owned(),
            url: url.map(ToOwned::to_owned),
            read: ArcSwapOption::empty(),
            last_attempt: Mutex::default(),
            turn: tokio::sync::Mutex::default(),
        }
    }

    /// Returns the claims of a token, if one of the keys signed it.
    pub(crate) fn verify(&self, token: &UnverifiedToken<'_>, now: u64) -> Option<Value> {
        let read = self.read.load();
        let read = read.as_ref().filter(|read| now < read.at.saturating_add(STALE_MS))?;
        read.keys.verify(token).ok()
    }

    /// Fetches the keys if there is a reason to and the last fetch is not too recent.
    pub(crate) async fn look(&self, fetch: &dyn DocumentFetcher, kid: Option<&str>, now: u64) -> Result<(), Error> {
        if !self.needs_fetch(kid, now) {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        {
            let mut last_attempt = self.last_attempt.lock();
            let is_soon = *last_attempt > 0 && now < last_attempt.saturating_add(PAUSE_MS);
            if is_soon || !self.needs_fetch(kid, now) {
                return Ok(());
            }
            *last_attempt = now;
        }
        let keys = self.fetch_keys(fetch).await?;
        self.read.store(Some(Arc::new(FetchedKeys { keys, at: now })));
        Ok(())
    }

    fn needs_fetch(&self, kid: Option<&str>, now: u64) -> bool {
        let read = self.read.load();
        let Some(read) = read.as_ref() else { return true };
        now >= read.at.saturating_add(FRESH_MS) || kid.is_some_and(|kid| !read.keys.has(kid))
    }

    async fn fetch_keys(&self, fetch: &dyn DocumentFetcher) -> Result<Jwks, Error> {
        let (url, word) = match &self.url {
            Some(url) => (url.clone(), AddressTrust::Configured),
            None => IssuerMetadata::read(fetch, &self.issuer).await?.address("jwks_uri")?,
        };
        let keys = Jwks::read(&fetch.get(&url, word).await?);
        if keys.is_empty() {
            let message = format!("The key set of `{}` has no supported key.", self.issuer);
            let hint = "Supported are ES256, EdDSA and RSA keys; a shared secret (HS256) is not.";
            return Err(Error::new(ErrorKind::UpstreamUnavailable, message).hint(hint));
        }
        Ok(keys)
    }
}

//! Verification of our access tokens. A verified token is cached by its hash until it expires; its grant and the rights
//! of its user are looked up every time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::Error;
use hikite_store::clock::now_ms;
use hikite_vault::UnverifiedToken;
use parking_lot::RwLock;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::grant::{self, ACCESS, PROJECT, TokenIssuer};
use super::{GRANT_ID, TokenTerms, milliseconds, target};

/// Tolerated clock difference between machines.
const LEEWAY: Duration = Duration::from_secs(60);
/// Number of verified tokens cached.
const TOKENS_CACHED_MAX: usize = 10_000;

/// Result of a token lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BearerLookup {
    /// A valid caller. A token for one project sets the project; membership in it is not checked here.
    Known(Caller),
    /// Signed by us, for a grant unknown here: another process may just have created it, or it has ended.
    UnknownGrant(Arc<str>),
    /// Claims our issuer with a key unknown here: another process may just have created it.
    UnknownKey,
    Nobody,
}

/// Cache of verified tokens by hash.
#[derive(Debug, Default)]
pub(super) struct VerifiedTokenCache(RwLock<HashMap<[u8; 32], Arc<VerifiedAccessToken>>>);

#[derive(Debug)]
struct VerifiedAccessToken {
    issuer: Arc<str>,
    audience: Arc<str>,
    subject: Arc<str>,
    grant: Arc<str>,
    scopes: Scopes,
    /// The only project that the token is for.
    project: Option<Arc<str>>,
    /// Milliseconds since the Unix epoch.
    expires_at: u64,
}

impl TokenIssuer<'_> {
    pub fn bearer(self, terms: &TokenTerms, token: &str) -> BearerLookup {
        self.bearer_at(terms, token, now_ms())
    }

    pub(super) fn bearer_at(self, terms: &TokenTerms, token: &str, now: u64) -> BearerLookup {
        // Our tokens are JWTs; most other tokens are not.
        if !token.starts_with("ey") {
            return BearerLookup::Nobody;
        }
        let hash = Sha256::digest(token).into();
        let known = self.0.verified_tokens.0.read().get(&hash).cloned();
        let Some(verified) = known.or_else(|| self.verify(terms, token, hash, now)) else {
            return if self.is_of_new_key(terms, token) { BearerLookup::UnknownKey } else { BearerLookup::Nobody };
        };
        let is_ours = verified.issuer == terms.issuer && verified.is_for(terms);
        if !is_ours || now >= verified.expires_at + milliseconds(LEEWAY) {
            return BearerLookup::Nobody;
        }
        let snapshot = self.0.snapshot.load();
        match snapshot.allowed(&verified.grant, now) {
            Some(allowed) => BearerLookup::Known(Caller {
                subject: Arc::clone(&verified.subject),
                project: verified.project.clone(),
                scopes: verified.scopes.both(allowed),
                token: Some(Arc::clone(&verified.grant)),
            }),
            None if snapshot.grant(&verified.grant).is_some() => BearerLookup::Nobody,
            None => BearerLookup::UnknownGrant(Arc::clone(&verified.grant)),
        }
    }

    /// Looks in the store for a grant that is unknown here. Returns `true` if it exists.
    pub async fn reload_grant(self, id: &str) -> Result<bool, Error> {
        if self.0.store.grants().get(id, now_ms()).await?.is_none() {
            return Ok(false);
        }
        self.0.read_store().await?;
        Ok(true)
    }

    /// Returns `true` if the grant with this id is valid, or `None` if the id is not that of a grant.
    pub(crate) fn is_alive(self, id: &str) -> Option<bool> {
        id.starts_with(GRANT_ID).then(|| self.0.snapshot.load().allowed(id, now_ms()).is_some())
    }

    /// Returns the time at which a grant ends unless it is refreshed.
    pub(crate) fn ends_at(self, id: &str) -> Option<u64> {
        self.0.snapshot.load().grant(id).map(|mark| mark.expires_at).filter(|at| *at > 0)
    }

    fn verify(self, terms: &TokenTerms, token: &str, hash: [u8; 32], now: u64) -> Option<Arc<VerifiedAccessToken>> {
        let read = UnverifiedToken::read(token)?;
        if read.typ.as_deref() != Some(ACCESS) || read.issuer() != Some(&terms.issuer) {
            return None;
        }
        let verified = Arc::new(VerifiedAccessToken::of(&self.0.keys.load().as_ref()?.public.verify_own(&read).ok()?)?);
        if now < verified.expires_at + milliseconds(LEEWAY) {
            self.0.verified_tokens.insert(hash, Arc::clone(&verified), now);
        }
        Some(verified)
    }

    fn is_of_new_key(self, terms: &TokenTerms, token: &str) -> bool {
        let Some(read) = UnverifiedToken::read(token) else { return false };
        let is_ours = read.typ.as_deref() == Some(ACCESS) && read.issuer() == Some(&terms.issuer);
        let keys = self.0.keys.load();
        is_ours && keys.as_ref().zip(read.kid.as_deref()).is_some_and(|(keys, kid)| !keys.signing.knows(kid))
    }
}

impl VerifiedTokenCache {
    pub(super) fn forget(&self) {
        self.0.write().clear();
    }

    fn insert(&self, hash: [u8; 32], verified: Arc<VerifiedAccessToken>, now: u64) {
        let mut verified_tokens = self.0.write();
        if verified_tokens.len() >= TOKENS_CACHED_MAX {
            verified_tokens.retain(|_, verified| now < verified.expires_at);
        }
        if verified_tokens.len() >= TOKENS_CACHED_MAX {
            // Verifying a token again costs a tenth of a millisecond.
            verified_tokens.clear();
        }
        verified_tokens.insert(hash, verified);
    }
}

impl VerifiedAccessToken {
    /// Returns `true` if the audience is ours: the MCP endpoint, or that of the token's project.
    fn is_for(&self, terms: &TokenTerms) -> bool {
        match self.project.as_deref() {
            None => self.audience == terms.audience,
            project => *self.audience == *target::audience(terms, project),
        }
    }

    fn of(claims: &Value) -> Option<Self> {
        let text = |name: &str| claims[name].as_str();
        let words = text("scope")?.split(' ').filter_map(Scopes::parse);
        Some(Self {
            issuer: text("iss")?.into(),
            audience: text("aud")?.into(),
            subject: text("sub")?.into(),
            grant: grant::shared(text("gid")?)?,
            scopes: words.fold(Scopes::NONE, Scopes::with),
            project: match &claims[PROJECT] {
                Value::Null => None,
                project => Some(project.as_str()?.into()),
            },
            expires_at: claims["exp"].as_u64()?.checked_mul(1000)?,
        })
    }
}

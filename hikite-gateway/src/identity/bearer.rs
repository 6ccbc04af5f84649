//! Verification of our access tokens. A verified token is cached by its hash until it expires; its grant and the rights
//! of its user are looked up every time.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::Error;
use hikite_vault::Unverified;
use parking_lot::RwLock;
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::grant::{self, ACCESS, PROJECT};
use super::login::milliseconds;
use super::{GRANT, GRANT_ID, Identity, Terms, target};
use crate::clock::now_ms;

/// Tolerated clock difference between machines.
const LEEWAY: Duration = Duration::from_secs(60);
/// Number of verified tokens cached.
const REMEMBERED: usize = 10_000;

/// Result of a token lookup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bearer {
    /// A valid caller. A token for one project sets the project; membership in it is not checked here.
    Known(Caller),
    /// Signed by us, for a grant unknown here: another process may just have created it, or it has ended.
    Absent(Arc<str>),
    /// Claims our issuer with a key unknown here: another process may just have created it.
    Unsigned,
    Nobody,
}

/// Cache of verified tokens by hash.
#[derive(Debug, Default)]
pub(super) struct Seen(RwLock<HashMap<[u8; 32], Arc<Verified>>>);

#[derive(Debug)]
struct Verified {
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

impl Identity {
    pub fn bearer(&self, terms: &Terms, token: &str) -> Bearer {
        self.bearer_at(terms, token, now_ms())
    }

    pub(super) fn bearer_at(&self, terms: &Terms, token: &str, now: u64) -> Bearer {
        // Our tokens are JWTs; most other tokens are not.
        if !token.starts_with("ey") {
            return Bearer::Nobody;
        }
        let hash = Sha256::digest(token).into();
        let known = self.seen.0.read().get(&hash).cloned();
        let Some(verified) = known.or_else(|| self.verify(terms, token, hash, now)) else {
            return if self.is_of_new_key(terms, token) { Bearer::Unsigned } else { Bearer::Nobody };
        };
        let is_ours = verified.issuer == terms.issuer && verified.is_for(terms);
        if !is_ours || now >= verified.expires_at + milliseconds(LEEWAY) {
            return Bearer::Nobody;
        }
        let book = self.book.load();
        match book.allowed(&verified.grant, now) {
            Some(allowed) => Bearer::Known(Caller {
                subject: Arc::clone(&verified.subject),
                project: verified.project.clone(),
                scopes: verified.scopes.both(allowed),
                token: Some(Arc::clone(&verified.grant)),
            }),
            None if book.grant(&verified.grant).is_some() => Bearer::Nobody,
            None => Bearer::Absent(Arc::clone(&verified.grant)),
        }
    }

    /// Looks in the store for a grant that is unknown here. Returns `true` if it exists.
    pub async fn look_for_grant(&self, id: &str) -> Result<bool, Error> {
        if self.store.entry(GRANT, id, now_ms()).await?.is_none() {
            return Ok(false);
        }
        self.read_store().await?;
        Ok(true)
    }

    /// Returns `true` if the grant with this id is valid, or `None` if the id is not that of a grant.
    pub(crate) fn is_alive(&self, id: &str) -> Option<bool> {
        id.starts_with(GRANT_ID).then(|| self.book.load().allowed(id, now_ms()).is_some())
    }

    /// Returns the time at which a grant ends unless it is refreshed.
    pub(crate) fn ends_at(&self, id: &str) -> Option<u64> {
        self.book.load().grant(id).map(|mark| mark.expires_at).filter(|at| *at > 0)
    }

    fn verify(&self, terms: &Terms, token: &str, hash: [u8; 32], now: u64) -> Option<Arc<Verified>> {
        let read = Unverified::read(token)?;
        if read.typ.as_deref() != Some(ACCESS) || read.issuer() != Some(&terms.issuer) {
            return None;
        }
        let verified = Arc::new(Verified::of(&self.keys.load().as_ref()?.public.verify_own(&read).ok()?)?);
        if now < verified.expires_at + milliseconds(LEEWAY) {
            self.seen.keep(hash, Arc::clone(&verified), now);
        }
        Some(verified)
    }

    fn is_of_new_key(&self, terms: &Terms, token: &str) -> bool {
        let Some(read) = Unverified::read(token) else { return false };
        let is_ours = read.typ.as_deref() == Some(ACCESS) && read.issuer() == Some(&terms.issuer);
        let keys = self.keys.load();
        is_ours && keys.as_ref().zip(read.kid.as_deref()).is_some_and(|(keys, kid)| !keys.signing.knows(kid))
    }
}

impl Seen {
    pub(super) fn forget(&self) {
        self.0.write().clear();
    }

    fn keep(&self, hash: [u8; 32], verified: Arc<Verified>, now: u64) {
        let mut seen = self.0.write();
        if seen.len() >= REMEMBERED {
            seen.retain(|_, verified| now < verified.expires_at);
        }
        if seen.len() >= REMEMBERED {
            // Verifying a token again costs a tenth of a millisecond.
            seen.clear();
        }
        seen.insert(hash, verified);
    }
}

impl Verified {
    /// Returns `true` if the audience is ours: the MCP endpoint, or that of the token's project.
    fn is_for(&self, terms: &Terms) -> bool {
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

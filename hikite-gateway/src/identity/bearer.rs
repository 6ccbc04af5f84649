//! Who bears an access token of ours. A token that was verified once is known by its hash until it ends; whether its
//! grant lives and what its user may do is looked up every time.

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

/// Clocks of machines differ.
const LEEWAY: Duration = Duration::from_secs(60);
/// So many verified tokens are remembered.
const REMEMBERED: usize = 10_000;

/// What is known of a token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Bearer {
    /// A caller whose token is for one project has that project; whether its person may enter it is not looked at here.
    Known(Caller),
    /// Signed by us, and of a grant that is not known here: another process may just have made it, or it is over.
    Absent(Arc<str>),
    /// It says that we signed it, with a key that is not known here: another process may just have made one.
    Unsigned,
    Nobody,
}

/// Verified tokens, by their hash.
#[derive(Debug, Default)]
pub(super) struct Seen(RwLock<HashMap<[u8; 32], Arc<Verified>>>);

#[derive(Debug)]
struct Verified {
    issuer: Arc<str>,
    audience: Arc<str>,
    subject: Arc<str>,
    grant: Arc<str>,
    scopes: Scopes,
    /// The only project that it opens.
    project: Option<Arc<str>>,
    /// Milliseconds since 1970.
    expires_at: u64,
}

impl Identity {
    pub fn bearer(&self, terms: &Terms, token: &str) -> Bearer {
        self.bearer_at(terms, token, now_ms())
    }

    pub(super) fn bearer_at(&self, terms: &Terms, token: &str, now: u64) -> Bearer {
        // Nothing else is a token of ours, and most tokens are none.
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

    /// Looks in the store for a grant that is not known here. Whether it is there.
    pub async fn look_for_grant(&self, id: &str) -> Result<bool, Error> {
        if self.store.entry(GRANT, id, now_ms()).await?.is_none() {
            return Ok(false);
        }
        self.read_store().await?;
        Ok(true)
    }

    /// Whether a grant, known by its id, lets its bearer in; `None` if the id is none of a grant.
    pub(crate) fn is_alive(&self, id: &str) -> Option<bool> {
        id.starts_with(GRANT_ID).then(|| self.book.load().allowed(id, now_ms()).is_some())
    }

    /// When a grant ends if nobody refreshes it.
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
            // Verifying again costs a tenth of a millisecond each.
            seen.clear();
        }
        seen.insert(hash, verified);
    }
}

impl Verified {
    /// True if its audience is ours: the one address of MCP, or that of the project that it is for.
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

//! Verification of JWTs from external issuers. Every configured issuer has an audience that its tokens must name; the
//! subjects it vouches for are prefixed with the issuer, so that none is mistaken for a local user.

mod claims;
mod discovery;
mod key_set;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use hikite_core::caller::{Caller, Scopes};
use hikite_core::fetch::DocumentFetcher;
use hikite_core::pattern::Pattern;
use hikite_store::clock::now_ms;
use hikite_vault::UnverifiedToken;
use parking_lot::RwLock;
use serde_json::Value;
use sha2::{Digest, Sha256};

pub(crate) use claims::{ValidityPeriod, holds, text};
pub(crate) use discovery::IssuerMetadata;
pub(crate) use key_set::IssuerKeySet;

/// First characters of every JWT: base64url of `{"`.
const SIGNED: &str = "ey";
/// Maximum number of verified tokens in memory.
const VERIFIED_MAX: usize = 10_000;
/// Accepted `typ` headers. Tokens made for other purposes, such as logout tokens, do not authenticate requests.
const TOKEN_TYPES: [&str; 2] = ["jwt", "at+jwt"];
const SUBJECT_BYTES: usize = 512;

/// Configuration of a trusted issuer.
#[derive(Clone, Debug)]
pub struct IssuerRule {
    /// Exact value of the `iss` claim.
    pub issuer: String,
    /// Required value of the `aud` claim.
    pub audience: String,
    /// URL of the key set; `None` finds it by discovery.
    pub jwks_url: Option<String>,
    /// Name of the claim that identifies the user.
    pub subject_claim: String,
    /// Upper bound of the scopes that this issuer's users get.
    pub scopes: Scopes,
    /// Name of the claim that lists the granted scopes; `None` grants all of `scopes`.
    pub scope_claim: Option<String>,
    /// Patterns of accepted subjects or email addresses; empty accepts every user.
    pub allow: Vec<Pattern>,
    /// Accepts an `email` claim although the token has no `email_verified`.
    pub trust_email: bool,
    /// Project of this issuer's users.
    pub project: Option<Arc<str>>,
}

/// All trusted issuers, with their cached keys and recently verified tokens.
#[derive(Debug)]
pub struct Issuers {
    fetch: Arc<dyn DocumentFetcher>,
    all: ArcSwap<Vec<Arc<Issuer>>>,
    seen: RwLock<HashMap<[u8; 32], Arc<VerifiedToken>>>,
}

#[derive(Debug)]
struct Issuer {
    rule: IssuerRule,
    keys: IssuerKeySet,
}

/// A verified token: its caller and its validity period.
#[derive(Debug)]
struct VerifiedToken {
    caller: Caller,
    times: ValidityPeriod,
}

impl Issuers {
    pub fn new(fetch: Arc<dyn DocumentFetcher>) -> Self {
        Self { fetch, all: ArcSwap::default(), seen: RwLock::default() }
    }

    /// Replaces the trusted issuers and forgets all verified tokens.
    pub fn follow(&self, rules: Vec<IssuerRule>) {
        let all = rules.into_iter().map(|rule| {
            let keys = IssuerKeySet::new(&rule.issuer, rule.jwks_url.as_deref());
            Arc::new(Issuer { rule, keys })
        });
        self.all.store(Arc::new(all.collect()));
        self.seen.write().clear();
    }

    /// Returns the caller that a token authenticates, using cached keys only. Never waits.
    pub fn bearer(&self, token: &str) -> Option<Caller> {
        self.bearer_at(token, now_ms())
    }

    /// Fetches the keys that a token needs, if its issuer is trusted and they are not cached. Fetches are rate
    /// limited, however many tokens name unknown keys.
    pub async fn look(&self, token: &str) {
        self.look_at(token, now_ms()).await;
    }

    fn bearer_at(&self, token: &str, now: u64) -> Option<Caller> {
        if !token.starts_with(SIGNED) || self.all.load().is_empty() {
            return None;
        }
        let hash: [u8; 32] = Sha256::digest(token).into();
        let known = self.seen.read().get(&hash).cloned();
        let verified = known.or_else(|| self.verify(token, hash, now))?;
        verified.times.are_valid(now).then(|| verified.caller.clone())
    }

    async fn look_at(&self, token: &str, now: u64) {
        if !token.starts_with(SIGNED) || self.all.load().is_empty() {
            return;
        }
        let hash: [u8; 32] = Sha256::digest(token).into();
        if self.seen.read().contains_key(&hash) {
            return;
        }
        let Some(read) = UnverifiedToken::read(token) else { return };
        let all = self.all.load_full();
        for issuer in all.iter().filter(|issuer| read.issuer() == Some(&issuer.rule.issuer)) {
            if let Err(error) = issuer.keys.look(&*self.fetch, read.kid.as_deref(), now).await {
                tracing::warn!(issuer = %issuer.rule.issuer, %error, "failed to read the keys of an issuer");
            }
        }
    }

    fn verify(&self, token: &str, hash: [u8; 32], now: u64) -> Option<Arc<VerifiedToken>> {
        let read = UnverifiedToken::read(token)?;
        if read.typ.as_deref().is_some_and(|typ| !TOKEN_TYPES.contains(&typ)) {
            return None;
        }
        let all = self.all.load();
        let mut theirs = all.iter().filter(|issuer| read.issuer() == Some(&issuer.rule.issuer));
        let verified = theirs.find_map(|issuer| {
            let claims = issuer.keys.verify(&read, now)?;
            issuer.rule.verified(&claims, now)
        })?;
        let verified = Arc::new(verified);
        self.remember(hash, Arc::clone(&verified), now);
        Some(verified)
    }

    fn remember(&self, hash: [u8; 32], verified: Arc<VerifiedToken>, now: u64) {
        let mut seen = self.seen.write();
        if seen.len() >= VERIFIED_MAX {
            seen.retain(|_, verified| verified.times.are_valid(now));
        }
        if seen.len() >= VERIFIED_MAX {
            seen.clear();
        }
        seen.insert(hash, verified);
    }
}

impl IssuerRule {
    fn verified(&self, claims: &Value, now: u64) -> Option<VerifiedToken> {
        let times = ValidityPeriod::of(claims)?;
        if !times.are_valid(now) || !holds(&claims["aud"], &self.audience) {
            return None;
        }
        let name = self.name(claims)?;
        if !self.allow.is_empty() && !self.is_allowed(&name, claims) {
            return None;
        }
        let subject: Arc<str> = format!("{}#{name}", self.issuer).into();
        let caller = Caller { scopes: self.scopes(claims), ..Caller::named(subject) };
        let caller = match &self.project {
            Some(project) => caller.within(Arc::clone(project)),
            None => caller,
        };
        Some(VerifiedToken { caller, times })
    }

    /// Returns the value of the configured subject claim.
    fn name(&self, claims: &Value) -> Option<String> {
        let name = if self.subject_claim == "email" { self.email(claims)? } else { text(claims, &self.subject_claim)? };
        let fits = !name.is_empty() && name.len() <= SUBJECT_BYTES && !name.chars().any(char::is_control);
        fits.then_some(name)
    }

    fn is_allowed(&self, name: &str, claims: &Value) -> bool {
        let email = self.email(claims);
        let matches = |text: &str| self.allow.iter().any(|pattern| pattern.matches(text));
        matches(name) || email.is_some_and(|email| matches(&email))
    }

    /// Returns the verified email address in lower case.
    fn email(&self, claims: &Value) -> Option<String> {
        let is_verified = match &claims["email_verified"] {
            Value::Null => self.trust_email,
            told => *told == true || told == "true",
        };
        is_verified.then(|| text(claims, "email")).flatten().map(|email| email.to_lowercase())
    }

    fn scopes(&self, claims: &Value) -> Scopes {
        let Some(claim) = &self.scope_claim else { return self.scopes };
        let words: Vec<&str> = match &claims[claim] {
            Value::String(words) => words.split(' ').collect(),
            Value::Array(words) => words.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let told = words.into_iter().filter_map(Scopes::parse);
        told.filter(|scope| self.scopes.contains(*scope)).fold(Scopes::NONE, Scopes::with)
    }
}

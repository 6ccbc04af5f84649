//! Federated login: the authorization code flow of `OpenID` Connect with PKCE, state and nonce, each bound to one
//! browser and used once. A person is identified by the issuer's `sub` only; an email address never identifies a
//! person.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::fetch::{DocumentFetcher, FormBody};
use hikite_core::json::Raw;
use hikite_core::pattern::Pattern;
use hikite_core::secret::Secret;
use hikite_store::clock::now_ms;
use hikite_store::{DocumentRow, Store};
use hikite_vault::{UnverifiedToken, random_bytes};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::issuer::{IssuerKeySet, IssuerMetadata, ValidityPeriod, holds, text};

/// Kind of the stored documents of pending logins.
const PENDING_LOGIN: &str = "federation";
const LOGIN_LIFETIME: Duration = Duration::from_secs(10 * 60);
/// Lifetime of a cached discovery document.
const DISCOVERY_TTL_MS: u64 = 10 * 60_000;

/// Login provider of the config.
#[derive(Clone, Debug)]
pub struct LoginRule {
    pub name: String,
    pub issuer: String,
    pub client_id: String,
    /// `None` for a public client.
    pub client_secret: Option<Secret>,
    pub scopes: Vec<String>,
    /// Allowed people, by verified email or subject; empty for everybody.
    pub allow: Vec<Pattern>,
    /// Role of new users: `member` or `admin`.
    pub role: String,
}

/// A person as identified by the issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FederatedIdentity {
    pub issuer: String,
    /// The issuer's `sub`, the only identifier that counts.
    pub subject: String,
    /// Proposed user names, in order of preference.
    pub names: Vec<String>,
    pub role: String,
}

/// Query parameters of the redirect back from the issuer.
#[derive(Clone, Default, Deserialize)]
pub struct FederationCallback {
    pub state: Option<String>,
    pub code: Option<String>,
    pub iss: Option<String>,
    pub error: Option<String>,
}

impl std::fmt::Debug for FederationCallback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("FederationCallback").field("error", &self.error).finish_non_exhaustive()
    }
}

pub struct Federation {
    fetch: Arc<dyn DocumentFetcher>,
    store: Store,
    places: ArcSwap<BTreeMap<String, Arc<LoginProvider>>>,
}

struct LoginProvider {
    rule: LoginRule,
    keys: IssuerKeySet,
    /// Cached discovery document and its time, so that not every visitor causes a request.
    stated: Mutex<Option<(Arc<IssuerMetadata>, u64)>>,
}

/// A pending login, as stored.
#[derive(Serialize, Deserialize)]
struct PendingFederatedLogin {
    place: String,
    nonce: String,
    verifier: String,
    browser: String,
    next: String,
}

impl std::fmt::Debug for Federation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Federation").finish_non_exhaustive()
    }
}

impl Federation {
    pub fn new(fetch: Arc<dyn DocumentFetcher>, store: Store) -> Self {
        Self { fetch, store, places: ArcSwap::default() }
    }

    pub fn follow(&self, rules: Vec<LoginRule>) {
        let place = |rule: LoginRule| {
            let keys = IssuerKeySet::new(&rule.issuer, None);
            (rule.name.clone(), Arc::new(LoginProvider { rule, keys, stated: Mutex::default() }))
        };
        self.places.store(Arc::new(rules.into_iter().map(place).collect()));
    }

    /// Returns the names of the login providers.
    pub fn names(&self) -> Vec<String> {
        self.places.load().keys().cloned().collect()
    }

    /// Starts a login and returns the authorization URL. `browser` is a secret of that browser, `callback` the redirect
    /// URI and `next` the page to return to.
    pub async fn begin(&self, name: &str, browser: &str, callback: &str, next: &str) -> Result<String, Error> {
        let place = self.place(name)?;
        let discovery = self.discovery(&place).await?;
        let (endpoint, _) = discovery.address("authorization_endpoint")?;
        let (state, nonce, verifier) = (random()?, random()?, random()?);
        let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        let scopes = place.rule.scopes.join(" ");
        let query = query(&[
            ("response_type", "code"),
            ("client_id", &place.rule.client_id),
            ("redirect_uri", callback),
            ("scope", &scopes),
            ("state", &state),
            ("nonce", &nonce),
            ("code_challenge", &challenge),
            ("code_challenge_method", "S256"),
        ]);
        let pending =
            PendingFederatedLogin { place: name.into(), nonce, verifier, browser: hashed(browser), next: next.into() };
        let now = now_ms();
        let entry = DocumentRow {
            kind: PENDING_LOGIN,
            id: hashed(&state),
            owner: String::new(),
            document: Raw::of(&pending),
            version: 0,
            created_at: now,
            expires_at: now + u64::try_from(LOGIN_LIFETIME.as_millis()).unwrap_or_default(),
        };
        self.store.documents().put(&entry).await?;
        let joint = if endpoint.contains('?') { '&' } else { '?' };
        Ok(format!("{endpoint}{joint}{query}"))
    }

    /// Finishes a login. Returns the person and the page to return to.
    pub async fn finish(
        &self,
        name: &str,
        browser: &str,
        callback: &str,
        returned: &FederationCallback,
    ) -> Result<(FederatedIdentity, String), Error> {
        let state = returned.state.as_deref().ok_or_else(|| refused("The response has no state."))?;
        let taken = self.store.documents().take(PENDING_LOGIN, &hashed(state), now_ms()).await?;
        let pending: Option<PendingFederatedLogin> = taken.and_then(|entry| entry.document.decode().ok());
        let pending = pending.filter(|pending| pending.place == name && pending.browser == hashed(browser));
        let pending = pending.ok_or_else(|| refused("This login was not started here, or it has expired."))?;
        let place = self.place(name)?;
        if let Some(error) = &returned.error {
            let word: String = error.chars().filter(char::is_ascii_graphic).take(64).collect();
            return Err(refused(&format!("`{name}` returned `{word}`.")));
        }
        let discovery = self.discovery(&place).await?;
        let stated = returned.iss.as_deref();
        let must_state_issuer = discovery.is_true("authorization_response_iss_parameter_supported");
        if stated.is_some_and(|iss| iss != place.rule.issuer) || (must_state_issuer && stated.is_none()) {
            return Err(refused("The response comes from another issuer."));
        }
        let code = returned.code.as_deref().ok_or_else(|| refused("The response has no code."))?;
        let identity = self.redeem(&place.rule, &discovery, (code, &pending.verifier, callback)).await?;
        let claims = self.verified(&place, &identity, &pending.nonce).await?;
        Ok((place.rule.identity_of(&claims)?, pending.next))
    }

    /// Exchanges a code for the ID token.
    async fn redeem(
        &self,
        rule: &LoginRule,
        discovery: &IssuerMetadata,
        (code, verifier, callback): (&str, &str, &str),
    ) -> Result<String, Error> {
        let (endpoint, word) = discovery.address("token_endpoint")?;
        let mut form = FormBody {
            fields: vec![
                ("grant_type", Secret::hidden("authorization_code")),
                ("code", Secret::hidden(code)),
                ("redirect_uri", Secret::hidden(callback)),
                ("code_verifier", Secret::hidden(verifier)),
            ],
            basic: None,
        };
        let basic = discovery.supports("token_endpoint_auth_methods_supported", "client_secret_basic", true);
        match &rule.client_secret {
            Some(secret) if basic => form.basic = Some((rule.client_id.clone(), secret.clone())),
            secret => {
                form.fields.push(("client_id", Secret::hidden(rule.client_id.as_str())));
                form.fields.extend(secret.clone().map(|secret| ("client_secret", secret)));
            }
        }
        let reply = self.fetch.post(&endpoint, word, form).await?;
        let token = text(&reply.body, "id_token").filter(|_| reply.status == 200);
        token.ok_or_else(|| refused(&format!("`{}` did not return an ID token for the code.", rule.name)))
    }

    async fn verified(&self, place: &LoginProvider, token: &str, nonce: &str) -> Result<Value, Error> {
        let wrong = || refused(&format!("The ID token of `{}` is not valid.", place.rule.name));
        let now = now_ms();
        let read = UnverifiedToken::read(token).ok_or_else(wrong)?;
        place.keys.look(&*self.fetch, read.kid.as_deref(), now).await?;
        let claims = place.keys.verify(&read, now).ok_or_else(wrong)?;
        let rule = &place.rule;
        let is_for_us = holds(&claims["aud"], &rule.client_id)
            && (claims["azp"].is_null() && !is_several(&claims["aud"]) || claims["azp"] == *rule.client_id);
        let is_good = claims["iss"] == *rule.issuer
            && is_for_us
            && claims["nonce"] == *nonce
            && ValidityPeriod::of(&claims).is_some_and(|times| times.are_valid(now));
        if is_good { Ok(claims) } else { Err(wrong()) }
    }

    async fn discovery(&self, place: &LoginProvider) -> Result<Arc<IssuerMetadata>, Error> {
        let now = now_ms();
        let stated = place.stated.lock().clone().filter(|(_, at)| now < at.saturating_add(DISCOVERY_TTL_MS));
        if let Some((discovery, _)) = stated {
            return Ok(discovery);
        }
        let discovery = Arc::new(IssuerMetadata::read(&*self.fetch, &place.rule.issuer).await?);
        *place.stated.lock() = Some((Arc::clone(&discovery), now));
        Ok(discovery)
    }

    fn place(&self, name: &str) -> Result<Arc<LoginProvider>, Error> {
        let found = self.places.load().get(name).cloned();
        found.ok_or_else(|| Error::new(ErrorKind::NotFound, "This login method is not configured."))
    }
}

impl LoginRule {
    fn identity_of(&self, claims: &Value) -> Result<FederatedIdentity, Error> {
        let subject = text(claims, "sub").filter(|subject| !subject.is_empty());
        let subject = subject.ok_or_else(|| refused("The ID token has no subject."))?;
        let email = (claims["email_verified"] == true).then(|| text(claims, "email")).flatten();
        let email = email.map(|email| email.to_lowercase());
        let matches = |text: &str| self.allow.iter().any(|pattern| pattern.matches(text));
        if !self.allow.is_empty() && !matches(&subject) && !email.as_deref().is_some_and(matches) {
            let error = Error::new(ErrorKind::Authorization, "This account is not allowed to log in here.");
            return Err(error.hint("Ask the administrator of this server."));
        }
        let names = ["preferred_username", "nickname", "name"].iter().filter_map(|claim| text(claims, claim));
        let names = names.chain(email).chain([format!("{}-{subject}", self.name)]).collect();
        Ok(FederatedIdentity { issuer: self.issuer.clone(), subject, names, role: self.role.clone() })
    }
}

fn is_several(audience: &Value) -> bool {
    audience.as_array().is_some_and(|all| all.len() > 1)
}

fn random() -> Result<String, Error> {
    let bytes = random_bytes::<32>()
        .map_err(|_| Error::new(ErrorKind::Internal, "The operating system returned no random bytes."))?;
    Ok(URL_SAFE_NO_PAD.encode(bytes))
}

fn hashed(text: &str) -> String {
    hikite_core::hex::hex(&Sha256::digest(text))
}

fn query(pairs: &[(&str, &str)]) -> String {
    let pair = |(name, value): &(&str, &str)| format!("{name}={}", encoded(value));
    pairs.iter().map(pair).collect::<Vec<_>>().join("&")
}

/// Percent-encodes a query value.
fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push('%');
            out.push_str(&hikite_core::hex::hex(&[byte]).to_ascii_uppercase());
        }
    }
    out
}

fn refused(message: &str) -> Error {
    Error::new(ErrorKind::Authentication, message).hint("Start again from the login page.")
}

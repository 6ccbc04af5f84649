//! A strict mock account provider. It counts token requests, checks the client, PKCE and the redirect URI, issues
//! single-use codes and refresh tokens, and accepts an access token only while it is valid. A used refresh token is
//! rejected by default; with `forgiving` the previous one is accepted until the newest was used, like providers that
//! account for lost responses.

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU16, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::{
    Router,
    body::Bytes,
    extract::{RawQuery, State},
    response::{IntoResponse, Response},
    routing::{any, get, post},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD, prelude::BASE64_STANDARD};
use hikite_core::{hex::hex, uri::decode};
use http::{HeaderMap, StatusCode, header};
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

pub const CLIENT_ID: &str = "hikite-app";
pub const CLIENT_SECRET: &str = "app-secret-canary";

/// A running provider. Dropping it stops it.
#[derive(Debug)]
pub struct MockProvider {
    address: SocketAddr,
    shared: Arc<MockProviderState>,
    _tasks: TaskTracker,
}

#[derive(Debug, Default)]
struct MockProviderState {
    requests: AtomicUsize,
    refused: AtomicUsize,
    again: AtomicUsize,
    /// Lifetime of access tokens in seconds.
    life: AtomicU64,
    delay_ms: AtomicU64,
    forgiving: AtomicBool,
    deny_consent: AtomicBool,
    /// Number of token requests still to be answered with 503.
    failing: AtomicUsize,
    /// Status that the API returns for every request, unless zero.
    api_status: AtomicU16,
    state: Mutex<ProviderGrants>,
    stopping: CancellationToken,
}

#[derive(Debug, Default)]
struct ProviderGrants {
    codes: HashMap<String, ProviderCode>,
    families: Vec<TokenFamily>,
    /// Grants by access token.
    access: HashMap<String, usize>,
    /// Rate-limited grants, and their `Retry-After` in seconds.
    limited: HashMap<usize, u64>,
    /// Grants for which the token endpoint fails.
    broken: HashSet<usize>,
    /// Number of API calls by grant.
    calls: HashMap<usize, usize>,
}

#[derive(Debug)]
struct ProviderCode {
    challenge: Option<String>,
    redirect: String,
}

#[derive(Debug, Default)]
struct TokenFamily {
    newest: String,
    before: Option<String>,
}

impl MockProvider {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let shared = Arc::new(MockProviderState { life: AtomicU64::new(3600), ..MockProviderState::default() });
        let routes = Router::new()
            .route("/token", post(token))
            .route("/authorize", get(authorize))
            .fallback(any(api))
            .with_state(Arc::clone(&shared));
        let tasks = TaskTracker::new();
        let stopping = shared.stopping.clone();
        tasks.spawn(async move {
            let _ = axum::serve(listener, routes).with_graceful_shutdown(stopping.cancelled_owned()).await;
        });
        Self { address, shared, _tasks: tasks }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Returns the number of token requests.
    pub fn requests(&self) -> usize {
        self.shared.requests.load(Ordering::Relaxed)
    }

    /// Returns the number of rejected grants.
    pub fn refused(&self) -> usize {
        self.shared.refused.load(Ordering::Relaxed)
    }

    /// Returns the number of times the previous refresh token was accepted because a response had been lost.
    pub fn again(&self) -> usize {
        self.shared.again.load(Ordering::Relaxed)
    }

    /// Sets the lifetime of later tokens, in seconds.
    pub fn life(&self, seconds: u64) {
        self.shared.life.store(seconds, Ordering::Relaxed);
    }

    pub fn delay(&self, delay: Duration) {
        self.shared.delay_ms.store(u64::try_from(delay.as_millis()).unwrap_or_default(), Ordering::Relaxed);
    }

    pub fn forgiving(&self) {
        self.shared.forgiving.store(true, Ordering::Relaxed);
    }

    /// Makes the API answer this grant with 429 and a retry delay.
    pub fn limit(&self, family: usize, seconds: u64) {
        self.shared.state.lock().limited.insert(family, seconds);
    }

    /// Returns the number of API calls with this grant.
    pub fn calls(&self, family: usize) -> usize {
        self.shared.state.lock().calls.get(&family).copied().unwrap_or_default()
    }

    /// Makes the token endpoint fail for this grant only.
    pub fn fail_tokens_of(&self, family: usize) {
        self.shared.state.lock().broken.insert(family);
    }

    /// Makes the token endpoint fail this many times.
    pub fn fail_tokens(&self, times: usize) {
        self.shared.failing.store(times, Ordering::Relaxed);
    }

    /// Makes the API answer everyone with this status; zero restores it.
    pub fn set_api_status(&self, status: u16) {
        self.shared.api_status.store(status, Ordering::Relaxed);
    }

    /// Makes users deny consent from now on.
    pub fn deny_consent(&self) {
        self.shared.deny_consent.store(true, Ordering::Relaxed);
    }

    /// Revokes every access token.
    pub fn revoke_access(&self) {
        self.shared.state.lock().access.clear();
    }

    /// Revokes every grant.
    pub fn revoke_grants(&self) {
        let mut grants = self.shared.state.lock();
        grants.access.clear();
        grants.families.iter_mut().for_each(|family| *family = TokenFamily::default());
    }

    /// Returns all refresh tokens that would be accepted now.
    pub fn good(&self) -> Vec<String> {
        let grants = self.shared.state.lock();
        let forgiving = self.shared.forgiving.load(Ordering::Relaxed);
        let good = grants.families.iter().flat_map(|family| {
            let before = family.before.clone().filter(|_| forgiving);
            [Some(family.newest.clone()), before].into_iter().flatten()
        });
        good.collect()
    }

    /// Gives a user's consent at an authorization URL; returns the code and the state of the redirect.
    pub fn consent(&self, url: &str) -> (String, String) {
        let query = url.split_once('?').expect("a query").1;
        let to = self.shared.consent(&pairs(query)).expect("a right request");
        let back = pairs(to.split_once('?').expect("a query").1);
        (back["code"].clone(), back["state"].clone())
    }
}

impl Drop for MockProvider {
    fn drop(&mut self) {
        self.shared.stopping.cancel();
    }
}

impl MockProviderState {
    fn consent(&self, query: &HashMap<String, String>) -> Result<String, &'static str> {
        let redirect = query.get("redirect_uri").ok_or("no redirect")?;
        let state = query.get("state").ok_or("no state")?;
        if query.get("client_id").map(String::as_str) != Some(CLIENT_ID) {
            return Err("another app");
        }
        if self.deny_consent.load(Ordering::Relaxed) {
            return Ok(format!("{redirect}?error=access_denied&state={state}"));
        }
        let code = random("code");
        let challenge = query.get("code_challenge").cloned();
        self.state.lock().codes.insert(code.clone(), ProviderCode { challenge, redirect: redirect.clone() });
        Ok(format!("{redirect}?code={code}&state={state}"))
    }

    fn is_broken(&self, form: &HashMap<String, String>) -> bool {
        let grants = self.state.lock();
        let Some(token) = form.get("refresh_token") else { return false };
        let at = grants.families.iter().position(|family| family.newest == *token);
        at.is_some_and(|at| grants.broken.contains(&at))
    }

    fn grant(&self, form: &HashMap<String, String>) -> Option<Value> {
        let mut grants = self.state.lock();
        let family = match form.get("grant_type")?.as_str() {
            "authorization_code" => {
                let code = grants.codes.remove(form.get("code")?)?;
                let proven = match (&code.challenge, form.get("code_verifier")) {
                    (None, _) => true,
                    (Some(challenge), Some(verifier)) => URL_SAFE_NO_PAD.encode(Sha256::digest(verifier)) == *challenge,
                    (Some(_), None) => false,
                };
                if !proven || form.get("redirect_uri") != Some(&code.redirect) {
                    return None;
                }
                grants.families.push(TokenFamily::default());
                grants.families.len() - 1
            }
            "refresh_token" => {
                let token = form.get("refresh_token").filter(|token| !token.is_empty())?;
                let forgiving = self.forgiving.load(Ordering::Relaxed);
                let takes = |family: &TokenFamily| {
                    family.newest == *token || forgiving && family.before.as_ref() == Some(token)
                };
                let at = grants.families.iter().position(takes)?;
                let family = &mut grants.families[at];
                if family.newest == *token {
                    family.before = Some(family.newest.clone());
                } else {
                    self.again.fetch_add(1, Ordering::Relaxed);
                }
                at
            }
            _ => return None,
        };
        let (access, refresh) = (random("access"), random("refresh"));
        grants.families[family].newest.clone_from(&refresh);
        grants.access.insert(access.clone(), family);
        let life = self.life.load(Ordering::Relaxed);
        Some(json!({
            "access_token": access, "refresh_token": refresh, "token_type": "bearer",
            "expires_in": life, "scope": "read write", "workspace_name": "Acme",
        }))
    }
}

async fn token(State(shared): State<Arc<MockProviderState>>, headers: HeaderMap, body: Bytes) -> Response {
    shared.requests.fetch_add(1, Ordering::Relaxed);
    tokio::time::sleep(Duration::from_millis(shared.delay_ms.load(Ordering::Relaxed))).await;
    let text = String::from_utf8_lossy(&body).into_owned();
    let form: HashMap<String, String> =
        if text.starts_with('{') { serde_json::from_str(&text).unwrap_or_default() } else { pairs(&text) };
    let fails = shared.failing.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1));
    if fails.is_ok() || shared.is_broken(&form) {
        return answer(StatusCode::SERVICE_UNAVAILABLE, &json!({ "error": "temporarily_unavailable" }));
    }
    if !is_app(&headers, &form) {
        return answer(StatusCode::UNAUTHORIZED, &json!({ "error": "invalid_client" }));
    }
    match shared.grant(&form) {
        Some(tokens) => answer(StatusCode::OK, &tokens),
        None => {
            shared.refused.fetch_add(1, Ordering::Relaxed);
            answer(StatusCode::BAD_REQUEST, &json!({ "error": "invalid_grant" }))
        }
    }
}

fn is_app(headers: &HeaderMap, form: &HashMap<String, String>) -> bool {
    let basic = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Basic "));
    let pair = basic.and_then(|text| String::from_utf8(BASE64_STANDARD.decode(text).ok()?).ok());
    let posted = || {
        let part = |name: &str| form.get(name).map(String::as_str).unwrap_or_default();
        format!("{}:{}", part("client_id"), part("client_secret"))
    };
    pair.unwrap_or_else(posted) == format!("{CLIENT_ID}:{CLIENT_SECRET}")
}

async fn authorize(State(shared): State<Arc<MockProviderState>>, RawQuery(query): RawQuery) -> Response {
    match shared.consent(&pairs(&query.unwrap_or_default())) {
        Ok(to) => (StatusCode::FOUND, [(header::LOCATION, to)]).into_response(),
        Err(why) => (StatusCode::BAD_REQUEST, why).into_response(),
    }
}

/// Serves the protected API, which returns the token's grant.
async fn api(State(shared): State<Arc<MockProviderState>>, headers: HeaderMap) -> Response {
    let bearer = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()?.strip_prefix("Bearer "));
    let family = bearer.and_then(|token| shared.state.lock().access.get(token).copied());
    let status = StatusCode::from_u16(shared.api_status.load(Ordering::Relaxed)).ok();
    if let Some(status) = status.filter(|status| status.as_u16() > 0) {
        return answer(status, &json!({ "message": "this app may not come in" }));
    }
    if let Some(family) = family {
        let mut grants = shared.state.lock();
        *grants.calls.entry(family).or_default() += 1;
        if let Some(seconds) = grants.limited.get(&family) {
            let headers =
                [(header::CONTENT_TYPE, "application/json".to_owned()), (header::RETRY_AFTER, seconds.to_string())];
            return (StatusCode::TOO_MANY_REQUESTS, headers, json!({ "message": "slow down" }).to_string())
                .into_response();
        }
    }
    match family {
        Some(family) => answer(StatusCode::OK, &json!({ "family": family, "results": [] })),
        None => answer(StatusCode::UNAUTHORIZED, &json!({ "message": "who are you?" })),
    }
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
}

fn pairs(text: &str) -> HashMap<String, String> {
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        Some((decode(name)?, decode(value)?))
    };
    text.split('&').filter_map(pair).collect()
}

/// Creates a secret that contains a recognizable word, so that leaks can be found.
fn random(what: &str) -> String {
    let mut bytes = [0_u8; 12];
    getrandom::fill(&mut bytes).expect("random bytes");
    format!("{what}-canary-{}", hex(&bytes))
}

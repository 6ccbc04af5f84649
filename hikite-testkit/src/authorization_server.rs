//! A mock authorization server and the MCP server that it protects, both on loopback ports and both strict: exact
//! redirect URIs, PKCE, one resource, single-use codes and refresh tokens. Tests can inject single faults.

mod endpoint;
mod resource_server;

use std::{
    collections::{HashMap, HashSet},
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use axum::{
    Router,
    routing::{get, post},
};
use parking_lot::Mutex;
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

/// Both servers. Dropping it stops them.
#[derive(Debug)]
pub struct MockAuthorizationServer {
    shared: Arc<AuthorizationServerState>,
    shutdown: CancellationToken,
}

/// Faults and deviations to inject.
#[derive(Debug, Clone, Default)]
pub struct AuthorizationFaults {
    /// Issuer in the metadata.
    pub issuer: Option<String>,
    /// `iss` of the redirect; omitted if empty.
    pub answered_issuer: Option<String>,
    /// Omits PKCE from the metadata.
    pub no_pkce: bool,
    /// Redirect target of the token endpoint.
    pub token_redirect: Option<String>,
    /// Redirect target of the authorization server metadata.
    pub metadata_redirect: Option<String>,
    /// `resource` in the metadata of the MCP server.
    pub resource: Option<String>,
    /// Metadata URL that the MCP server announces.
    pub metadata_url: Option<String>,
    /// Authorization servers that the MCP server names.
    pub servers: Option<Vec<String>>,
    /// Disables client registration.
    pub no_registration: bool,
    /// Issues no refresh tokens.
    pub no_refresh: bool,
}

/// A request that reached either server.
#[derive(Debug, Clone)]
pub struct AuthorizationServerRequest {
    pub path: String,
    pub authorization: Option<String>,
    pub body: String,
}

#[derive(Debug)]
pub(crate) struct AuthorizationServerState {
    authority: SocketAddr,
    server: SocketAddr,
    faults: Mutex<AuthorizationFaults>,
    seen: Mutex<Vec<AuthorizationServerRequest>>,
    issued: Mutex<IssuedCredentials>,
    next: AtomicU64,
}

/// Issued credentials.
#[derive(Debug, Default)]
struct IssuedCredentials {
    /// Redirect URIs by client.
    clients: HashMap<String, Vec<String>>,
    codes: HashMap<String, IssuedCode>,
    access: HashSet<String>,
    /// Valid refresh tokens.
    refresh: HashSet<String>,
    /// Used refresh tokens.
    used: HashSet<String>,
    /// `true` once a used refresh token was presented again.
    replayed: bool,
}

#[derive(Debug)]
struct IssuedCode {
    client: String,
    redirect: String,
    challenge: String,
    resource: String,
}

impl MockAuthorizationServer {
    pub async fn start(faults: AuthorizationFaults) -> Self {
        let (authority, server) = (listener().await, listener().await);
        let address = |listener: &TcpListener| listener.local_addr().expect("it is bound");
        let shared = Arc::new(AuthorizationServerState {
            authority: address(&authority),
            server: address(&server),
            faults: Mutex::new(faults),
            seen: Mutex::default(),
            issued: Mutex::default(),
            next: AtomicU64::new(1),
        });
        let issuing = Router::new()
            .route("/.well-known/oauth-authorization-server", get(endpoint::metadata))
            .route("/register", post(endpoint::register))
            .route("/authorize", get(endpoint::authorize))
            .route("/token", post(endpoint::token))
            .with_state(Arc::clone(&shared));
        let guarded = Router::new()
            .route("/.well-known/oauth-protected-resource/mcp", get(resource_server::metadata))
            .route("/mcp", post(resource_server::post))
            .with_state(Arc::clone(&shared));
        let shutdown = CancellationToken::new();
        let tasks = TaskTracker::new();
        for (listener, router) in [(authority, issuing), (server, guarded)] {
            let stop = shutdown.clone();
            tasks.spawn(async move {
                let serving = axum::serve(listener, router);
                let _ = stop.run_until_cancelled(serving.into_future()).await;
            });
        }
        Self { shared, shutdown }
    }

    /// Returns the URL of the MCP server.
    pub fn url(&self) -> String {
        self.shared.resource()
    }

    pub fn issuer(&self) -> String {
        self.shared.issuer()
    }

    pub fn set_faults(&self, faults: AuthorizationFaults) {
        *self.shared.faults.lock() = faults;
    }

    /// Returns every request that reached either server.
    pub fn seen(&self) -> Vec<AuthorizationServerRequest> {
        self.shared.seen.lock().clone()
    }

    /// Counts the requests to a path whose body contains a text.
    pub fn count(&self, path: &str, body: &str) -> usize {
        let seen = self.shared.seen.lock();
        seen.iter().filter(|request| request.path == path && request.body.contains(body)).count()
    }

    /// Invalidates all access tokens but no refresh token.
    pub fn expire(&self) {
        self.shared.issued.lock().access.clear();
    }

    /// Invalidates all tokens.
    pub fn revoke(&self) {
        let mut issued = self.shared.issued.lock();
        issued.access.clear();
        issued.refresh.clear();
    }

    /// Returns `true` if a refresh token was presented twice.
    pub fn was_replayed(&self) -> bool {
        self.shared.issued.lock().replayed
    }

    /// Returns every token issued so far.
    pub fn secrets(&self) -> Vec<String> {
        let issued = self.shared.issued.lock();
        issued.access.iter().chain(&issued.refresh).chain(&issued.used).cloned().collect()
    }
}

impl Drop for MockAuthorizationServer {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl AuthorizationServerState {
    fn issuer(&self) -> String {
        format!("http://{}", self.authority)
    }

    fn resource(&self) -> String {
        format!("http://{}/mcp", self.server)
    }

    fn note(&self, path: &str, headers: &http::HeaderMap, body: &str) {
        let authorization = headers.get("authorization").and_then(|value| value.to_str().ok());
        self.seen.lock().push(AuthorizationServerRequest {
            path: path.to_owned(),
            authorization: authorization.map(ToOwned::to_owned),
            body: body.to_owned(),
        });
    }

    /// Creates a secret that is easy to find in leaked output.
    fn new_secret(&self, kind: &str) -> String {
        format!("canary-{kind}-{}", self.next.fetch_add(1, Ordering::Relaxed))
    }
}

async fn listener() -> TcpListener {
    TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port")
}

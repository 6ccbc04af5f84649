//! A mock authorization server and the MCP server that it protects, both on loopback ports and both strict: exact
//! redirect URIs, PKCE, one resource, single-use codes and refresh tokens. Tests can inject single faults.

mod guarded;
mod issue;

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
pub struct Authority {
    shared: Arc<Shared>,
    shutdown: CancellationToken,
}

/// Faults and deviations to inject.
#[derive(Debug, Clone, Default)]
pub struct Wrong {
    /// Issuer in the metadata.
    pub issuer: Option<String>,
    /// `iss` of the redirect; omitted if empty.
    pub answered_issuer: Option<String>,
    /// Omits PKCE from the metadata.
    pub no_pkce: bool,
    /// Redirect target of the token endpoint.
    pub token_elsewhere: Option<String>,
    /// Redirect target of the authorization server metadata.
    pub metadata_elsewhere: Option<String>,
    /// `resource` in the metadata of the MCP server.
    pub resource: Option<String>,
    /// Metadata URL that the MCP server announces.
    pub described_at: Option<String>,
    /// Authorization servers that the MCP server names.
    pub servers: Option<Vec<String>>,
    /// Disables client registration.
    pub no_registration: bool,
    /// Issues no refresh tokens.
    pub no_refresh: bool,
}

/// A request that reached either server.
#[derive(Debug, Clone)]
pub struct Request {
    pub path: String,
    pub authorization: Option<String>,
    pub body: String,
}

#[derive(Debug)]
pub(crate) struct Shared {
    authority: SocketAddr,
    server: SocketAddr,
    wrong: Mutex<Wrong>,
    seen: Mutex<Vec<Request>>,
    books: Mutex<Books>,
    next: AtomicU64,
}

/// Issued credentials.
#[derive(Debug, Default)]
struct Books {
    /// Redirect URIs by client.
    clients: HashMap<String, Vec<String>>,
    codes: HashMap<String, Code>,
    access: HashSet<String>,
    /// Valid refresh tokens.
    refresh: HashSet<String>,
    /// Used refresh tokens.
    used: HashSet<String>,
    /// `true` once a used refresh token was presented again.
    replayed: bool,
}

#[derive(Debug)]
struct Code {
    client: String,
    redirect: String,
    challenge: String,
    resource: String,
}

impl Authority {
    pub async fn start(wrong: Wrong) -> Self {
        let (authority, server) = (listener().await, listener().await);
        let address = |listener: &TcpListener| listener.local_addr().expect("it is bound");
        let shared = Arc::new(Shared {
            authority: address(&authority),
            server: address(&server),
            wrong: Mutex::new(wrong),
            seen: Mutex::default(),
            books: Mutex::default(),
            next: AtomicU64::new(1),
        });
        let issuing = Router::new()
            .route("/.well-known/oauth-authorization-server", get(issue::metadata))
            .route("/register", post(issue::register))
            .route("/authorize", get(issue::authorize))
            .route("/token", post(issue::token))
            .with_state(Arc::clone(&shared));
        let guarded = Router::new()
            .route("/.well-known/oauth-protected-resource/mcp", get(guarded::metadata))
            .route("/mcp", post(guarded::post))
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

    pub fn do_wrong(&self, wrong: Wrong) {
        *self.shared.wrong.lock() = wrong;
    }

    /// Returns every request that reached either server.
    pub fn seen(&self) -> Vec<Request> {
        self.shared.seen.lock().clone()
    }

    /// Counts the requests to a path whose body contains a text.
    pub fn count(&self, path: &str, body: &str) -> usize {
        let seen = self.shared.seen.lock();
        seen.iter().filter(|request| request.path == path && request.body.contains(body)).count()
    }

    /// Invalidates all access tokens but no refresh token.
    pub fn expire(&self) {
        self.shared.books.lock().access.clear();
    }

    /// Invalidates all tokens.
    pub fn revoke(&self) {
        let mut books = self.shared.books.lock();
        books.access.clear();
        books.refresh.clear();
    }

    /// Returns `true` if a refresh token was presented twice.
    pub fn was_replayed(&self) -> bool {
        self.shared.books.lock().replayed
    }

    /// Returns every token issued so far.
    pub fn secrets(&self) -> Vec<String> {
        let books = self.shared.books.lock();
        books.access.iter().chain(&books.refresh).chain(&books.used).cloned().collect()
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl Shared {
    fn issuer(&self) -> String {
        format!("http://{}", self.authority)
    }

    fn resource(&self) -> String {
        format!("http://{}/mcp", self.server)
    }

    fn note(&self, path: &str, headers: &http::HeaderMap, body: &str) {
        let authorization = headers.get("authorization").and_then(|value| value.to_str().ok());
        self.seen.lock().push(Request {
            path: path.to_owned(),
            authorization: authorization.map(ToOwned::to_owned),
            body: body.to_owned(),
        });
    }

    /// Creates a secret that is easy to find in leaked output.
    fn fresh(&self, kind: &str) -> String {
        format!("canary-{kind}-{}", self.next.fetch_add(1, Ordering::Relaxed))
    }
}

async fn listener() -> TcpListener {
    TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port")
}

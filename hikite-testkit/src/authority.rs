//! An authorization server and the MCP server that it guards, both on loopback ports and both strict: exact redirects,
//! PKCE, one resource, codes and refresh tokens that are good once. Told to, they do single things wrong.

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

/// Both servers. Dropping it ends them.
#[derive(Debug)]
pub struct Authority {
    shared: Arc<Shared>,
    shutdown: CancellationToken,
}

/// What is done wrong, or otherwise.
#[derive(Debug, Clone, Default)]
pub struct Wrong {
    /// The issuer in the metadata.
    pub issuer: Option<String>,
    /// The `iss` of the redirect; an empty one is left out.
    pub answered_issuer: Option<String>,
    /// PKCE is not announced.
    pub no_pkce: bool,
    /// Where the token endpoint sends requests on to.
    pub token_elsewhere: Option<String>,
    /// Where the metadata of the authorization server sends requests on to.
    pub metadata_elsewhere: Option<String>,
    /// The `resource` in the metadata of the MCP server.
    pub resource: Option<String>,
    /// Where the MCP server says it describes itself.
    pub described_at: Option<String>,
    /// The authorization servers that the MCP server names.
    pub servers: Option<Vec<String>>,
    /// Nobody is registered.
    pub no_registration: bool,
    /// No refresh tokens are given.
    pub no_refresh: bool,
}

/// What reached one of the two.
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

/// What was given out.
#[derive(Debug, Default)]
struct Books {
    /// Ways back by client.
    clients: HashMap<String, Vec<String>>,
    codes: HashMap<String, Code>,
    access: HashSet<String>,
    /// Refresh tokens that are good.
    refresh: HashSet<String>,
    /// And those that were.
    used: HashSet<String>,
    /// Whether one of the latter came again.
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

    /// The address of the MCP server.
    pub fn url(&self) -> String {
        self.shared.resource()
    }

    pub fn issuer(&self) -> String {
        self.shared.issuer()
    }

    pub fn do_wrong(&self, wrong: Wrong) {
        *self.shared.wrong.lock() = wrong;
    }

    /// Everything that reached either of them.
    pub fn seen(&self) -> Vec<Request> {
        self.shared.seen.lock().clone()
    }

    /// Requests whose path and body hold these.
    pub fn count(&self, path: &str, body: &str) -> usize {
        let seen = self.shared.seen.lock();
        seen.iter().filter(|request| request.path == path && request.body.contains(body)).count()
    }

    /// No access token is good any more; refresh tokens are.
    pub fn expire(&self) {
        self.shared.books.lock().access.clear();
    }

    /// No token is good any more.
    pub fn revoke(&self) {
        let mut books = self.shared.books.lock();
        books.access.clear();
        books.refresh.clear();
    }

    /// Whether a refresh token came twice.
    pub fn was_replayed(&self) -> bool {
        self.shared.books.lock().replayed
    }

    /// Every secret that was given out so far.
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

    /// A secret that is easy to find where it should not be.
    fn fresh(&self, kind: &str) -> String {
        format!("canary-{kind}-{}", self.next.fetch_add(1, Ordering::Relaxed))
    }
}

async fn listener() -> TcpListener {
    TcpListener::bind(("127.0.0.1", 0)).await.expect("a free port")
}

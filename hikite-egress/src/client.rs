//! The client: pooled connections, one pool for plain HTTP and one for TLS, so that plain HTTP never loads certificates.
//! A client is of one of two classes: it goes wherever it is told, or only where its guard lets it.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::uri::Scheme;
use http::{Request, Response};
use http_body_util::Full;
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as Pool;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::allow::Allow;
use crate::chain;
use crate::connector::{Connector, Refused};
use crate::tls::{self, MinTls, Pin, Trust};

const POOL_IDLE: Duration = Duration::from_secs(90);

/// The body of a request.
pub type Content = Full<Bytes>;

/// Cloning shares the connections.
#[derive(Clone)]
pub struct Client(Arc<ArcSwap<Pools>>);

struct Pools {
    /// What a guarded client may reach beside the public internet.
    allow: Option<Arc<Allow>>,
    trust: Trust,
    plain: Pool<Connector, Content>,
    secure: OnceLock<Pool<HttpsConnector<Connector>, Content>>,
}

#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error("the system's certificates cannot be read: {0}")]
    Certificates(std::io::Error),
    #[error("{0}")]
    Connect(String),
    #[error("{0}")]
    Transfer(String),
    #[error("the answer is larger than {0} bytes")]
    TooLarge(usize),
    /// Nothing was sent.
    #[error("the address is not one that may be called")]
    Refused,
}

impl Client {
    /// For addresses that are the owner's word.
    pub fn new() -> Self {
        Self::with(None, Trust::System(MinTls::default()))
    }

    /// For all others: every address a name leads to must be public, or named in `allow`.
    pub fn guarded(allow: Allow) -> Self {
        Self::with(Some(Arc::new(allow)), Trust::System(MinTls::default()))
    }

    /// For one server on this machine, known by its certificate.
    pub fn pinned(certificate: Pin) -> Self {
        Self::with(None, Trust::Only(certificate))
    }

    fn with(allow: Option<Arc<Allow>>, trust: Trust) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(Pools::new(allow, trust))))
    }

    /// The oldest version of TLS from now on. Open connections are not used again.
    pub fn speak(&self, min: MinTls) {
        let now = self.0.load();
        if now.trust != Trust::System(min) {
            self.0.store(Arc::new(Pools::new(now.allow.clone(), Trust::System(min))));
        }
    }

    /// Changes what a guarded client may reach. Requests that run go on; open connections are not used again.
    pub fn allow(&self, allow: Allow) {
        let now = self.0.load();
        if now.allow.as_deref().is_some_and(|now| *now != allow) {
            self.0.store(Arc::new(Pools::new(Some(Arc::new(allow)), now.trust.clone())));
        }
    }

    pub async fn send(&self, request: Request<Content>) -> Result<Response<Incoming>, SendError> {
        let answer = {
            let pools = self.0.load();
            if request.uri().scheme() == Some(&Scheme::HTTPS) {
                pools.secure()?.request(request)
            } else {
                pools.plain.request(request)
            }
        };
        answer.await.map_err(|error| {
            if !error.is_connect() {
                SendError::Transfer(chain(&error))
            } else if is_refused(&error) {
                SendError::Refused
            } else {
                SendError::Connect(told(chain(&error)))
            }
        })
    }
}

impl Pools {
    fn new(allow: Option<Arc<Allow>>, trust: Trust) -> Self {
        let plain = builder().build(Connector::new(allow.clone()));
        Self { allow, trust, plain, secure: OnceLock::new() }
    }

    fn secure(&self) -> Result<&Pool<HttpsConnector<Connector>, Content>, SendError> {
        if let Some(pool) = self.secure.get() {
            return Ok(pool);
        }
        let tls = hyper_rustls::HttpsConnectorBuilder::new()
            .with_tls_config(tls::config(&self.trust).map_err(SendError::Certificates)?)
            .https_only()
            .enable_all_versions()
            .wrap_connector(Connector::new(self.allow.clone()));
        Ok(self.secure.get_or_init(|| builder().build(tls)))
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("guarded", &self.0.load().allow.is_some()).finish_non_exhaustive()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn builder() -> hyper_util::client::legacy::Builder {
    let mut builder = Pool::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).pool_idle_timeout(POOL_IDLE);
    builder
}

/// What can be done about a server that speaks only what we do not speak unasked.
fn told(error: String) -> String {
    let is_old = ["ProtocolVersion", "HandshakeFailure", "PeerIncompatible", "peer is incompatible"];
    if is_old.iter().any(|word| error.contains(word)) {
        return format!("{error} (if the server speaks TLS 1.2 only, set `egress.min_tls` to \"1.2\")");
    }
    error
}

fn is_refused(error: &(dyn std::error::Error + 'static)) -> bool {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<Refused>() {
            return true;
        }
        cause = error.source();
    }
    false
}

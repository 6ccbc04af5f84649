//! HTTP client with one connection pool for plain HTTP and one for TLS, so that plain HTTP never loads certificates. An
//! unguarded client connects anywhere; a guarded one only to public or allowed addresses.

use std::fmt;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use bytes::Bytes;
use http::uri::Scheme;
use http::{Request, Response};
use http_body_util::Full;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as SecurePool;
use hyper_util::rt::{TokioExecutor, TokioTimer};

use crate::allow_list::AllowList;
use crate::body::ResponseBody;
use crate::chain;
use crate::connector::{Connector, is_refused};
use crate::pool::{IDLE_TIMEOUT, PlainPool};
use crate::tls::{self, MinTls, ServerTrust};

/// Body of a request.
pub type RequestBody = Full<Bytes>;
pub type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<ResponseBody>, SendError>> + Send>>;

/// An HTTP client. Clones share their connections.
#[derive(Clone)]
pub struct EgressClient(Arc<ArcSwap<ClientPools>>);

struct ClientPools {
    /// Allow-list of a guarded client; `None` if it is not guarded.
    allow: Option<Arc<AllowList>>,
    trust: ServerTrust,
    plain: PlainPool,
    secure: OnceLock<SecurePool<HttpsConnector<Connector>, RequestBody>>,
}

#[derive(Debug, thiserror::Error)]
pub enum SendError {
    #[error("the system's certificates cannot be read: {0}")]
    Certificates(std::io::Error),
    #[error("{0}")]
    Connect(String),
    #[error("{0}")]
    Transfer(String),
    #[error("the response is larger than {0} bytes")]
    TooLarge(usize),
    /// The address is not allowed; nothing was sent.
    #[error("the address is not allowed")]
    Refused,
}

impl EgressClient {
    /// Creates an unguarded client, for addresses that an administrator configured.
    pub fn new() -> Self {
        Self::with(None, ServerTrust::System(MinTls::default()))
    }

    /// Creates a guarded client, for all other addresses: each address that a name resolves to must be public or in
    /// `allow`.
    pub fn guarded(allow: AllowList) -> Self {
        Self::with(Some(Arc::new(allow)), ServerTrust::System(MinTls::default()))
    }

    /// Creates a client for one server on this machine, identified by its certificate.
    pub fn pinned(certificate: tls::PinnedCertificate) -> Self {
        Self::with(None, ServerTrust::Only(certificate))
    }

    fn with(allow: Option<Arc<AllowList>>, trust: ServerTrust) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(ClientPools::new(allow, trust))))
    }

    /// Sets the minimum TLS version. Open connections are not reused.
    pub fn set_min_tls(&self, min: MinTls) {
        let now = self.0.load();
        if now.trust != ServerTrust::System(min) {
            self.0.store(Arc::new(ClientPools::new(now.allow.clone(), ServerTrust::System(min))));
        }
    }

    /// Replaces the allow-list of a guarded client. Running requests continue; open connections are not reused.
    pub fn allow(&self, allow: AllowList) {
        let now = self.0.load();
        if now.allow.as_deref().is_some_and(|now| *now != allow) {
            self.0.store(Arc::new(ClientPools::new(Some(Arc::new(allow)), now.trust.clone())));
        }
    }

    /// Sends a request. The future is boxed here to keep the callers' futures small.
    pub fn send(&self, request: Request<RequestBody>) -> ResponseFuture {
        let pools = self.0.load_full();
        if request.uri().scheme() == Some(&Scheme::HTTPS) {
            Box::pin(async move { pools.send_secure(request).await })
        } else {
            Box::pin(async move { pools.plain.send(request).await })
        }
    }
}

impl ClientPools {
    fn new(allow: Option<Arc<AllowList>>, trust: ServerTrust) -> Self {
        let plain = PlainPool::new(Connector::new(allow.clone()));
        Self { allow, trust, plain, secure: OnceLock::new() }
    }

    async fn send_secure(&self, request: Request<RequestBody>) -> Result<Response<ResponseBody>, SendError> {
        let answer = self.secure()?.request(request).await.map_err(|error| {
            if !error.is_connect() {
                SendError::Transfer(chain(&error))
            } else if is_refused(&error) {
                SendError::Refused
            } else {
                SendError::Connect(with_tls_hint(chain(&error)))
            }
        })?;
        Ok(answer.map(|incoming| ResponseBody::new(incoming, None)))
    }

    fn secure(&self) -> Result<&SecurePool<HttpsConnector<Connector>, RequestBody>, SendError> {
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

impl Default for EgressClient {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for EgressClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressClient").field("guarded", &self.0.load().allow.is_some()).finish_non_exhaustive()
    }
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn builder() -> hyper_util::client::legacy::Builder {
    let mut builder = SecurePool::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).pool_idle_timeout(IDLE_TIMEOUT);
    builder
}

/// Adds a hint to the error of a server that only supports older TLS versions.
fn with_tls_hint(error: String) -> String {
    let is_old = ["ProtocolVersion", "HandshakeFailure", "PeerIncompatible", "peer is incompatible"];
    if is_old.iter().any(|word| error.contains(word)) {
        return format!("{error} (if the server supports only TLS 1.2, set `egress.min_tls` to \"1.2\")");
    }
    error
}

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

const POOL_IDLE: Duration = Duration::from_secs(90);

/// The body of a request.
pub type Content = Full<Bytes>;

/// Cloning shares the connections.
#[derive(Clone)]
pub struct Client(Arc<ArcSwap<Pools>>);

struct Pools {
    /// What a guarded client may reach beside the public internet.
    allow: Option<Arc<Allow>>,
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
        Self(Arc::new(ArcSwap::from_pointee(Pools::new(None))))
    }

    /// For all others: every address a name leads to must be public, or named in `allow`.
    pub fn guarded(allow: Allow) -> Self {
        Self(Arc::new(ArcSwap::from_pointee(Pools::new(Some(Arc::new(allow))))))
    }

    /// Changes what a guarded client may reach. Requests that run go on; open connections are not used again.
    pub fn allow(&self, allow: Allow) {
        let is_news = self.0.load().allow.as_deref().is_some_and(|now| *now != allow);
        if is_news {
            self.0.store(Arc::new(Pools::new(Some(Arc::new(allow)))));
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
                SendError::Connect(chain(&error))
            }
        })
    }
}

impl Pools {
    fn new(allow: Option<Arc<Allow>>) -> Self {
        let plain = builder().build(Connector::new(allow.clone()));
        Self { allow, plain, secure: OnceLock::new() }
    }

    fn secure(&self) -> Result<&Pool<HttpsConnector<Connector>, Content>, SendError> {
        if let Some(pool) = self.secure.get() {
            return Ok(pool);
        }
        let tls = hyper_rustls::HttpsConnectorBuilder::new()
            .with_native_roots()
            .map_err(SendError::Certificates)?
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

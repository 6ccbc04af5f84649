//! The only place that builds an HTTP client. Connections are pooled and plain HTTP never loads certificates;
//! redirects are not followed, because a redirect would carry credentials to a host nobody configured.

use std::fmt;
use std::sync::OnceLock;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper_rustls::HttpsConnector;
use hyper_util::client::legacy::Client as Pool;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

pub use hyper::body::Incoming as Body;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
const POOL_IDLE: Duration = Duration::from_secs(90);

#[derive(Clone)]
pub struct Client {
    plain: Pool<HttpConnector, Full<Bytes>>,
    secure: std::sync::Arc<OnceLock<Pool<HttpsConnector<HttpConnector>, Full<Bytes>>>>,
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
}

impl Client {
    pub fn new() -> Self {
        Self { plain: pool().build(connector()), secure: std::sync::Arc::new(OnceLock::new()) }
    }

    pub async fn send(&self, request: Request<Full<Bytes>>) -> Result<Response<Incoming>, SendError> {
        let answer = if request.uri().scheme() == Some(&http::uri::Scheme::HTTPS) {
            self.secure()?.request(request).await
        } else {
            self.plain.request(request).await
        };
        answer.map_err(|error| {
            if error.is_connect() {
                SendError::Connect(chain(&error))
            } else {
                SendError::Transfer(chain(&error))
            }
        })
    }

    fn secure(&self) -> Result<&Pool<HttpsConnector<HttpConnector>, Full<Bytes>>, SendError> {
        if let Some(pool) = self.secure.get() {
            return Ok(pool);
        }
        let mut tcp = connector();
        tcp.enforce_http(false);
        let tls = hyper_rustls::HttpsConnectorBuilder::new()
            .with_native_roots()
            .map_err(SendError::Certificates)?
            .https_only()
            .enable_all_versions()
            .wrap_connector(tcp);
        Ok(self.secure.get_or_init(|| pool().build(tls)))
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// Reads a body to its end, or to the limit.
pub async fn read(mut body: Incoming, limit: usize) -> Result<Bytes, SendError> {
    let mut whole: Option<BytesMut> = None;
    let mut first: Option<Bytes> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| SendError::Transfer(chain(&error)))?;
        let Ok(data) = frame.into_data() else { continue };
        let so_far = whole.as_ref().map_or_else(|| first.as_ref().map_or(0, Bytes::len), BytesMut::len);
        if so_far + data.len() > limit {
            return Err(SendError::TooLarge(limit));
        }
        // Most answers arrive in one piece, which is then not copied.
        match (&mut whole, first.take()) {
            (Some(whole), _) => whole.extend_from_slice(&data),
            (None, None) => first = Some(data),
            (None, Some(head)) => {
                let mut buffer = BytesMut::with_capacity(head.len() + data.len());
                buffer.extend_from_slice(&head);
                buffer.extend_from_slice(&data);
                whole = Some(buffer);
            }
        }
    }
    Ok(whole.map(BytesMut::freeze).or(first).unwrap_or_default())
}

/// Where `reference` points when it stands in an answer from `base`; `None` if that is another origin.
pub fn resolve_same_origin(base: &Uri, reference: &str) -> Option<Uri> {
    let is_absolute = reference.split(['/', '?', '#']).next().is_some_and(|first| first.ends_with(':'));
    let target = if is_absolute {
        reference.parse::<Uri>().ok()?
    } else {
        let path = if reference.starts_with('/') {
            reference.to_owned()
        } else {
            let directory = base.path().rsplit_once('/').map_or("", |(directory, _)| directory);
            format!("{directory}/{reference}")
        };
        let mut parts = base.clone().into_parts();
        parts.path_and_query = Some(path.parse().ok()?);
        Uri::from_parts(parts).ok()?
    };
    (target.scheme() == base.scheme() && target.authority() == base.authority()).then_some(target)
}

fn connector() -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(CONNECT_TIMEOUT));
    connector
}

#[expect(clippy::disallowed_methods, reason = "this is the one place")]
fn pool() -> hyper_util::client::legacy::Builder {
    let mut builder = Pool::builder(TokioExecutor::new());
    builder.pool_timer(TokioTimer::new()).pool_idle_timeout(POOL_IDLE);
    builder
}

/// The causes of an error, outermost first; hyper's own text names none of them.
fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reference: &str, expected: Option<&str>) {
        let base = Uri::from_static("http://127.0.0.1:9/a/sse");
        let resolved = resolve_same_origin(&base, reference).map(|uri| uri.to_string());
        assert_eq!(resolved.as_deref(), expected, "{reference}");
    }

    #[test]
    fn an_endpoint_stays_on_the_origin_that_named_it() {
        check("/messages?id=1", Some("http://127.0.0.1:9/messages?id=1"));
        check("/messages?next=http://x/", Some("http://127.0.0.1:9/messages?next=http://x/"));
        check("messages", Some("http://127.0.0.1:9/a/messages"));
        check("http://127.0.0.1:9/x", Some("http://127.0.0.1:9/x"));
        check("http://evil.example/x", None);
        check("https://127.0.0.1:9/x", None);
    }
}

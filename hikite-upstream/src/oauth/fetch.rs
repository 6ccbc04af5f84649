//! HTTP requests to URLs that servers name, through the guarded client, with limits on time and size. Redirects are
//! followed for documents only, and only within their origin.

use std::time::Duration;

use bytes::Bytes;
use hikite_core::error::{Error, ErrorKind};
use hikite_egress::{EgressClient, SendError, read, resolve_same_origin};
use http::header::{ACCEPT, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HeaderValue, LOCATION};
use http::{Method, Request, StatusCode, Uri};
use http_body_util::Full;
use serde_json::Value;

use super::address;

const TIME: Duration = Duration::from_secs(15);
const BYTES: usize = 256 * 1024;
const REDIRECTS: usize = 2;

#[derive(Clone, Debug)]
pub(super) struct MetadataFetcher {
    /// Name of the server, for messages.
    pub(super) name: std::sync::Arc<str>,
    pub(super) home: Uri,
    pub(super) client: EgressClient,
}

impl MetadataFetcher {
    /// Returns the URL if the server may send us there.
    pub(super) fn address(&self, what: &str, text: &str) -> Result<Uri, Error> {
        address::checked(&self.home, text).ok_or_else(|| {
            self.failed(&format!("its {what} is not an allowed address"))
                .because(format!("{what}: {}", text.chars().take(200).collect::<String>()))
        })
    }

    /// Fetches a JSON document. Returns `None` if there is none at this URL.
    pub(super) async fn document(&self, url: &Uri) -> Result<Option<Value>, Error> {
        let mut url = url.clone();
        for _ in 0..=REDIRECTS {
            let mut request = Request::new(Full::default());
            *request.uri_mut() = url.clone();
            let (status, body, next) = self.send(request).await?;
            if let Some(next) = next.filter(|_| status.is_redirection()) {
                let Some(next) = resolve_same_origin(&url, &next) else {
                    return Err(self.failed("a metadata document is on another host"));
                };
                url = next;
                continue;
            }
            if status.is_server_error() {
                return Err(self.failed(&format!("a metadata document cannot be read ({status})")));
            }
            let document = serde_json::from_slice(&body).ok().filter(Value::is_object);
            return Ok(document.filter(|_| status.is_success()));
        }
        Err(self.failed("a metadata document is redirected too often"))
    }

    /// Posts a body. Returns the status and the JSON of the response, or null.
    pub(super) async fn post(
        &self,
        url: &Uri,
        kind: &'static str,
        body: String,
        authorization: Option<HeaderValue>,
    ) -> Result<(StatusCode, Value), Error> {
        let mut request = Request::new(Full::new(Bytes::from(body)));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.clone();
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        if let Some(value) = authorization {
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let (status, body, _) = self.send(request).await?;
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }

    async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<(StatusCode, Bytes, Option<String>), Error> {
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json"));
        // Not every request can be repeated, so none is sent over a reused connection that may be closed by now.
        request.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
        let origin = address::origin(request.uri());
        let exchange = async {
            let answer = self.client.send(request).await?;
            let next = answer.headers().get(LOCATION).and_then(|value| value.to_str().ok());
            let (status, next) = (answer.status(), next.map(ToOwned::to_owned));
            Ok((status, read(answer.into_body(), BYTES).await?, next))
        };
        match tokio::time::timeout(TIME, exchange).await {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) => Err(self.unreachable(&origin, &error)),
            Err(_) => Err(self.failed("its authorization server does not respond").because(origin)),
        }
    }

    fn unreachable(&self, origin: &str, error: &SendError) -> Error {
        let failed = self.failed("its authorization server cannot be reached");
        let failed = failed.because(format!("{origin}: {error}"));
        match error {
            SendError::Refused => failed.hint("If you trust its address, add it to `egress.allow`."),
            _ => failed,
        }
    }

    pub(super) fn failed(&self, what: &str) -> Error {
        Error::new(ErrorKind::UpstreamUnavailable, format!("The login to `{}` failed: {what}.", self.name))
    }
}

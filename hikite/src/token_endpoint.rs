//! Token endpoints of providers over HTTP: one request, limited in time and size. Error messages never contain what
//! was sent or received.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hikite_core::credential::{TokenEndpoint, TokenRequest, TokenResponse};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::secret::Secret;
use hikite_core::source::BoxFuture;
use hikite_core::uri::encode;
use hikite_egress::{EgressClient, RequestBody, SendError, read};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request, Uri};
use serde_json::{Map, Value};

const ANSWER_BYTES: usize = 256 * 1024;
const TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Clone, Debug)]
pub struct HttpTokenEndpoint(EgressClient);

impl HttpTokenEndpoint {
    pub fn new(client: EgressClient) -> Self {
        Self(client)
    }

    async fn exchange(&self, request: TokenRequest) -> Result<TokenResponse, Error> {
        let (kind, body) = if request.as_json {
            let members: Map<String, Value> =
                request.form.iter().map(|(name, value)| (name.clone(), value.expose().into())).collect();
            ("application/json", Value::Object(members).to_string())
        } else {
            ("application/x-www-form-urlencoded", form(&request.form))
        };
        let mut sent = Request::new(RequestBody::new(Bytes::from(body)));
        *sent.method_mut() = Method::POST;
        *sent.uri_mut() =
            request.url.parse::<Uri>().map_err(|_| unreachable(&request.url, "it is not a valid address"))?;
        let headers = sent.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(kind));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some((id, secret)) = &request.basic {
            // RFC 6749 section 2.3.1 wants both form-encoded.
            let pair = format!("{}:{}", encode(id), encode(secret.expose()));
            let value = HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(pair)));
            let mut value =
                value.map_err(|_| unreachable(&request.url, "the app's secret cannot be sent in a header"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        let send_failed = |error: SendError| unreachable(&request.url, &error.to_string());
        let answer = self.0.send(sent).await.map_err(send_failed)?;
        let status = answer.status().as_u16();
        let retry_after = hikite_egress::retry_after(answer.headers());
        let body = read(answer.into_body(), ANSWER_BYTES).await.map_err(send_failed)?;
        let body = String::from_utf8(body.to_vec()).map_err(|_| unreachable(&request.url, "it returned no text"))?;
        Ok(TokenResponse { status, body: Secret::hidden(body), retry_after })
    }
}

impl TokenEndpoint for HttpTokenEndpoint {
    fn post(&self, request: TokenRequest) -> BoxFuture<'_, Result<TokenResponse, Error>> {
        Box::pin(async move {
            let url = request.url.clone();
            let answer = tokio::time::timeout(TIMEOUT, self.exchange(request)).await;
            answer.unwrap_or_else(|_| Err(unreachable(&url, "it did not respond in time")))
        })
    }
}

fn unreachable(url: &str, cause: &str) -> Error {
    let host = url.split_once("://").map_or(url, |(_, rest)| rest).split('/').next().unwrap_or_default();
    Error::new(ErrorKind::UpstreamUnavailable, format!("The token endpoint at `{host}` cannot be reached."))
        .hint("Try again in a moment.")
        .because(cause)
}

/// Encodes the pairs as `application/x-www-form-urlencoded`.
fn form(pairs: &[(String, Secret)]) -> String {
    let pair = |(name, value): &(String, Secret)| format!("{}={}", encode(name), encode(value.expose()));
    pairs.iter().map(pair).collect::<Vec<_>>().join("&")
}

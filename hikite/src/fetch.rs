//! Fetches metadata and calls endpoints of identity providers: one request, limited in time and size. Configured
//! addresses may be anywhere; addresses from a fetched document must be on the public internet. Error messages never
//! contain response bodies.

use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::fetch::{AddressTrust, DocumentFetcher, FetchResponse, FormBody};
use hikite_core::source::BoxFuture;
use hikite_egress::{EgressClient, RequestBody, read};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use http::{Method, Request};
use serde_json::Value;

const TIMEOUT: Duration = Duration::from_secs(10);
const ANSWER_BYTES: usize = 512 * 1024;

#[derive(Clone, Debug)]
pub(crate) struct IssuerFetcher {
    pub(crate) client: EgressClient,
    pub(crate) guarded: EgressClient,
}

impl IssuerFetcher {
    async fn send(&self, trust: AddressTrust, request: Request<RequestBody>) -> Result<FetchResponse, Error> {
        let url = request.uri().clone();
        let failed = |cause: String| {
            let host = url.host().unwrap_or_default();
            Error::new(ErrorKind::UpstreamUnavailable, format!("`{host}` cannot be reached.")).because(cause)
        };
        let client = match trust {
            AddressTrust::Configured => &self.client,
            AddressTrust::Untrusted => &self.guarded,
        };
        let exchange = async {
            let answer = client.send(request).await?;
            let status = answer.status().as_u16();
            Ok((status, read(answer.into_body(), ANSWER_BYTES).await?))
        };
        let answer: Result<_, hikite_egress::SendError> = tokio::time::timeout(TIMEOUT, exchange)
            .await
            .map_err(|_| failed("there was no response in time".into()))?;
        let (status, body) = answer.map_err(|error| failed(error.to_string()))?;
        let body = serde_json::from_slice(&body).map_err(|_| failed(format!("it returned {status} without JSON")))?;
        Ok(FetchResponse { status, body })
    }
}

impl DocumentFetcher for IssuerFetcher {
    fn get<'a>(&'a self, url: &'a str, trust: AddressTrust) -> BoxFuture<'a, Result<Value, Error>> {
        Box::pin(async move {
            let reply = self.send(trust, request(Method::GET, url, Bytes::new())?).await?;
            if reply.status != 200 {
                let message = format!("{} returned {}.", shown(url), reply.status);
                return Err(Error::new(ErrorKind::UpstreamUnavailable, message));
            }
            Ok(reply.body)
        })
    }

    fn post<'a>(
        &'a self,
        url: &'a str,
        trust: AddressTrust,
        form: FormBody,
    ) -> BoxFuture<'a, Result<FetchResponse, Error>> {
        Box::pin(async move {
            let pairs = form.fields.iter().map(|(name, value)| format!("{name}={}", encoded(value.expose())));
            let body = pairs.collect::<Vec<_>>().join("&");
            let mut request = request(Method::POST, url, body.into())?;
            let headers = request.headers_mut();
            headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"));
            if let Some((id, secret)) = &form.basic {
                // RFC 6749 section 2.3.1 wants both form-encoded.
                let pair = format!("{}:{}", encoded(id), encoded(secret.expose()));
                let value = HeaderValue::from_str(&format!("Basic {}", BASE64_STANDARD.encode(pair)));
                let mut value = value.map_err(|_| Error::new(ErrorKind::Internal, "base64 is text"))?;
                value.set_sensitive(true);
                headers.insert(AUTHORIZATION, value);
            }
            self.send(trust, request).await
        })
    }
}

fn request(method: Method, url: &str, body: Bytes) -> Result<Request<RequestBody>, Error> {
    let request = Request::builder().method(method).uri(url).header(ACCEPT, "application/json");
    let wrong = |_| Error::new(ErrorKind::UpstreamUnavailable, format!("{} is not a valid address.", shown(url)));
    request.body(RequestBody::new(body)).map_err(wrong)
}

fn shown(url: &str) -> &str {
    url.split(['?', '#']).next().unwrap_or_default()
}

/// Encodes a form value.
fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte);
    let each = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(each).collect()
}

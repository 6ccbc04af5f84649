//! JSON POST requests to a configured endpoint, with a timeout and a response size limit. A failure is logged once, not
//! with every search.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hikite_core::json::Raw;
use hikite_core::search::provider::ProviderFailure;
use hikite_core::secret::Secret;
use hikite_egress::{EgressClient, RequestBody, SendError, read};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode, Uri};

/// A configured search endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SearchEndpoint {
    /// Full URL, including the path of the call.
    pub url: Secret,
    /// Bearer token.
    pub token: Option<Secret>,
    pub timeout: Duration,
}

/// An endpoint that cannot be used, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidEndpoint(pub &'static str);

#[derive(Debug)]
pub(crate) struct EndpointClient {
    client: EgressClient,
    url: Uri,
    headers: HeaderMap,
    timeout: Duration,
    /// Name of the endpoint in logs.
    name: &'static str,
    is_healthy: AtomicBool,
}

/// Maximum response size: a thousand vectors of a large model.
const RESPONSE_BYTES_MAX: usize = 32 << 20;

impl EndpointClient {
    pub(crate) fn new(
        client: EgressClient,
        endpoint: &SearchEndpoint,
        name: &'static str,
    ) -> Result<Self, InvalidEndpoint> {
        let url = endpoint.url.expose().parse().map_err(|_| InvalidEndpoint("the address is not valid"))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(token) = &endpoint.token {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
                .map_err(|_| InvalidEndpoint("the token cannot be sent in a header"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Self { client, url, headers, timeout: endpoint.timeout, name, is_healthy: AtomicBool::new(true) })
    }

    /// Sends a body and parses the response with `read`; a response that `read` rejects is an error.
    pub(crate) async fn post_json<T>(
        &self,
        body: Vec<u8>,
        read: impl FnOnce(Raw) -> Option<T>,
    ) -> Result<T, ProviderFailure> {
        let response = tokio::time::timeout(self.timeout, self.send(body)).await;
        let response = response.unwrap_or(Err(ProviderFailure::Timeout));
        let response = response.and_then(|response| read(response).ok_or(ProviderFailure::Unreadable));
        let was_healthy = self.is_healthy.swap(response.is_ok(), Ordering::Relaxed);
        match &response {
            Err(trouble) if was_healthy => {
                tracing::warn!("{} is not used for searches: {trouble}", self.name);
            }
            Ok(_) if !was_healthy => tracing::info!("{} responds again", self.name),
            _ => {}
        }
        response
    }

    async fn send(&self, body: Vec<u8>) -> Result<Raw, ProviderFailure> {
        let mut request = Request::new(RequestBody::new(body.into()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.clone();
        let response = self.client.send(request).await.map_err(|error| match error {
            SendError::TooLarge(_) => ProviderFailure::Unreadable,
            _ => ProviderFailure::Unreachable,
        })?;
        match response.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(ProviderFailure::Refused),
            _ => return Err(ProviderFailure::Failed),
        }
        let body = read(response.into_body(), RESPONSE_BYTES_MAX).await.map_err(|error| match error {
            SendError::TooLarge(_) => ProviderFailure::Unreadable,
            _ => ProviderFailure::Unreachable,
        })?;
        Raw::parse(body).map_err(|_| ProviderFailure::Unreadable)
    }
}

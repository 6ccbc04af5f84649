//! JSON POST requests to a configured endpoint, with a timeout and a response size limit. A failure is logged once, not
//! with every search.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hikite_core::json::Raw;
use hikite_core::search::provider::Trouble;
use hikite_core::secret::Secret;
use hikite_egress::{Client, Content, SendError, read};
use http::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE, HeaderMap, HeaderValue};
use http::{Method, Request, StatusCode, Uri};

/// A configured search endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Full URL, including the path of the call.
    pub url: Secret,
    /// Bearer token.
    pub token: Option<Secret>,
    pub timeout: Duration,
}

/// An endpoint that cannot be used, with the reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BadPlace(pub &'static str);

#[derive(Debug)]
pub(crate) struct Post {
    client: Client,
    url: Uri,
    headers: HeaderMap,
    timeout: Duration,
    /// Name of the endpoint in logs.
    what: &'static str,
    is_well: AtomicBool,
}

/// Maximum response size: a thousand vectors of a large model.
const ANSWER_BYTES: usize = 32 << 20;

impl Post {
    pub(crate) fn new(client: Client, place: &Place, what: &'static str) -> Result<Self, BadPlace> {
        let url = place.url.expose().parse().map_err(|_| BadPlace("the address is no address"))?;
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        if let Some(token) = &place.token {
            let mut value = HeaderValue::from_str(&format!("Bearer {}", token.expose()))
                .map_err(|_| BadPlace("the token cannot be sent"))?;
            value.set_sensitive(true);
            headers.insert(AUTHORIZATION, value);
        }
        Ok(Self { client, url, headers, timeout: place.timeout, what, is_well: AtomicBool::new(true) })
    }

    /// Sends a body and parses the response with `read`; a response that `read` rejects is an error.
    pub(crate) async fn ask<T>(
        &self,
        body: Vec<u8>,
        read: impl FnOnce(Raw) -> Option<T>,
    ) -> Result<T, Trouble> {
        let answer = tokio::time::timeout(self.timeout, self.exchange(body)).await;
        let answer = answer.unwrap_or(Err(Trouble::Timeout));
        let answer = answer.and_then(|answer| read(answer).ok_or(Trouble::Unreadable));
        let was_well = self.is_well.swap(answer.is_ok(), Ordering::Relaxed);
        match &answer {
            Err(trouble) if was_well => {
                tracing::warn!("{} is left out of searches: {trouble}", self.what);
            }
            Ok(_) if !was_well => tracing::info!("{} answers again", self.what),
            _ => {}
        }
        answer
    }

    async fn exchange(&self, body: Vec<u8>) -> Result<Raw, Trouble> {
        let mut request = Request::new(Content::new(body.into()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = self.url.clone();
        *request.headers_mut() = self.headers.clone();
        let answer = self.client.send(request).await.map_err(|error| match error {
            SendError::TooLarge(_) => Trouble::Unreadable,
            _ => Trouble::Unreachable,
        })?;
        match answer.status() {
            StatusCode::OK => {}
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => return Err(Trouble::Refused),
            _ => return Err(Trouble::Failed),
        }
        let body = read(answer.into_body(), ANSWER_BYTES).await.map_err(|error| match error {
            SendError::TooLarge(_) => Trouble::Unreadable,
            _ => Trouble::Unreachable,
        })?;
        Raw::parse(body).map_err(|_| Trouble::Unreadable)
    }
}

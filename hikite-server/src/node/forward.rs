//! Forwards a request to another node with a peer token and streams the response back to the client. Dropping the
//! response cancels the forwarded request.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use hikite_core::error::{Error, Kind};
use hikite_egress::{Content, SendError};
use hikite_gateway::{Peer, now_ms};
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, Uri};
use tokio_util::sync::CancellationToken;

use super::pass::{HEADER, travels};
use super::{Neighbours, PREFIX};
use crate::arrival::Arrival;
use crate::refusal::refusal;
use crate::request_id;

/// Grace period for a node that left, added to its drain time, because other nodes learn of its leaving with a delay.
const AFTERWARDS: Duration = Duration::from_secs(4);
const PARENT: HeaderName = HeaderName::from_static("traceparent");

/// A client's request, as received.
#[derive(Debug)]
pub(crate) struct Sent {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Error of forwarding a request.
#[derive(Debug)]
pub(crate) enum Missed {
    /// The node was unreachable; the request had no effect.
    Unreached,
    /// The connection broke; whether the request took effect is unknown.
    Broken,
}

impl Missed {
    /// Returns the response for the client.
    pub(crate) fn answer(&self) -> Response {
        refusal(self.error())
    }

    pub(crate) fn error(&self) -> Error {
        let message = match self {
            Self::Unreached => "the node that holds this is not reached",
            Self::Broken => "the node that held this went away; the request may have been carried out",
        };
        let error = Error::new(Kind::Overloaded, message).hint("try again in a moment");
        Error { retry_after: Some(Duration::from_secs(1)), ..error }
    }
}

impl Neighbours {
    pub(crate) async fn forward(
        &self,
        peer: &Peer,
        arrival: &Arrival,
        sent: &Sent,
        drain: Duration,
    ) -> Result<Response, Missed> {
        let request = self.request(peer, arrival, sent).map_err(|_| Missed::Unreached)?;
        let answer = tokio::select! {
            answer = self.client.send(request) => answer,
            () = lost(peer.gone.clone(), drain) => return Err(Missed::Broken),
        };
        let answer = answer.map_err(|error| {
            tracing::debug!(%error, "another node was not reached");
            match error {
                SendError::Transfer(_) | SendError::TooLarge(_) => Missed::Broken,
                _ => Missed::Unreached,
            }
        })?;
        let (parts, body) = answer.into_parts();
        let mut response = Response::new(Body::empty());
        *response.status_mut() = parts.status;
        for (name, value) in &parts.headers {
            if travels(name) || name == CONTENT_LENGTH {
                response.headers_mut().append(name, value.clone());
            }
        }
        let is_stream = !parts.headers.contains_key(CONTENT_LENGTH);
        let body = Body::new(body);
        *response.body_mut() = if is_stream {
            let lost = lost(peer.gone.clone(), drain);
            Body::from_stream(body.into_data_stream().take_until(Box::pin(lost)))
        } else {
            body
        };
        Ok(response)
    }

    /// Builds the request for the other node.
    fn request(&self, peer: &Peer, arrival: &Arrival, sent: &Sent) -> Result<Request<Content>, Error> {
        let bad = |_| Error::new(Kind::Internal, "a request cannot be handed on");
        let path = sent.uri.path_and_query().map(PathAndQuery::as_str).unwrap_or_default();
        let mut headers = HeaderMap::new();
        for (name, value) in sent.headers.iter().filter(|(name, _)| travels(name)) {
            headers.append(name, value.clone());
        }
        let origin = &arrival.origin;
        for (name, value) in [(request_id::HEADER, &origin.request_id), (PARENT, &origin.traceparent)] {
            if let Some(value) = value.as_deref().and_then(|value| HeaderValue::from_str(value).ok()) {
                headers.insert(name, value);
            }
        }
        let covered = (&sent.method, path, &headers, &*sent.body);
        let pass = self.desk.issue(covered, &peer.id, (&arrival.caller, arrival.proof), now_ms())?;
        let mut pass =
            HeaderValue::from_str(&pass).map_err(|_| Error::new(Kind::Internal, "a pass cannot be sent"))?;
        pass.set_sensitive(true);
        headers.insert(HEADER, pass);
        let request = Request::builder().method(&sent.method).uri(format!("{}{PREFIX}{path}", peer.url));
        let mut request = request.body(Content::new(sent.body.clone())).map_err(bad)?;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

/// Waits until nothing more can come from a node. A node that shuts down gracefully finishes its requests first.
async fn lost(gone: CancellationToken, drain: Duration) {
    gone.cancelled_owned().await;
    tokio::time::sleep(drain + AFTERWARDS).await;
}

//! Forwards a request to another node with a peer token and streams the response back to the client. Dropping the
//! response cancels the forwarded request.

use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use futures_util::StreamExt;
use hikite_core::error::{Error, ErrorKind};
use hikite_egress::{RequestBody, SendError};
use hikite_gateway::{Peer, now_ms};
use http::header::{CONTENT_LENGTH, HeaderMap, HeaderName, HeaderValue};
use http::uri::PathAndQuery;
use http::{Method, Request, Uri};
use tokio_util::sync::CancellationToken;

use super::peer_token::{HEADER, is_end_to_end};
use super::{PREFIX, Peers};
use crate::error_response::error_response;
use crate::request_context::RequestContext;
use crate::request_id;

/// Grace period for a node that left, added to its drain time, because other nodes learn of its leaving with a delay.
const LEAVE_GRACE: Duration = Duration::from_secs(4);
const PARENT: HeaderName = HeaderName::from_static("traceparent");

/// A client's request, as received.
#[derive(Debug)]
pub(crate) struct ForwardedRequest {
    pub(crate) method: Method,
    pub(crate) uri: Uri,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Error of forwarding a request.
#[derive(Debug)]
pub(crate) enum ForwardError {
    /// The node was unreachable; the request had no effect.
    Unreachable,
    /// The connection broke; whether the request took effect is unknown.
    Interrupted,
}

impl ForwardError {
    /// Returns the response for the client.
    pub(crate) fn answer(&self) -> Response {
        error_response(self.error())
    }

    pub(crate) fn error(&self) -> Error {
        let message = match self {
            Self::Unreachable => "The node that holds this session cannot be reached.",
            Self::Interrupted => "The node that held this session is gone. The request may have been executed.",
        };
        let error = Error::new(ErrorKind::Overloaded, message).hint("Try again in a moment.");
        Error { retry_after: Some(Duration::from_secs(1)), ..error }
    }
}

impl Peers {
    pub(crate) async fn forward(
        &self,
        peer: &Peer,
        request_context: &RequestContext,
        sent: &ForwardedRequest,
        drain: Duration,
    ) -> Result<Response, ForwardError> {
        let request = self.request(peer, request_context, sent).map_err(|_| ForwardError::Unreachable)?;
        let answer = tokio::select! {
            answer = self.client.send(request) => answer,
            () = node_gone(peer.gone.clone(), drain) => return Err(ForwardError::Interrupted),
        };
        let answer = answer.map_err(|error| {
            tracing::debug!(%error, "failed to reach another node");
            match error {
                SendError::Transfer(_) | SendError::TooLarge(_) => ForwardError::Interrupted,
                _ => ForwardError::Unreachable,
            }
        })?;
        let (parts, body) = answer.into_parts();
        let mut response = Response::new(Body::empty());
        *response.status_mut() = parts.status;
        for (name, value) in &parts.headers {
            if is_end_to_end(name) || name == CONTENT_LENGTH {
                response.headers_mut().append(name, value.clone());
            }
        }
        let is_stream = !parts.headers.contains_key(CONTENT_LENGTH);
        let body = Body::new(body);
        *response.body_mut() = if is_stream {
            let node_gone = node_gone(peer.gone.clone(), drain);
            Body::from_stream(body.into_data_stream().take_until(Box::pin(node_gone)))
        } else {
            body
        };
        Ok(response)
    }

    /// Builds the request for the other node.
    fn request(
        &self,
        peer: &Peer,
        request_context: &RequestContext,
        sent: &ForwardedRequest,
    ) -> Result<Request<RequestBody>, Error> {
        let bad = |_| Error::new(ErrorKind::Internal, "The request cannot be forwarded.");
        let path = sent.uri.path_and_query().map(PathAndQuery::as_str).unwrap_or_default();
        let mut headers = HeaderMap::new();
        for (name, value) in sent.headers.iter().filter(|(name, _)| is_end_to_end(name)) {
            headers.append(name, value.clone());
        }
        let origin = &request_context.origin;
        for (name, value) in [(request_id::HEADER, &origin.request_id), (PARENT, &origin.traceparent)] {
            if let Some(value) = value.as_deref().and_then(|value| HeaderValue::from_str(value).ok()) {
                headers.insert(name, value);
            }
        }
        let covered = (&sent.method, path, &headers, &*sent.body);
        let pass =
            self.authenticator.issue(covered, &peer.id, (&request_context.caller, request_context.proof), now_ms())?;
        let mut pass = HeaderValue::from_str(&pass)
            .map_err(|_| Error::new(ErrorKind::Internal, "The peer token cannot be sent in a header."))?;
        pass.set_sensitive(true);
        headers.insert(HEADER, pass);
        let request = Request::builder().method(&sent.method).uri(format!("{}{PREFIX}{path}", peer.url));
        let mut request = request.body(RequestBody::new(sent.body.clone())).map_err(bad)?;
        *request.headers_mut() = headers;
        Ok(request)
    }
}

/// Waits until nothing more can come from a node. A node that shuts down gracefully finishes its requests first.
async fn node_gone(gone: CancellationToken, drain: Duration) {
    gone.cancelled_owned().await;
    tokio::time::sleep(drain + LEAVE_GRACE).await;
}

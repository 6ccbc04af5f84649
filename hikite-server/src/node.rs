//! The other nodes of a cluster. Forwards requests to the node that holds their session, and authenticates requests
//! that other nodes forward. A forwarded request is not forwarded again.

mod forward;
mod peer_token;
pub(crate) mod peers;

use axum::body::Body;
use axum::extract::Request;
use hikite_core::error::Error;
use hikite_core::source::CallOrigin;
use http::uri::PathAndQuery;

use crate::app::App;
use crate::mcp::body::read;
use crate::request_context::RequestContext;
pub(crate) use forward::{ForwardError, ForwardedRequest};
pub(crate) use peers::Peers;

/// Path prefix of requests between nodes.
pub(crate) const PREFIX: &str = "/node";

/// Authenticates a request from another node. Reads its body to verify the token.
pub(crate) async fn admit(
    app: &App,
    peers: &Peers,
    request: &mut Request,
    origin: &CallOrigin,
) -> Result<RequestContext, Error> {
    let body = std::mem::replace(request.body_mut(), Body::empty());
    let body = read(app, body).await?;
    let path = request.uri().path_and_query().map(PathAndQuery::as_str).unwrap_or_default();
    let path = path.strip_prefix(PREFIX).unwrap_or_default();
    let sent = (request.method(), path, request.headers(), &*body);
    let own = peers.nodes.id();
    let (caller, proof) = peers.authenticator.admit(sent, &own, hikite_gateway::now_ms()).map_err(|why| {
        tracing::warn!("rejected a request that claims to come from another node: {why}");
        why.error()
    })?;
    *request.body_mut() = Body::from(body);
    Ok(RequestContext { is_forwarded: true, ..RequestContext::over_http(caller, proof, origin.clone()) })
}

//! The other nodes of a cluster. Forwards requests to the node that holds their session, and authenticates requests
//! that other nodes forward. A forwarded request is not forwarded again.

mod forward;
mod pass;

use std::sync::Arc;

use axum::body::Body;
use axum::extract::Request;
use hikite_core::error::Error;
use hikite_core::source::Origin;
use hikite_egress::Client;
use hikite_gateway::Nodes;
use http::uri::PathAndQuery;

use crate::app::App;
use crate::arrival::Arrival;
use crate::mcp::http::read;
use pass::Desk;

pub(crate) use forward::{Missed, Sent};

/// Path prefix of requests between nodes.
pub(crate) const PREFIX: &str = "/node";

pub(crate) struct Neighbours {
    pub(crate) nodes: Arc<Nodes>,
    desk: Desk,
    client: Client,
    /// Serialises taking over sessions.
    pub(crate) taking: tokio::sync::Mutex<()>,
}

impl Neighbours {
    pub(crate) fn new(nodes: Arc<Nodes>, key: [u8; 32], client: Client) -> Self {
        Self { nodes, desk: Desk::new(key), client, taking: tokio::sync::Mutex::default() }
    }
}

/// Authenticates a request from another node. Reads its body to verify the token.
pub(crate) async fn admit(
    app: &App,
    neighbours: &Neighbours,
    request: &mut Request,
    origin: &Origin,
) -> Result<Arrival, Error> {
    let body = std::mem::replace(request.body_mut(), Body::empty());
    let body = read(app, body).await?;
    let path = request.uri().path_and_query().map(PathAndQuery::as_str).unwrap_or_default();
    let path = path.strip_prefix(PREFIX).unwrap_or_default();
    let sent = (request.method(), path, request.headers(), &*body);
    let own = neighbours.nodes.id();
    let (caller, proof) = neighbours.desk.admit(sent, &own, hikite_gateway::now_ms()).map_err(|why| {
        tracing::warn!("a request in the name of another node was refused: {why}");
        why.error()
    })?;
    *request.body_mut() = Body::from(body);
    Ok(Arrival { is_relayed: true, ..Arrival::over_http(caller, proof, origin.clone()) })
}

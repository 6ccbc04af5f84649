//! The other nodes, as this one's door sees them: requests for what another holds are handed on to it, and what others
//! hand on is let in by the pass that they show. One hop: what was handed on once is not handed on again.

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

/// What the addresses begin with at which nodes reach each other.
pub(crate) const PREFIX: &str = "/node";

pub(crate) struct Neighbours {
    pub(crate) nodes: Arc<Nodes>,
    desk: Desk,
    client: Client,
    /// Whose turn it is to take a session over.
    pub(crate) taking: tokio::sync::Mutex<()>,
}

impl Neighbours {
    pub(crate) fn new(nodes: Arc<Nodes>, key: [u8; 32], client: Client) -> Self {
        Self { nodes, desk: Desk::new(key), client, taking: tokio::sync::Mutex::default() }
    }
}

/// Who stands behind a request that another node has handed on. Its body is read for that.
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

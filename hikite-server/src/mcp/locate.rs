//! Locates a session: in the local table, at another node, or nowhere. Requests for a session of another node are
//! forwarded; if that node is gone, the session is reopened here from the data in its id.

use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use hikite_gateway::{Owner, Peer, now_ms};
use http::StatusCode;
use http::header::HeaderName;
use tokio::time::Instant;

use crate::app::App;
use crate::error_response::error_response;
use crate::mcp::rpc_response::problem;
use crate::mcp::session::ClientSession;
use crate::mcp::session_token::SessionToken;
use crate::node::{ForwardError, ForwardedRequest, Peers};
use crate::request_context::RequestContext;

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Time limit for reaching a node that does not answer, or for it to be declared gone.
const RETRY_TIMEOUT: Duration = Duration::from_secs(8);
/// Pause between two attempts.
const RETRY_INTERVAL: Duration = Duration::from_millis(100);

/// Returns the session that a request names, if it is here; else the response of another node or an error.
pub(crate) async fn find(
    app: &Arc<App>,
    request_context: &RequestContext,
    request: &ForwardedRequest,
) -> Result<Arc<ClientSession>, Response> {
    let Some(id) = request.headers.get(SESSION) else {
        return Err(problem(
            StatusCode::BAD_REQUEST,
            "The `Mcp-Session-Id` header is missing. Start with `initialize`.",
        ));
    };
    let id = id.to_str().map_err(|_| unknown())?;
    match app.peers() {
        None => app.sessions.get(id, &request_context.caller).ok_or_else(unknown),
        Some(peers) => Box::pin(find_in_cluster(app, peers, id, request_context, request)).await,
    }
}

async fn find_in_cluster(
    app: &Arc<App>,
    peers: &Peers,
    id: &str,
    request_context: &RequestContext,
    request: &ForwardedRequest,
) -> Result<Arc<ClientSession>, Response> {
    // The store records which node holds a session; without it another node may hold this one by now.
    app.gateway.freshness().check().map_err(error_response)?;
    if let Some(entry) = app.sessions.entry(id, &request_context.caller) {
        if peers.nodes.holds(entry.holder.as_deref().unwrap_or_default()).await {
            return Ok(entry.session);
        }
        app.sessions.remove_moved(id);
    }
    let name = app.sessions.read(id, &request_context.caller).ok_or_else(unknown)?;
    let home = name.origin.as_ref().map(|origin| origin.home.as_str()).ok_or_else(unknown)?;
    let begin = Instant::now();
    let mut known = None;
    if request_context.is_forwarded {
        // The forwarding node may have newer data.
        peers.nodes.refresh_peers().await.map_err(error_response)?;
    } else {
        known = peers.nodes.known_owner(&name.number, home);
    }
    loop {
        let peer = match known.take() {
            Some(peer) => peer,
            None => match resolve_owner(app, peers, (id, &name, home), request_context).await? {
                SessionLocation::Here(session) => return Ok(session),
                SessionLocation::There(peer) => peer,
            },
        };
        if request_context.is_forwarded {
            // The forwarding node looks up the holder again.
            return Err(problem(StatusCode::MISDIRECTED_REQUEST, "This session is on another node."));
        }
        match peers.forward(&peer, request_context, request, app.limits.drain).await {
            Ok(answer) if answer.status() == StatusCode::MISDIRECTED_REQUEST => {}
            Ok(answer) => return Err(answer),
            Err(missed @ ForwardError::Interrupted) => return Err(missed.answer()),
            Err(ForwardError::Unreachable) => {}
        }
        if begin.elapsed() > RETRY_TIMEOUT {
            return Err(ForwardError::Unreachable.answer());
        }
        // The node may be gone, or have handed over the session; the request has had no effect yet.
        peers.nodes.forget(&name.number);
        if let Err(error) = peers.nodes.refresh_peers().await {
            return Err(error_response(error));
        }
        tokio::time::sleep(RETRY_INTERVAL).await;
    }
}

enum SessionLocation {
    Here(Arc<ClientSession>),
    There(Peer),
}

/// Determines the node that holds a session. Serialised, so that a session is reopened only once.
async fn resolve_owner(
    app: &Arc<App>,
    peers: &Peers,
    (id, name, home): (&str, &SessionToken, &str),
    request_context: &RequestContext,
) -> Result<SessionLocation, Response> {
    let _turn = peers.takeover.lock().await;
    if let Some(session) = app.sessions.get(id, &request_context.caller) {
        return Ok(SessionLocation::Here(session));
    }
    let (caller, surfaces, hello) = name.reopen_parameters().ok_or_else(unknown)?;
    match peers.nodes.owner(&name.number, home).await.map_err(error_response)? {
        Owner::Nobody => Err(unknown()),
        Owner::Other(peer) => Ok(SessionLocation::There(peer)),
        Owner::Local => {
            let session = ClientSession::open(app, caller.clone(), surfaces, hello);
            session.streams.begin_at(now_ms());
            let number = name.number.as_str().into();
            let holder = Some(peers.nodes.id());
            app.sessions.put(id, Arc::clone(&session), number, holder).map_err(error_response)?;
            Ok(SessionLocation::Here(session))
        }
    }
}

/// Forwards a request to the node that stores what it names. Returns `None` if that is this node or unknown.
pub(crate) async fn forward(
    app: &App,
    node: &str,
    request_context: &RequestContext,
    request: &ForwardedRequest,
) -> Option<Result<Response, ForwardError>> {
    let peers = app.peers().filter(|_| !request_context.is_forwarded)?;
    let peer = peers.nodes.peer_by_prefix(node)?;
    Some(peers.forward(&peer, request_context, request, app.limits.drain).await)
}

fn unknown() -> Response {
    problem(StatusCode::NOT_FOUND, "There is no such session. Start again with `initialize`.")
}

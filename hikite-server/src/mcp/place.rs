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
use crate::arrival::Arrival;
use crate::mcp::http::problem;
use crate::mcp::name::Name;
use crate::mcp::session::Session;
use crate::node::{Missed, Neighbours, Sent};
use crate::refusal::refusal;

pub(crate) const SESSION: HeaderName = HeaderName::from_static("mcp-session-id");
/// Time limit for reaching a node that does not answer, or for it to be declared gone.
const PATIENCE: Duration = Duration::from_secs(8);
/// Pause between two attempts.
const PAUSE: Duration = Duration::from_millis(100);

/// Returns the session that a request names, if it is here; else the response of another node or an error.
pub(crate) async fn find(app: &Arc<App>, arrival: &Arrival, sent: &Sent) -> Result<Arc<Session>, Response> {
    let Some(id) = sent.headers.get(SESSION) else {
        return Err(problem(
            StatusCode::BAD_REQUEST,
            "the `Mcp-Session-Id` header is missing; begin with `initialize`",
        ));
    };
    let id = id.to_str().map_err(|_| unknown())?;
    match app.neighbours() {
        None => app.sessions.get(id, &arrival.caller).ok_or_else(unknown),
        Some(neighbours) => Box::pin(among_nodes(app, neighbours, id, arrival, sent)).await,
    }
}

async fn among_nodes(
    app: &Arc<App>,
    neighbours: &Neighbours,
    id: &str,
    arrival: &Arrival,
    sent: &Sent,
) -> Result<Arc<Session>, Response> {
    // The store records which node holds a session; without it another node may hold this one by now.
    app.gateway.freshness().check().map_err(refusal)?;
    if let Some(entry) = app.sessions.entry(id, &arrival.caller) {
        if neighbours.nodes.holds(entry.holder.as_deref().unwrap_or_default()).await {
            return Ok(entry.session);
        }
        app.sessions.let_go(id);
    }
    let name = app.sessions.read(id, &arrival.caller).ok_or_else(unknown)?;
    let home = name.began.as_ref().map(|began| began.home.as_str()).ok_or_else(unknown)?;
    let begin = Instant::now();
    let mut known = None;
    if arrival.is_relayed {
        // The forwarding node may have newer data.
        neighbours.nodes.doubt().await.map_err(refusal)?;
    } else {
        known = neighbours.nodes.known_owner(&name.number, home);
    }
    loop {
        let peer = match known.take() {
            Some(peer) => peer,
            None => match settle(app, neighbours, (id, &name, home), arrival).await? {
                Settled::Here(session) => return Ok(session),
                Settled::There(peer) => peer,
            },
        };
        if arrival.is_relayed {
            // The forwarding node looks up the holder again.
            return Err(problem(StatusCode::MISDIRECTED_REQUEST, "this session is at another node"));
        }
        match neighbours.forward(&peer, arrival, sent, app.limits.drain).await {
            Ok(answer) if answer.status() == StatusCode::MISDIRECTED_REQUEST => {}
            Ok(answer) => return Err(answer),
            Err(missed @ Missed::Broken) => return Err(missed.answer()),
            Err(Missed::Unreached) => {}
        }
        if begin.elapsed() > PATIENCE {
            return Err(Missed::Unreached.answer());
        }
        // The node may be gone, or have handed over the session; the request has had no effect yet.
        neighbours.nodes.forget(&name.number);
        if let Err(error) = neighbours.nodes.doubt().await {
            return Err(refusal(error));
        }
        tokio::time::sleep(PAUSE).await;
    }
}

enum Settled {
    Here(Arc<Session>),
    There(Peer),
}

/// Determines the node that holds a session. Serialised, so that a session is reopened only once.
async fn settle(
    app: &Arc<App>,
    neighbours: &Neighbours,
    (id, name, home): (&str, &Name, &str),
    arrival: &Arrival,
) -> Result<Settled, Response> {
    let _turn = neighbours.taking.lock().await;
    if let Some(session) = app.sessions.get(id, &arrival.caller) {
        return Ok(Settled::Here(session));
    }
    let (caller, surfaces, hello) = name.again().ok_or_else(unknown)?;
    match neighbours.nodes.owner(&name.number, home).await.map_err(refusal)? {
        Owner::Nobody => Err(unknown()),
        Owner::Other(peer) => Ok(Settled::There(peer)),
        Owner::Us => {
            let session = Session::open(app, caller.clone(), surfaces, hello);
            session.streams.begin_at(now_ms());
            let number = name.number.as_str().into();
            let holder = Some(neighbours.nodes.id());
            app.sessions.put(id, Arc::clone(&session), number, holder).map_err(refusal)?;
            Ok(Settled::Here(session))
        }
    }
}

/// Forwards a request to the node that stores what it names. Returns `None` if that is this node or unknown.
pub(crate) async fn hand_on(
    app: &App,
    node: &str,
    arrival: &Arrival,
    sent: &Sent,
) -> Option<Result<Response, Missed>> {
    let neighbours = app.neighbours().filter(|_| !arrival.is_relayed)?;
    let peer = neighbours.nodes.peer_like(node)?;
    Some(neighbours.forward(&peer, arrival, sent, app.limits.drain).await)
}

fn unknown() -> Response {
    problem(StatusCode::NOT_FOUND, "there is no such session; begin again with `initialize`")
}

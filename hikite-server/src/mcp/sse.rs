//! The HTTP+SSE transport of 2024-11-05: a stream that first names an endpoint, and that endpoint for the client's
//! messages.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse, Response};
use hikite_wire::sse;
use http::StatusCode;
use parking_lot::RwLock;
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::app::App;
use crate::error_response::error_response;
use crate::health::only;
use crate::mcp::body::read;
use crate::mcp::http::SurfaceQuery;
use crate::mcp::open_stream::{OpenStreams, StreamSlot};
use crate::mcp::pipe::DuplexClient;
use crate::mcp::rpc_response::problem;
use crate::mcp::table::random_id;
use crate::mcp::{locate, stream};
use crate::node::ForwardedRequest;
use crate::request_context::{RequestContext, TCP};

/// Purpose of the seal on an id.
const PURPOSE: &[u8] = b"channel";

/// The open streams, by the id in their endpoint.
#[derive(Debug, Default)]
pub(crate) struct Channels(RwLock<HashMap<String, Arc<DuplexClient>>>);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct MessagesQuery {
    session_id: String,
}

pub(crate) async fn open(
    State(app): State<Arc<App>>,
    request_context: RequestContext,
    Query(choice): Query<SurfaceQuery>,
) -> Response {
    let (surfaces, id) =
        match choice.surfaces(&app, &request_context.caller).and_then(|surfaces| Ok((surfaces, random_id()?))) {
            Ok(opened) => opened,
            Err(error) => return error_response(error),
        };
    let place = match OpenStreams::take(&app, &request_context.caller) {
        Ok(place) => place,
        Err(error) => return error_response(error),
    };
    let id = id_with_node(&app, &request_context, id);
    let (out, messages) = mpsc::channel(app.limits.outbox_messages.max(1));
    let pipe =
        DuplexClient::new(Arc::clone(&app), (request_context.caller, request_context.proof), (surfaces, TCP), out);
    app.channels.0.write().insert(id.clone(), pipe);
    let endpoint = sse::event("endpoint", format!("/messages?sessionId={id}").as_bytes());
    let ending = place.ending.clone();
    let open = OpenChannel { app: Arc::clone(&app), id, _place: place };
    stream::of_messages(Some(endpoint), messages, None, ending, open)
}

/// Handles HEAD, which must not open a stream.
pub(crate) async fn head() -> Response {
    only("GET")
}

pub(crate) async fn post(
    State(app): State<Arc<App>>,
    request_context: RequestContext,
    Query(address): Query<MessagesQuery>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let id = &address.session_id;
    let pipe = app.channels.0.read().get(id).filter(|pipe| pipe.caller == request_context.caller).cloned();
    let elsewhere = if pipe.is_none() { node_of(&app, &request_context, id) } else { None };
    if pipe.is_none() && elsewhere.is_none() {
        return no_stream();
    }
    let body = match read(&app, body).await {
        Ok(body) => body,
        Err(error) => return error_response(error),
    };
    if let Some(pipe) = pipe {
        pipe.receive(&body).await;
        return StatusCode::ACCEPTED.into_response();
    }
    let sent = ForwardedRequest { method: parts.method, uri: parts.uri, headers: parts.headers, body };
    match locate::forward(&app, &elsewhere.unwrap_or_default(), &request_context, &sent).await {
        Some(answer) => answer.unwrap_or_else(|missed| missed.answer()),
        None => no_stream(),
    }
}

fn no_stream() -> Response {
    problem(StatusCode::NOT_FOUND, "There is no such stream. Open one at `/sse`.")
}

/// Adds the node of the stream to its id, in a cluster.
fn id_with_node(app: &App, request_context: &RequestContext, id: String) -> String {
    let Some(peers) = app.peers() else { return id };
    let [subject, project] = request_context.caller.parts();
    let payload = format!("{} {id}", peers.nodes.id());
    app.gateway.seal().put(payload.as_bytes(), &[PURPOSE, subject, project])
}

fn node_of(app: &App, request_context: &RequestContext, id: &str) -> Option<String> {
    app.peers()?;
    let [subject, project] = request_context.caller.parts();
    let payload = String::from_utf8(app.gateway.seal().open(id, &[PURPOSE, subject, project])?).ok()?;
    payload.split_once(' ').map(|(node_of, _)| node_of.to_owned())
}

/// Held by the body of the stream; on drop the channel and its requests end.
struct OpenChannel {
    app: Arc<App>,
    id: String,
    _place: StreamSlot,
}

impl Drop for OpenChannel {
    fn drop(&mut self) {
        if let Some(pipe) = self.app.channels.0.write().remove(&self.id) {
            pipe.gone.cancel();
        }
    }
}

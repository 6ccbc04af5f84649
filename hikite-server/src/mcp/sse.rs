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
use crate::arrival::{Arrival, TCP};
use crate::health::only;
use crate::mcp::http::{Choice, problem, read};
use crate::mcp::open_stream::{OpenStreams, StreamPlace};
use crate::mcp::pipe::Pipe;
use crate::mcp::table::random_id;
use crate::mcp::{place, stream};
use crate::node::Sent;
use crate::refusal::refusal;

/// Purpose of the seal on an id.
const PURPOSE: &[u8] = b"channel";

/// The open streams, by the id in their endpoint.
#[derive(Debug, Default)]
pub(crate) struct Channels(RwLock<HashMap<String, Arc<Pipe>>>);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Address {
    session_id: String,
}

pub(crate) async fn open(
    State(app): State<Arc<App>>,
    arrival: Arrival,
    Query(choice): Query<Choice>,
) -> Response {
    let (surfaces, id) =
        match choice.surfaces(&app, &arrival.caller).and_then(|surfaces| Ok((surfaces, random_id()?))) {
            Ok(opened) => opened,
            Err(error) => return refusal(error),
        };
    let place = match OpenStreams::take(&app, &arrival.caller) {
        Ok(place) => place,
        Err(error) => return refusal(error),
    };
    let id = named(&app, &arrival, id);
    let (out, messages) = mpsc::channel(app.limits.outbox_messages.max(1));
    let pipe = Pipe::new(Arc::clone(&app), (arrival.caller, arrival.proof), (surfaces, TCP), out);
    app.channels.0.write().insert(id.clone(), pipe);
    let endpoint = sse::event("endpoint", format!("/messages?sessionId={id}").as_bytes());
    let ending = place.ending.clone();
    let open = Open { app: Arc::clone(&app), id, _place: place };
    stream::of_messages(Some(endpoint), messages, None, ending, open)
}

/// Handles HEAD, which must not open a stream.
pub(crate) async fn head() -> Response {
    only("GET")
}

pub(crate) async fn post(
    State(app): State<Arc<App>>,
    arrival: Arrival,
    Query(address): Query<Address>,
    request: Request,
) -> Response {
    let (parts, body) = request.into_parts();
    let id = &address.session_id;
    let pipe = app.channels.0.read().get(id).filter(|pipe| pipe.caller == arrival.caller).cloned();
    let elsewhere = if pipe.is_none() { home(&app, &arrival, id) } else { None };
    if pipe.is_none() && elsewhere.is_none() {
        return no_stream();
    }
    let body = match read(&app, body).await {
        Ok(body) => body,
        Err(error) => return refusal(error),
    };
    if let Some(pipe) = pipe {
        pipe.receive(&body).await;
        return StatusCode::ACCEPTED.into_response();
    }
    let sent = Sent { method: parts.method, uri: parts.uri, headers: parts.headers, body };
    match place::hand_on(&app, &elsewhere.unwrap_or_default(), &arrival, &sent).await {
        Some(answer) => answer.unwrap_or_else(|missed| missed.answer()),
        None => no_stream(),
    }
}

fn no_stream() -> Response {
    problem(StatusCode::NOT_FOUND, "there is no such stream; open one at `/sse`")
}

/// Adds the node of the stream to its id, in a cluster.
fn named(app: &App, arrival: &Arrival, id: String) -> String {
    let Some(neighbours) = app.neighbours() else { return id };
    let [subject, project] = arrival.caller.parts();
    let payload = format!("{} {id}", neighbours.nodes.id());
    app.gateway.seal().put(payload.as_bytes(), &[PURPOSE, subject, project])
}

fn home(app: &App, arrival: &Arrival, id: &str) -> Option<String> {
    app.neighbours()?;
    let [subject, project] = arrival.caller.parts();
    let payload = String::from_utf8(app.gateway.seal().open(id, &[PURPOSE, subject, project])?).ok()?;
    payload.split_once(' ').map(|(home, _)| home.to_owned())
}

/// Held by the body of the stream; on drop the channel and its requests end.
struct Open {
    app: Arc<App>,
    id: String,
    _place: StreamPlace,
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(pipe) = self.app.channels.0.write().remove(&self.id) {
            pipe.gone.cancel();
        }
    }
}

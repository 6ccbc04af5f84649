//! The HTTP+SSE transport of 2024-11-05, for clients that know no other: a stream that first names an endpoint,
//! and that endpoint for everything the client sends.

use std::collections::HashMap;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Query, State};
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
use crate::mcp::pipe::Pipe;
use crate::mcp::stream;
use crate::mcp::table::random_id;
use crate::refusal::refusal;

/// The open streams by the id in their endpoint.
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
    let (out, messages) = mpsc::channel(app.limits.outbox_messages.max(1));
    let pipe = Pipe::new(Arc::clone(&app), (arrival.caller, arrival.proof), (surfaces, TCP), out);
    app.channels.0.write().insert(id.clone(), pipe);
    let endpoint = sse::event("endpoint", format!("/messages?sessionId={id}").as_bytes());
    let open = Open { app: Arc::clone(&app), id };
    stream::of_messages(Some(endpoint), messages, None, app.stopping.clone(), open)
}

/// Must not open a stream.
pub(crate) async fn head() -> Response {
    only("GET")
}

pub(crate) async fn post(
    State(app): State<Arc<App>>,
    Arrival { caller, .. }: Arrival,
    Query(address): Query<Address>,
    body: Body,
) -> Response {
    let pipe = app.channels.0.read().get(&address.session_id).filter(|pipe| pipe.caller == caller).cloned();
    let Some(pipe) = pipe else {
        return problem(StatusCode::NOT_FOUND, "there is no such stream; open one at `/sse`");
    };
    match read(&app, body).await {
        Ok(body) => {
            pipe.receive(&body).await;
            StatusCode::ACCEPTED.into_response()
        }
        Err(error) => refusal(error),
    }
}

/// Held by the stream's body: when the client is gone, so is the channel and all that runs on it.
struct Open {
    app: Arc<App>,
    id: String,
}

impl Drop for Open {
    fn drop(&mut self) {
        if let Some(pipe) = self.app.channels.0.write().remove(&self.id) {
            pipe.gone.cancel();
        }
    }
}

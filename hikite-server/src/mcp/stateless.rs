//! Clients of revision 2026-07-28: stateless requests without sessions. Runs the checks of that revision in order, then
//! uses the same gateway as all other clients.

mod back;
mod call;
mod check;
mod lane;
mod listen;
mod result;

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hikite_core::json::{Object, Raw};
use hikite_gateway::aside::by_cost;
use hikite_gateway::{Gateway, Purpose, Surfaces, Ticket, Viewer, scope};
use hikite_wire::encode;
use hikite_wire::message::{BadMessage, Id, Message};
use hikite_wire::stateless::{self, Claim};
use http::StatusCode;
use memchr::memmem;
use tokio::sync::mpsc;

use crate::app::App;
use crate::arrival::Arrival;
use crate::mcp::http::{Answer, Choice, answer_or_stream};
use crate::mcp::operation::{Asked, Operation};
use crate::mcp::pipe::Pipe;
use crate::mcp::place;
use crate::mcp::sender;
use crate::node::{Missed, Sent};
use crate::refusal::refusal;
pub(crate) use back::Back;
pub(crate) use check::names_revision;
pub(crate) use lane::Lanes;

/// A request that passed the checks of form.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) id: Id,
    pub(crate) method: Box<str>,
    pub(crate) params: Object,
    pub(crate) claim: Claim,
    pub(crate) surfaces: Surfaces,
    pub(crate) arrival: Arrival,
}

/// Decodes a message, and reports whether it declares this revision itself.
pub(crate) fn decode(body: &Bytes) -> Result<(Message, bool), BadMessage> {
    let message = Message::decode(body)?;
    let claims = claims(body, &message);
    Ok((message, claims))
}

fn claims(body: &[u8], message: &Message) -> bool {
    let (Message::Request { params, .. } | Message::Notification { params, .. }) = message else {
        return false;
    };
    let params = || params.as_ref().and_then(Raw::object);
    stateless::may_claim(body) && params().is_some_and(|params| stateless::claims(&params))
}

/// Handles one POST.
pub(crate) async fn post(
    app: Arc<App>,
    (choice, arrival): (&Choice, Arrival),
    sent: &Sent,
    message: Message,
) -> Response {
    let headers = &sent.headers;
    let Message::Request { id, method, params } = message else {
        // Over HTTP a client cancels by closing the connection; other notifications have no effect.
        return StatusCode::ACCEPTED.into_response();
    };
    let alone = app.neighbours().is_none();
    let as_it_came = (!alone).then(|| arrival.clone());
    let read = || {
        let mut params = params.as_ref().and_then(Raw::object).unwrap_or_default();
        let arrival = sender::settle(&app, &mut params, arrival)?;
        Ok((params, choice.surfaces(&app, &arrival.caller)?, arrival))
    };
    let (params, surfaces, arrival) = match by_cost(sent.body.len(), read).await {
        Ok(settled) => settled,
        Err(error) => return refusal(error),
    };
    let checked = check::claim(&params).and_then(|claim| {
        check::headers(headers, &method, &params, &claim)?;
        check::revision(&claim)?;
        check::method(&method)?;
        let view = || {
            let session = app.lanes.next_session(&(arrival.caller.clone(), claim.abilities.clone()));
            app.gateway.view_of(session.as_deref().map_or_else(|| (&arrival.caller).into(), Viewer::from))
        };
        check::mirrored(view, headers, &method, &params)?;
        Ok(claim)
    });
    let claim = match checked {
        Ok(claim) => claim,
        Err(refusal) => return refusal.answer(&id).response(),
    };
    let surfaces = fitting(&app, surfaces, &claim);
    let request = Request { id, method, params, claim, surfaces, arrival };
    if let Some(as_it_came) = as_it_came
        && let Some(answer) = Box::pin(elsewhere(&app, &request, &as_it_came, sent)).await
    {
        return answer;
    }
    if &*request.method == "subscriptions/listen" {
        return listen::stream(&app, request).await;
    }
    let (sender, messages) = mpsc::channel(app.limits.outbox_messages.max(1));
    answer_or_stream(Box::pin(handle(app, request, sender)), messages, None).await
}

/// Returns the surfaces for the client of a request.
fn fitting(app: &App, surfaces: Surfaces, claim: &Claim) -> Surfaces {
    app.settings.load().fitting(surfaces, claim.client.as_ref().and_then(Raw::object).as_ref())
}

/// Returns another node's response if it holds the suspended call or the stored result that the request names.
async fn elsewhere(app: &App, request: &Request, arrival: &Arrival, sent: &Sent) -> Option<Response> {
    if let Some(state) = request.params.text("requestState") {
        let purpose =
            Purpose { caller: &request.arrival.caller, method: &request.method, params: &request.params };
        let Ok(Ticket::Parked { process, .. }) = app.parking.read(&state, purpose) else { return None };
        return match place::hand_on(app, &process, arrival, sent).await? {
            Ok(answer) => Some(answer),
            // The node is gone and its call is lost, so it is reported as unknown.
            Err(Missed::Unreached) => None,
            Err(missed) => Some(result::Refusal::of(&missed.error(), None).answer(&request.id).response()),
        };
    }
    let process = Gateway::process_of_result(&sent.body)?;
    // If the node is unreachable, the result is reported as missing.
    place::hand_on(app, process, arrival, sent).await?.ok()
}

/// Handles one request on a pipe, where there are no headers to compare.
pub(crate) async fn on_pipe(pipe: &Pipe, (id, method, params): (Id, Box<str>, Option<Raw>)) -> Bytes {
    let read = || {
        let mut params = params.as_ref().and_then(Raw::object).unwrap_or_default();
        sender::settle(&pipe.app, &mut params, pipe.arrival()).map(|arrival| (params, arrival))
    };
    let cost = params.as_ref().map_or(0, |params| params.bytes().len());
    let (params, arrival) = match by_cost(cost, read).await {
        Ok(read) => read,
        Err(error) => return encode::error(Some(&id), &error.rpc()),
    };
    let checked = check::claim(&params).and_then(|claim| {
        check::revision(&claim)?;
        check::method(&method)?;
        Ok(claim)
    });
    match checked {
        Ok(claim) => {
            let surfaces = fitting(&pipe.app, pipe.surfaces, &claim);
            let request = Request { id, method, params, claim, surfaces, arrival };
            if &*request.method == "subscriptions/listen" {
                return listen::on_pipe(pipe, request).await;
            }
            handle(Arc::clone(&pipe.app), request, pipe.out.clone()).await.body
        }
        Err(refusal) => refusal.answer(&id).body,
    }
}

/// Runs the request to its response; earlier messages go to `out`.
async fn handle(app: Arc<App>, mut request: Request, out: mpsc::Sender<Bytes>) -> Answer {
    let id = request.id.clone();
    let operation = begin(&app, &request);
    request.arrival.origin = operation.origin.clone();
    let outcome = scope::within(operation.origin.clone(), call::run(&app, request, out)).await;
    match &outcome {
        Ok(result) => operation.end_with(result),
        Err(refusal) => operation.close(Some(refusal.words())),
    }
    match outcome {
        Ok(result) => Answer::ok(encode::result(&id, &result)),
        Err(refusal) => refusal.answer(&id),
    }
}

fn begin<'a>(app: &'a App, request: &Request) -> Operation<'a> {
    // Most requests have no trace context and skip the parsing.
    let meta =
        request.params.get("_meta").filter(|meta| memmem::find(meta.bytes(), b"traceparent").is_some());
    let meta = meta.and_then(Raw::object);
    let asked = Asked {
        id: &request.id,
        method: &request.method,
        params: &request.params,
        meta: meta.as_ref(),
        revision: stateless::REVISION,
        session: None,
    };
    Operation::begin(app.gateway.meter(), request.arrival.clone(), asked)
}

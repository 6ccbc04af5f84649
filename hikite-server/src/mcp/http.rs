//! The Streamable HTTP transport, on one endpoint. A response is JSON, or an event stream if messages precede the
//! result.

use std::sync::{Arc, LazyLock};

use axum::body::Body;
use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hikite_core::caller::Caller;
use hikite_core::error::{Error, Kind};
use hikite_core::source::BoxFuture;
use hikite_gateway::aside::by_cost;
use hikite_gateway::{Surface, Surfaces};
use hikite_wire::encode;
use hikite_wire::handshake::Hello;
use hikite_wire::message::{BadMessage, Id, Message, split};
use hikite_wire::revision::Revision;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Uri};
use http_body_util::{BodyExt, Limited};
use memchr::memmem;
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::app::App;
use crate::arrival::Arrival;
use crate::challenge::Lacks;
use crate::health::only;
use crate::mcp::operation::{Asked, Operation};
use crate::mcp::place::{SESSION, find};
use crate::mcp::sender::Params;
use crate::mcp::session::Session;
use crate::mcp::{stateless, stream};
use crate::node::Sent;
use crate::refusal::refusal;

pub(crate) const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

/// The start of an "insufficient permission" response, as a JSON-RPC error and as a tool result. Searched for in the
/// first 256 bytes.
static REFUSED: LazyLock<[memmem::Finder<'_>; 2]> = LazyLock::new(|| {
    ["\"error\":{\"code\":-32003,", "\"text\":\"AUTHORIZATION_ERROR: this caller may not "]
        .map(memmem::Finder::new)
});
const HEAD: usize = 256;

#[derive(Debug, Deserialize)]
pub(crate) struct Choice {
    surface: Option<String>,
}

impl Choice {
    /// Returns the surfaces that the URL requests, as far as the caller's project has them; else those of the project,
    /// else those of the settings.
    pub(crate) fn surfaces(&self, app: &App, caller: &Caller) -> Result<Surfaces, Error> {
        let asked = self.surface.as_deref().map(Self::read).transpose()?;
        app.gateway.surfaces_for(caller, asked, app.settings.load().surfaces)
    }

    fn read(names: &str) -> Result<Surfaces, Error> {
        let parsed: Option<Vec<Surface>> = names.split(',').map(|name| Surface::parse(name.trim())).collect();
        parsed.map(Surfaces::of).ok_or_else(|| {
            let known = Surface::ALL.map(Surface::name).join(", ");
            Error::new(Kind::Validation, format!("`surface={names}` is not known"))
                .hint(format!("one or more of: {known}"))
        })
    }
}

pub(crate) async fn post(
    State(app): State<Arc<App>>,
    arrival: Arrival,
    Query(choice): Query<Choice>,
    request: Request,
) -> Response {
    let (http::request::Parts { method, uri, headers, .. }, body) = request.into_parts();
    if let Err(response) = check_headers(&headers) {
        return response;
    }
    let body = match read(&app, body).await {
        Ok(body) => body,
        Err(error) => return refusal(error),
    };
    let sent = Sent { method, uri, headers, body };
    if let Some(messages) = by_cost(sent.body.len(), || split(&sent.body)).await {
        if let Err(response) = check_revision(&sent.headers) {
            return response;
        }
        return Box::pin(batch(&app, &sent, messages, arrival)).await;
    }
    let (message, claims) = match by_cost(sent.body.len(), || stateless::decode(&sent.body)).await {
        Ok(message) => message,
        Err(bad) => return bad_message(&bad),
    };
    if claims || stateless::names_revision(&sent.headers) {
        return Box::pin(stateless::post(app, (&choice, arrival), &sent, message)).await;
    }
    with_session(&app, arrival, &choice, &sent, message).await.unwrap_or_else(|refused| refused)
}

/// Handles a message of the revisions that have sessions.
async fn with_session(
    app: &Arc<App>,
    arrival: Arrival,
    choice: &Choice,
    sent: &Sent,
    message: Message,
) -> Result<Response, Response> {
    check_revision(&sent.headers)?;
    if let Message::Request { id, method, params } = &message
        && &**method == "initialize"
    {
        // A session belongs to the project in the URL; a project in `_meta` applies to one message only.
        let read = || {
            Params::read(app, params.as_ref(), arrival.clone())?;
            Ok(Hello::read(params.as_ref()))
        };
        let hello = by_cost(sent.body.len(), read).await.map_err(refusal)?;
        return Ok(Box::pin(initialize(app, arrival, choice, id, hello)).await);
    }
    let session = find(app, &arrival, sent).await?;
    Ok(match message {
        Message::Request { id, method, params } => {
            let read = || Params::read(app, params.as_ref(), arrival);
            let (params, arrival) = by_cost(sent.body.len(), read).await.map_err(refusal)?;
            let (sender, messages) = mpsc::channel(app.limits.outbox_messages.max(1));
            let answer = Box::pin(Arc::clone(&session).handle(id, method, params, Some(sender), arrival));
            let resumes = Some(session).filter(|session| session.resumes());
            answer_or_stream(answer, messages, resumes).await
        }
        Message::Notification { method, params } => {
            let read = || Params::read(app, params.as_ref(), arrival);
            by_cost(sent.body.len(), read).await.map_err(refusal)?;
            session.touch();
            session.notified(&method, params.as_ref());
            StatusCode::ACCEPTED.into_response()
        }
        Message::Response { id, body } => {
            session.touch();
            session.answered(&id, body);
            StatusCode::ACCEPTED.into_response()
        }
    })
}

/// Handles the first request of a session.
async fn initialize(
    app: &Arc<App>,
    arrival: Arrival,
    choice: &Choice,
    id: &Id,
    hello: Option<Hello>,
) -> Response {
    let revision = hello.as_ref().map_or("", |hello| hello.revision.name());
    let caller = arrival.caller.clone();
    let asked = Asked::initialize(id, revision);
    let operation = Operation::begin(app.gateway.meter(), arrival, asked);
    let hello = match Hello::checked(hello) {
        Ok(hello) => hello,
        Err(why) => {
            operation.close(Some((Kind::Validation.face().code, -32602)));
            return json(StatusCode::OK, encode::error(Some(id), &encode::error_object(-32602, why)));
        }
    };
    app.gateway.settle(&caller).await;
    match open(app, caller, choice, hello) {
        Ok((session, name)) => {
            operation.close(None);
            let mut response = json(StatusCode::OK, encode::result(id, &session.welcome()));
            if let Ok(name) = HeaderValue::from_str(&name) {
                response.headers_mut().insert(SESSION, name);
            }
            response
        }
        Err(error) => {
            operation.close(Some((error.code(), error.kind.face().rpc.into())));
            refusal(error)
        }
    }
}

/// Opens the session's stream for messages outside of requests.
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    arrival: Arrival,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> Response {
    if stateless::names_revision(&headers) {
        return only("POST");
    }
    if !accepts(&headers, "text/event-stream") {
        return problem(StatusCode::NOT_ACCEPTABLE, "the client must accept text/event-stream");
    }
    let sent = Sent { method, uri, headers, body: Bytes::new() };
    let session = match find(&app, &arrival, &sent).await {
        Ok(session) => session,
        Err(response) => return response,
    };
    session.touch();
    match sent.headers.get(LAST_EVENT) {
        None => session.own_stream(None),
        Some(event) => event.to_str().ok().and_then(|event| session.take_up(event)).unwrap_or_else(|| {
            problem(StatusCode::BAD_REQUEST, "there is no stream with this event, or no longer")
        }),
    }
}

/// Handles HEAD, which must not open a stream.
pub(crate) async fn head() -> Response {
    only("GET, POST, DELETE")
}

/// Ends the session.
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    arrival: Arrival,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> Response {
    if stateless::names_revision(&headers) {
        return only("POST");
    }
    let sent = Sent { method, uri, headers, body: Bytes::new() };
    let session = match find(&app, &arrival, &sent).await {
        Ok(session) => session,
        Err(response) => return response,
    };
    let id = sent.headers.get(SESSION).and_then(|id| id.to_str().ok()).unwrap_or_default();
    let removed = app.sessions.remove(id, &arrival.caller);
    session.end();
    // Without this, another node could reopen the session from its id.
    if let Some((entry, neighbours)) = removed.zip(app.neighbours())
        && let Err(error) = neighbours.nodes.end(&entry.number).await
    {
        return refusal(error);
    }
    StatusCode::NO_CONTENT.into_response()
}

/// The response to a request, with the status to use if it is not part of a stream.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) body: Bytes,
}

impl Answer {
    pub(crate) fn ok(body: Bytes) -> Self {
        Self { status: StatusCode::OK, body }
    }

    pub(crate) fn response(self) -> Response {
        let head = &self.body[..self.body.len().min(HEAD)];
        let is_refused = REFUSED.iter().any(|words| words.find(head).is_some());
        let mut response = json(self.status, self.body);
        if is_refused {
            response.extensions_mut().insert(Lacks(None));
        }
        response
    }
}

impl From<Bytes> for Answer {
    fn from(body: Bytes) -> Self {
        Self::ok(body)
    }
}

/// Responds with JSON if the result comes first, else with a stream; a resumable one, if `resumes` is set.
pub(crate) async fn answer_or_stream<A: Into<Answer> + Send + 'static>(
    mut answer: BoxFuture<'static, A>,
    mut messages: mpsc::Receiver<Bytes>,
    resumes: Option<Arc<Session>>,
) -> Response {
    let (first, answer): (Bytes, BoxFuture<'static, Bytes>) = tokio::select! {
        biased;
        Some(first) = messages.recv() => (first, Box::pin(async move { answer.await.into().body })),
        answer = &mut answer => match messages.try_recv() {
            Ok(first) => (first, Box::pin(async move { answer.into().body })),
            Err(_) => return answer.into().response(),
        },
    };
    match resumes {
        Some(session) => session.stream_of(first, messages, answer),
        None => stream::of_request(first, messages, answer),
    }
}

/// Handles a JSON-RPC batch, which only one revision has.
async fn batch(app: &Arc<App>, sent: &Sent, messages: Vec<Bytes>, arrival: Arrival) -> Response {
    let session = match find(app, &arrival, sent).await {
        Ok(session) => session,
        Err(response) => return response,
    };
    if !session.revision.has_batches() || messages.is_empty() {
        let reason = "several messages in one body are not part of the negotiated revision";
        return bad_message(&BadMessage::Shape { reason, id: None });
    }
    let answers = match session.handle_batch(messages, arrival).await {
        Ok(answers) => answers,
        Err(error) => return refusal(error),
    };
    if answers.is_empty() {
        StatusCode::ACCEPTED.into_response()
    } else {
        json(StatusCode::OK, encode::batch(&answers))
    }
}

fn open(
    app: &Arc<App>,
    caller: Caller,
    choice: &Choice,
    hello: Hello,
) -> Result<(Arc<Session>, String), Error> {
    let surfaces = choice.surfaces(app, &caller)?;
    let session = Session::open(app, caller, surfaces, hello);
    let home = app.neighbours().map(|neighbours| neighbours.nodes.id());
    let name = app.sessions.insert(Arc::clone(&session), home)?;
    Ok((session, name))
}

fn check_headers(headers: &HeaderMap) -> Result<(), Response> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "the body must be application/json"));
    }
    // Fast path: nearly all clients send exactly this value.
    let plainly = headers.get(ACCEPT).is_some_and(|value| value == "application/json, text/event-stream");
    let both = plainly || accepts(headers, "application/json") && accepts(headers, "text/event-stream");
    if !both {
        return Err(problem(
            StatusCode::NOT_ACCEPTABLE,
            "the client must accept both application/json and text/event-stream",
        ));
    }
    Ok(())
}

/// Checks the `MCP-Protocol-Version` header of the revisions with sessions, if present.
fn check_revision(headers: &HeaderMap) -> Result<(), Response> {
    match headers.get(REVISION).map(|revision| revision.to_str().ok().and_then(Revision::parse)) {
        Some(None) => {
            Err(problem(StatusCode::BAD_REQUEST, "the `MCP-Protocol-Version` header names no known revision"))
        }
        _ => Ok(()),
    }
}

fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let family = kind.split('/').next().unwrap_or_default();
    let mut values =
        headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(','));
    values.any(|value| {
        let value = value.split(';').next().unwrap_or_default().trim();
        value.eq_ignore_ascii_case(kind) || value == "*/*" || value.strip_suffix("/*") == Some(family)
    })
}

pub(crate) async fn read(app: &App, body: Body) -> Result<Bytes, Error> {
    let limit = app.limits.body_bytes;
    let too_large = || {
        Error::new(Kind::PayloadTooLarge, format!("the body is larger than {limit} bytes"))
            .hint("send less, or raise `limits.body_bytes`")
    };
    // A declared length over the limit is refused without reading the body.
    if usize::try_from(http_body::Body::size_hint(&body).lower()).is_ok_and(|announced| announced > limit) {
        return Err(too_large());
    }
    let reading = Limited::new(body, limit).collect();
    match tokio::time::timeout(app.limits.body_timeout, reading).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<http_body_util::LengthLimitError>() => Err(too_large()),
        Ok(Err(_)) => Err(Error::new(Kind::Validation, "the body could not be read")),
        Err(_) => Err(Error::new(Kind::Timeout, "the body did not come in time")),
    }
}

pub(crate) fn bad_message(bad: &BadMessage) -> Response {
    let error = encode::error_object(bad.code(), &bad.to_string());
    json(StatusCode::BAD_REQUEST, encode::error(bad.id(), &error))
}

/// Builds a transport error in the form that JSON-RPC clients read.
pub(crate) fn problem(status: StatusCode, reason: &str) -> Response {
    json(status, encode::error(None, &encode::error_object(-32600, reason)))
}

fn json(status: StatusCode, body: Bytes) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

//! The Streamable HTTP transport, on one endpoint. A response is JSON, or an event stream if messages precede the
//! result.

use std::sync::Arc;

use axum::extract::{Query, Request, State};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hikite_core::caller::Caller;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::source::BoxFuture;
use hikite_gateway::off_worker::off_worker;
use hikite_gateway::{Surface, Surfaces};
use hikite_wire::encode;
use hikite_wire::handshake::InitializeRequest;
use hikite_wire::message::{InvalidMessage, Message, MessageId, split};
use hikite_wire::revision::Revision;
use http::header::{ACCEPT, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use http::{Method, StatusCode, Uri};
use serde::Deserialize;
use tokio::sync::mpsc;

use crate::app::App;
use crate::error_response::error_response;
use crate::health::only;
use crate::mcp::body::read;
use crate::mcp::locate::{SESSION, find};
use crate::mcp::operation::{McpOperation, RequestInfo};
use crate::mcp::rpc_response::{RpcResponse, json, problem};
use crate::mcp::sender::MessageParams;
use crate::mcp::session::ClientSession;
use crate::mcp::{stateless, stream};
use crate::node::ForwardedRequest;
use crate::request_context::RequestContext;

pub(crate) const REVISION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT: HeaderName = HeaderName::from_static("last-event-id");

#[derive(Debug, Deserialize)]
pub(crate) struct SurfaceQuery {
    surface: Option<String>,
}

impl SurfaceQuery {
    /// Returns the surfaces that the URL requests, as far as the caller's project has them; else those of the project,
    /// else those of the settings.
    pub(crate) fn surfaces(&self, app: &App, caller: &Caller) -> Result<Surfaces, Error> {
        let asked = self.surface.as_deref().map(Self::read).transpose()?;
        app.gateway.catalogs().surfaces_for(caller, asked, app.settings.load().surfaces)
    }

    fn read(names: &str) -> Result<Surfaces, Error> {
        let parsed: Option<Vec<Surface>> = names.split(',').map(|name| Surface::parse(name.trim())).collect();
        parsed.map(Surfaces::of).ok_or_else(|| {
            let known = Surface::ALL.map(Surface::name).join(", ");
            Error::new(ErrorKind::Validation, format!("Unknown surface in `surface={names}`."))
                .hint(format!("Use one or more of: {known}."))
        })
    }
}

pub(crate) async fn post(
    State(app): State<Arc<App>>,
    request_context: RequestContext,
    Query(choice): Query<SurfaceQuery>,
    request: Request,
) -> Response {
    let (http::request::Parts { method, uri, headers, .. }, body) = request.into_parts();
    if let Err(response) = check_headers(&headers) {
        return response;
    }
    let body = match read(&app, body).await {
        Ok(body) => body,
        Err(error) => return error_response(error),
    };
    let sent = ForwardedRequest { method, uri, headers, body };
    if let Some(messages) = off_worker(sent.body.len(), || split(&sent.body)).await {
        if let Err(response) = check_revision(&sent.headers) {
            return response;
        }
        return Box::pin(batch(&app, &sent, messages, request_context)).await;
    }
    let (message, claims) = match off_worker(sent.body.len(), || stateless::decode(&sent.body)).await {
        Ok(message) => message,
        Err(bad) => return bad_message(&bad),
    };
    if claims || stateless::has_revision_header(&sent.headers) {
        return Box::pin(stateless::post(app, (&choice, request_context), &sent, message)).await;
    }
    with_session(&app, request_context, &choice, &sent, message).await.unwrap_or_else(|refused| refused)
}

/// Handles a message of the revisions that have sessions.
async fn with_session(
    app: &Arc<App>,
    request_context: RequestContext,
    choice: &SurfaceQuery,
    sent: &ForwardedRequest,
    message: Message,
) -> Result<Response, Response> {
    check_revision(&sent.headers)?;
    if let Message::Request { id, method, params } = &message
        && &**method == "initialize"
    {
        // A session belongs to the project in the URL; a project in `_meta` applies to one message only.
        let read = || {
            MessageParams::read(app, params.as_ref(), request_context.clone())?;
            Ok(InitializeRequest::read(params.as_ref()))
        };
        let hello = off_worker(sent.body.len(), read).await.map_err(error_response)?;
        return Ok(Box::pin(initialize(app, request_context, choice, id, hello)).await);
    }
    let session = find(app, &request_context, sent).await?;
    Ok(match message {
        Message::Request { id, method, params } => {
            let read = || MessageParams::read(app, params.as_ref(), request_context);
            let (params, request_context) = off_worker(sent.body.len(), read).await.map_err(error_response)?;
            let (sender, messages) = mpsc::channel(app.limits.outbox_messages.max(1));
            let answer = Box::pin(Arc::clone(&session).handle(id, method, params, Some(sender), request_context));
            let resumes = Some(session).filter(|session| session.resumes());
            answer_or_stream(answer, messages, resumes).await
        }
        Message::Notification { method, params } => {
            let read = || MessageParams::read(app, params.as_ref(), request_context);
            off_worker(sent.body.len(), read).await.map_err(error_response)?;
            session.touch();
            session.handle_notification(&method, params.as_ref());
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
    request_context: RequestContext,
    choice: &SurfaceQuery,
    id: &MessageId,
    hello: Option<InitializeRequest>,
) -> Response {
    let revision = hello.as_ref().map_or("", |hello| hello.revision.name());
    let caller = request_context.caller.clone();
    let asked = RequestInfo::initialize(id, revision);
    let operation = McpOperation::begin(app.gateway.meter(), request_context, asked);
    let hello = match InitializeRequest::checked(hello) {
        Ok(hello) => hello,
        Err(why) => {
            operation.close(Some((ErrorKind::Validation.definition().code, -32602)));
            return json(StatusCode::OK, encode::error(Some(id), &encode::error_object(-32602, why)));
        }
    };
    app.gateway.lookup().wait_for_listings(&caller).await;
    match open(app, caller, choice, hello) {
        Ok((session, name)) => {
            operation.close(None);
            let mut response = json(StatusCode::OK, encode::result(id, &session.initialize_result()));
            if let Ok(name) = HeaderValue::from_str(&name) {
                response.headers_mut().insert(SESSION, name);
            }
            response
        }
        Err(error) => {
            operation.close(Some((error.code(), error.kind.definition().rpc.into())));
            error_response(error)
        }
    }
}

/// Opens the session's stream for messages outside of requests.
pub(crate) async fn get(
    State(app): State<Arc<App>>,
    request_context: RequestContext,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> Response {
    if stateless::has_revision_header(&headers) {
        return only("POST");
    }
    if !accepts(&headers, "text/event-stream") {
        return problem(StatusCode::NOT_ACCEPTABLE, "The client must accept text/event-stream.");
    }
    let sent = ForwardedRequest { method, uri, headers, body: Bytes::new() };
    let session = match find(&app, &request_context, &sent).await {
        Ok(session) => session,
        Err(response) => return response,
    };
    session.touch();
    match sent.headers.get(LAST_EVENT) {
        None => session.own_stream(None),
        Some(event) => event.to_str().ok().and_then(|event| session.resume_stream(event)).unwrap_or_else(|| {
            problem(StatusCode::BAD_REQUEST, "There is no stream with this event, or it has expired.")
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
    request_context: RequestContext,
    (method, uri, headers): (Method, Uri, HeaderMap),
) -> Response {
    if stateless::has_revision_header(&headers) {
        return only("POST");
    }
    let sent = ForwardedRequest { method, uri, headers, body: Bytes::new() };
    let session = match find(&app, &request_context, &sent).await {
        Ok(session) => session,
        Err(response) => return response,
    };
    let id = sent.headers.get(SESSION).and_then(|id| id.to_str().ok()).unwrap_or_default();
    let removed = app.sessions.remove(id, &request_context.caller);
    session.end();
    // Without this, another node could reopen the session from its id.
    if let Some((entry, peers)) = removed.zip(app.peers())
        && let Err(error) = peers.nodes.end(&entry.number).await
    {
        return error_response(error);
    }
    StatusCode::NO_CONTENT.into_response()
}

/// Responds with JSON if the result comes first, else with a stream; a resumable one, if `resumes` is set.
pub(crate) async fn answer_or_stream(
    mut answer: BoxFuture<'static, RpcResponse>,
    mut messages: mpsc::Receiver<Bytes>,
    resumes: Option<Arc<ClientSession>>,
) -> Response {
    let (first, answer): (Bytes, BoxFuture<'static, Bytes>) = tokio::select! {
        biased;
        Some(first) = messages.recv() => (first, Box::pin(async move { answer.await.body })),
        answer = &mut answer => match messages.try_recv() {
            Ok(first) => (first, Box::pin(async move { answer.body })),
            Err(_) => return answer.response(),
        },
    };
    match resumes {
        Some(session) => session.stream_of(first, messages, answer),
        None => stream::of_request(first, messages, answer),
    }
}

/// Handles a JSON-RPC batch, which only one revision has.
async fn batch(
    app: &Arc<App>,
    sent: &ForwardedRequest,
    messages: Vec<Bytes>,
    request_context: RequestContext,
) -> Response {
    let session = match find(app, &request_context, sent).await {
        Ok(session) => session,
        Err(response) => return response,
    };
    if !session.revision.has_batches() || messages.is_empty() {
        let reason = "the negotiated revision does not allow several messages in one body";
        return bad_message(&InvalidMessage::Shape { reason, id: None });
    }
    let answers = match session.handle_batch(messages, request_context).await {
        Ok(answers) => answers,
        Err(error) => return error_response(error),
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
    choice: &SurfaceQuery,
    hello: InitializeRequest,
) -> Result<(Arc<ClientSession>, String), Error> {
    let surfaces = choice.surfaces(app, &caller)?;
    let session = ClientSession::open(app, caller, surfaces, hello);
    let home = app.peers().map(|peers| peers.nodes.id());
    let name = app.sessions.insert(Arc::clone(&session), home)?;
    Ok((session, name))
}

fn check_headers(headers: &HeaderMap) -> Result<(), Response> {
    let kind = headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim();
    if !kind.eq_ignore_ascii_case("application/json") {
        return Err(problem(StatusCode::UNSUPPORTED_MEDIA_TYPE, "The body must be application/json."));
    }
    // Fast path: nearly all clients send exactly this value.
    let plainly = headers.get(ACCEPT).is_some_and(|value| value == "application/json, text/event-stream");
    let both = plainly || accepts(headers, "application/json") && accepts(headers, "text/event-stream");
    if !both {
        return Err(problem(
            StatusCode::NOT_ACCEPTABLE,
            "The client must accept both application/json and text/event-stream.",
        ));
    }
    Ok(())
}

/// Checks the `MCP-Protocol-Version` header of the revisions with sessions, if present.
fn check_revision(headers: &HeaderMap) -> Result<(), Response> {
    match headers.get(REVISION).map(|revision| revision.to_str().ok().and_then(Revision::parse)) {
        Some(None) => {
            Err(problem(StatusCode::BAD_REQUEST, "The `MCP-Protocol-Version` header has an unknown revision."))
        }
        _ => Ok(()),
    }
}

fn accepts(headers: &HeaderMap, kind: &str) -> bool {
    let family = kind.split('/').next().unwrap_or_default();
    let mut values = headers.get_all(ACCEPT).iter().filter_map(|value| value.to_str().ok()).flat_map(|v| v.split(','));
    values.any(|value| {
        let value = value.split(';').next().unwrap_or_default().trim();
        value.eq_ignore_ascii_case(kind) || value == "*/*" || value.strip_suffix("/*") == Some(family)
    })
}

pub(crate) fn bad_message(bad: &InvalidMessage) -> Response {
    let error = encode::error_object(bad.code(), &bad.to_string());
    json(StatusCode::BAD_REQUEST, encode::error(bad.id(), &error))
}

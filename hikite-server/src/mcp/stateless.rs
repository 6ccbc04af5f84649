//! Clients of revision 2026-07-28: stateless requests without sessions. Runs the checks of that revision in order, then
//! uses the same gateway as all other clients.

mod backchannel;
mod call;
mod check;
mod listen;
mod result;
mod session;

use std::sync::Arc;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use hikite_core::json::{Object, Raw};
use hikite_gateway::off_worker::off_worker;
use hikite_gateway::{ContinuationToken, Surfaces, TokenBinding, Viewer, scope};
use hikite_wire::encode;
use hikite_wire::message::{InvalidMessage, Message, MessageId};
use hikite_wire::stateless::{self, RequestClaim};
use http::StatusCode;
use memchr::memmem;
use tokio::sync::mpsc;

use crate::app::App;
use crate::error_response::error_response;
use crate::mcp::http::{SurfaceQuery, answer_or_stream};
use crate::mcp::locate;
use crate::mcp::operation::{McpOperation, RequestInfo};
use crate::mcp::pipe::DuplexClient;
use crate::mcp::rpc_response::RpcResponse;
use crate::mcp::sender;
use crate::node::{ForwardError, ForwardedRequest};
use crate::request_context::RequestContext;
pub(crate) use backchannel::StatelessBackchannel;
pub(crate) use check::has_revision_header;
pub(crate) use session::StatelessSessions;

/// A request that passed the checks of form.
#[derive(Debug)]
pub(crate) struct StatelessRequest {
    pub(crate) id: MessageId,
    pub(crate) method: Box<str>,
    pub(crate) params: Object,
    pub(crate) claim: RequestClaim,
    pub(crate) surfaces: Surfaces,
    pub(crate) request_context: RequestContext,
}

/// Decodes a message, and reports whether it declares this revision itself.
pub(crate) fn decode(body: &Bytes) -> Result<(Message, bool), InvalidMessage> {
    let message = Message::decode(body)?;
    let claims = claims(body, &message);
    Ok((message, claims))
}

fn claims(body: &[u8], message: &Message) -> bool {
    let (Message::Request { params, .. } | Message::Notification { params, .. }) = message else {
        return false;
    };
    let params = || params.as_ref().and_then(Raw::object);
    stateless::may_be_stateless(body) && params().is_some_and(|params| stateless::claims(&params))
}

/// Handles one POST.
pub(crate) async fn post(
    app: Arc<App>,
    (choice, request_context): (&SurfaceQuery, RequestContext),
    sent: &ForwardedRequest,
    message: Message,
) -> Response {
    let headers = &sent.headers;
    let Message::Request { id, method, params } = message else {
        // Over HTTP a client cancels by closing the connection; other notifications have no effect.
        return StatusCode::ACCEPTED.into_response();
    };
    let alone = app.peers().is_none();
    let original_context = (!alone).then(|| request_context.clone());
    let read = || {
        let mut params = params.as_ref().and_then(Raw::object).unwrap_or_default();
        let request_context = sender::settle(&app, &mut params, request_context)?;
        Ok((params, choice.surfaces(&app, &request_context.caller)?, request_context))
    };
    let (params, surfaces, request_context) = match off_worker(sent.body.len(), read).await {
        Ok(settled) => settled,
        Err(error) => return error_response(error),
    };
    let checked = check::claim(&params).and_then(|claim| {
        check::headers(headers, &method, &params, &claim)?;
        check::revision(&claim)?;
        check::method(&method)?;
        let view = || {
            let session = app
                .stateless_sessions
                .next_session(&(request_context.caller.clone(), claim.client_capabilities.clone()));
            app.gateway
                .catalogs()
                .view_of(session.as_deref().map_or_else(|| (&request_context.caller).into(), Viewer::from))
        };
        check::mirrored_headers(view, headers, &method, &params)?;
        Ok(claim)
    });
    let claim = match checked {
        Ok(claim) => claim,
        Err(error_response) => return error_response.answer(&id).response(),
    };
    let surfaces = surfaces_for(&app, surfaces, &claim);
    let request = StatelessRequest { id, method, params, claim, surfaces, request_context };
    if let Some(original_context) = original_context
        && let Some(answer) = Box::pin(forward_to_owner(&app, &request, &original_context, sent)).await
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
fn surfaces_for(app: &App, surfaces: Surfaces, claim: &RequestClaim) -> Surfaces {
    app.settings.load().surfaces_for(surfaces, claim.client.as_ref().and_then(Raw::object).as_ref())
}

/// Returns another node's response if it holds the suspended call or the stored result that the request names.
async fn forward_to_owner(
    app: &App,
    request: &StatelessRequest,
    request_context: &RequestContext,
    sent: &ForwardedRequest,
) -> Option<Response> {
    if let Some(state) = request.params.text("requestState") {
        let purpose =
            TokenBinding { caller: &request.request_context.caller, method: &request.method, params: &request.params };
        let Ok(ContinuationToken::SuspendedCall { process, .. }) = app.suspended_calls.read(&state, purpose) else {
            return None;
        };
        return match locate::forward(app, &process, request_context, sent).await? {
            Ok(answer) => Some(answer),
            // The node is gone and its call is lost, so it is reported as unknown.
            Err(ForwardError::Unreachable) => None,
            Err(missed) => Some(result::StatelessError::of(&missed.error(), None).answer(&request.id).response()),
        };
    }
    let process = hikite_gateway::process_of_result(&sent.body)?;
    // If the node is unreachable, the result is reported as missing.
    locate::forward(app, process, request_context, sent).await?.ok()
}

/// Handles one request on a pipe, where there are no headers to compare.
pub(crate) async fn on_pipe(pipe: &DuplexClient, (id, method, params): (MessageId, Box<str>, Option<Raw>)) -> Bytes {
    let read = || {
        let mut params = params.as_ref().and_then(Raw::object).unwrap_or_default();
        sender::settle(&pipe.app, &mut params, pipe.request_context()).map(|request_context| (params, request_context))
    };
    let cost = params.as_ref().map_or(0, |params| params.bytes().len());
    let (params, request_context) = match off_worker(cost, read).await {
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
            let surfaces = surfaces_for(&pipe.app, pipe.surfaces, &claim);
            let request = StatelessRequest { id, method, params, claim, surfaces, request_context };
            if &*request.method == "subscriptions/listen" {
                return listen::on_pipe(pipe, request).await;
            }
            handle(Arc::clone(&pipe.app), request, pipe.out.clone()).await.body
        }
        Err(error_response) => error_response.answer(&id).body,
    }
}

/// Runs the request to its response; earlier messages go to `out`.
async fn handle(app: Arc<App>, mut request: StatelessRequest, out: mpsc::Sender<Bytes>) -> RpcResponse {
    let id = request.id.clone();
    let operation = begin(&app, &request);
    request.request_context.origin = operation.origin.clone();
    let outcome = scope::within(operation.origin.clone(), call::run(&app, request, out)).await;
    match &outcome {
        Ok(result) => operation.end_with(&result.raw),
        Err(error_response) => operation.close(Some(error_response.codes())),
    }
    match outcome {
        Ok(result) => RpcResponse::of_result(&id, &result),
        Err(error_response) => error_response.answer(&id),
    }
}

fn begin<'a>(app: &'a App, request: &StatelessRequest) -> McpOperation<'a> {
    // Most requests have no trace context and skip the parsing.
    let meta = request.params.get("_meta").filter(|meta| memmem::find(meta.bytes(), b"traceparent").is_some());
    let meta = meta.and_then(Raw::object);
    let asked = RequestInfo {
        id: &request.id,
        method: &request.method,
        params: &request.params,
        meta: meta.as_ref(),
        revision: stateless::REVISION,
        session: None,
    };
    McpOperation::begin(app.gateway.meter(), request.request_context.clone(), asked)
}

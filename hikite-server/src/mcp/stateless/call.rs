//! Runs one stateless request through the gateway: lists, discovery, and calls that may be suspended until the client's
//! next request.

use std::sync::Arc;

use bytes::Bytes;
use hikite_core::caller::{Caller, ClientCapabilities, Session};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::listing::ListKind;
use hikite_core::source::{CallContext, CallOrigin};
use hikite_gateway::{
    CallResult, CallStep, ContinuationToken, ListPage, RunningCall, Surfaces, TokenBinding, Viewer, scope,
};
use hikite_wire::stateless::{META_CAPABILITIES, META_CLIENT, META_LEVEL, META_REVISION, ResultType, TASKS};
use tokio::sync::mpsc;

use super::StatelessRequest;
use super::backchannel::StatelessBackchannel;
use super::check::supported;
use super::result::{StatelessError, cacheable, complete};
use super::session::StatelessSessions;
use crate::app::App;
use crate::mcp::{capability, method};

/// "URL elicitation required" of 2025-11-25.
const URL_REQUIRED: i32 = -32042;

pub(crate) async fn run(
    app: &Arc<App>,
    mut request: StatelessRequest,
    out: mpsc::Sender<Bytes>,
) -> Result<CallResult, StatelessError> {
    let method = &*request.method;
    if let Some(kind) = ListKind::ALL.into_iter().find(|kind| kind.method() == method) {
        let page = ListPage { cursor: request.params.text("cursor") };
        let session = request.next_session(app);
        let viewer = session.as_deref().map_or_else(|| (&request.request_context.caller).into(), Viewer::from);
        let list = app.gateway.discovery().list(viewer, request.surfaces, kind, page).await;
        return match list {
            Ok(list) => Ok(cacheable(&list, true).into()),
            Err(error) => Err(StatelessError::of(&error, None)),
        };
    }
    if method == "server/discover" {
        app.gateway.lookup().wait_for_listings(&request.request_context.caller).await;
        return Ok(discover(app, &request.request_context.caller, request.surfaces).into());
    }
    if method.starts_with("tasks/") && !request.claim.client_capabilities.has_extension(TASKS) {
        let extensions = Object::default().with(TASKS, Raw::empty_object());
        return Err(StatelessError::missing_capability(&Object::default().with("extensions", extensions)));
    }
    remove_claim(&mut request.params);
    let is_read = method == "resources/read";
    let result = call(app, request, out).await?;
    Ok(result.map(|raw| if is_read && !is_input_required(&raw) { cacheable(&raw, false) } else { complete(raw) }))
}

fn discover(app: &App, caller: &Caller, surfaces: Surfaces) -> Raw {
    let view = app.gateway.catalogs().view_of(caller);
    let mut result = Object::default()
        .with("supportedVersions", Raw::of(&supported()))
        .with("capabilities", capability::stateless(&view));
    if let Some(instructions) = app.gateway.discovery().instructions(caller, surfaces) {
        result.set("instructions", instructions.as_str());
    }
    cacheable(&result.raw(), true)
}

impl StatelessRequest {
    /// Returns the session that the next call of this client would use.
    fn next_session(&self, app: &App) -> Option<Arc<Session>> {
        app.stateless_sessions
            .next_session(&(self.request_context.caller.clone(), self.claim.client_capabilities.clone()))
    }
}

/// Removes the client's own protocol claims from `_meta`; an upstream gets those of hikite.
fn remove_claim(params: &mut Object) {
    let Some(mut meta) = params.get("_meta").and_then(Raw::object) else { return };
    for name in [META_REVISION, META_CAPABILITIES, META_CLIENT, META_LEVEL] {
        meta.remove(name);
    }
    if meta.is_empty() {
        params.remove("_meta");
    } else {
        params.set("_meta", meta);
    }
}

async fn call(
    app: &Arc<App>,
    mut request: StatelessRequest,
    out: mpsc::Sender<Bytes>,
) -> Result<CallResult, StatelessError> {
    let uri = request.params.text("uri");
    let refuse = |error: &Error| StatelessError::of(error, uri.as_deref());
    let state = request.params.remove("requestState").and_then(|state| state.text());
    let responses = request.params.get("inputResponses").cloned();
    let purpose =
        TokenBinding { caller: &request.request_context.caller, method: &request.method, params: &request.params };
    let continuation = state.map(|state| app.suspended_calls.read(&state, purpose)).transpose();
    let mut running = match continuation.map_err(|error| refuse(&error))? {
        Some(ContinuationToken::SuspendedCall { process, id }) => {
            let running = app.suspended_calls.resume(&process, id).map_err(|error| refuse(&error))?;
            running.back.attach(&request.claim, out);
            running
        }
        Some(ContinuationToken::Server(state)) => {
            let params = request.params.clone().with("requestState", state.as_str());
            begin(app, &request, params, out).map_err(|error| refuse(&error))?
        }
        None => begin(app, &request, request.params.clone(), out).map_err(|error| refuse(&error))?,
    };
    running.answer(responses.as_ref());
    let back = Arc::clone(&running.back);
    match app.suspended_calls.drive(running, purpose).await {
        CallStep::SuspendedCall(body) => Ok(body.raw().into()),
        CallStep::Done(outcome) => {
            let failed = outcome.as_ref().map_or(true, |result| is_error(&result.raw));
            if let Some(kind) = back.missing_capability().filter(|_| failed) {
                return Err(StatelessError::cannot_ask(kind));
            }
            match outcome {
                Ok(result) => Ok(result.map(|raw| with_continuation_token(app, raw, purpose))),
                Err(error) if code_of(&error) == Some(URL_REQUIRED) => {
                    let opens = supports_url_elicitation(&request.claim.client_capabilities);
                    let asked = url_elicitations(&error).filter(|_| opens);
                    asked.map(CallResult::from).ok_or_else(missing_url_elicitation)
                }
                Err(error) => Err(refuse(&error)),
            }
        }
    }
}

/// Starts the call on a pooled session.
fn begin(
    app: &Arc<App>,
    request: &StatelessRequest,
    params: Object,
    out: mpsc::Sender<Bytes>,
) -> Result<RunningCall<Arc<StatelessBackchannel>>, Error> {
    let (back, questions) = StatelessBackchannel::new(&request.claim, out);
    let back = Arc::new(back);
    let mut lease = StatelessSessions::lease(
        app,
        (request.request_context.caller.clone(), request.claim.client_capabilities.clone()),
        request.surfaces,
    )?;
    let level = request.claim.level.filter(|level| lease.changes_level(Some(*level)));
    let (app, name) = (Arc::clone(app), request.method.clone());
    let (surfaces, call_backchannel) = (request.surfaces, Arc::clone(&back));
    let origin = CallOrigin { client: request.claim.client.clone(), ..request.request_context.origin.clone() };
    let within = origin.clone();
    let outcome = async move {
        let context = CallContext {
            session: Arc::clone(&lease.session),
            back: call_backchannel,
            origin,
            accepts_input_required: true,
            account: None,
        };
        if let Some(level) = level {
            app.gateway.sessions().set_level(Object::default().with("level", level.name()), &context).await;
        }
        let outcome = method::dispatch(&app.gateway, surfaces, &name, params, context).await;
        if outcome.as_ref().is_ok_and(|result| is_of_type(&result.raw, ResultType::Task)) {
            lease.has_task();
        }
        // After a timeout the server may still be running the call.
        if outcome.as_ref().map_or_else(|error| error.kind != ErrorKind::Timeout, |_| true) {
            lease.answered();
        }
        drop(lease);
        outcome
    };
    // The call may continue in a later request, but belongs to the trace of this one.
    Ok(RunningCall::new(back, Box::pin(scope::within(within, outcome)), questions))
}

/// Wraps the `requestState` of a server that returns `input_required` itself into a continuation token.
fn with_continuation_token(app: &App, result: Raw, purpose: TokenBinding<'_>) -> Raw {
    if !is_input_required(&result) {
        return result;
    }
    let Some(body) = result.object() else { return result };
    match body.text("requestState") {
        Some(state) => body.with("requestState", app.suspended_calls.continuation(state, purpose).as_str()).raw(),
        None => result,
    }
}

fn is_input_required(result: &Raw) -> bool {
    is_of_type(result, ResultType::InputRequired)
}

fn is_of_type(result: &Raw, kind: ResultType) -> bool {
    // A substring search avoids parsing all other results.
    memchr::memmem::find(result.bytes(), b"\"resultType\"").is_some()
        && result.object().is_some_and(|body| ResultType::of(&body) == kind)
}

fn is_error(result: &Raw) -> bool {
    result.object().is_some_and(|result| result.get("isError").is_some_and(|flag| flag.as_str() == "true"))
}

fn code_of(error: &Error) -> Option<i32> {
    error.relayed.as_ref()?.object()?.get("code")?.decode().ok()
}

/// Returns `true` if the client supports URL elicitation; `elicitation: {}` means forms only.
fn supports_url_elicitation(client_capabilities: &ClientCapabilities) -> bool {
    let modes = client_capabilities.elicitation.as_ref().and_then(Raw::object);
    modes.is_some_and(|modes| modes.get("url").is_some())
}

fn missing_url_elicitation() -> StatelessError {
    let url = Object::default().with("url", Raw::empty_object());
    StatelessError::missing_capability(&Object::default().with("elicitation", url))
}

/// Builds the URL elicitations that a server of 2025-11-25 requires before the call is repeated.
fn url_elicitations(error: &Error) -> Option<Raw> {
    let data = error.relayed.as_ref()?.object()?.get("data")?.object()?;
    let elicitations = data.get("elicitations")?.items().filter(|all| !all.is_empty())?;
    let named = elicitations.iter().enumerate().map(|(number, elicitation)| {
        let mut params = elicitation.object()?;
        params.remove("elicitationId");
        let request = Object::default().with("method", "elicitation/create").with("params", params);
        Some((format!("url-{}", number + 1).into(), request.raw()))
    });
    let requests: Object = named.collect::<Option<Object>>()?;
    Some(Object::default().with("resultType", "input_required").with("inputRequests", requests).raw())
}

//! Runs one stateless request through the gateway: lists, discovery, and calls that may be suspended until the client's
//! next request.

use std::sync::Arc;

use bytes::Bytes;
use hikite_core::caller::{Abilities, Caller, Session};
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::listing::ListKind;
use hikite_core::source::{CallContext, Origin};
use hikite_gateway::{Page, Purpose, Running, Step, Surfaces, Ticket, Viewer, scope};
use hikite_wire::stateless::{META_CAPABILITIES, META_CLIENT, META_LEVEL, META_REVISION, ResultType, TASKS};
use tokio::sync::mpsc;

use super::Request;
use super::back::Back;
use super::check::supported;
use super::lane::Lanes;
use super::result::{Refusal, cacheable, complete};
use crate::app::App;
use crate::mcp::{capability, method};

/// "URL elicitation required" of 2025-11-25.
const URL_REQUIRED: i32 = -32042;

pub(crate) async fn run(
    app: &Arc<App>,
    mut request: Request,
    out: mpsc::Sender<Bytes>,
) -> Result<Raw, Refusal> {
    let method = &*request.method;
    if let Some(kind) = ListKind::ALL.into_iter().find(|kind| kind.method() == method) {
        let page = Page { cursor: request.params.text("cursor") };
        let session = request.next_session(app);
        let viewer = session.as_deref().map_or_else(|| (&request.arrival.caller).into(), Viewer::from);
        let list = app.gateway.list(viewer, request.surfaces, kind, page).await;
        return list.map(|list| cacheable(&list, true)).map_err(|error| Refusal::of(&error, None));
    }
    if method == "server/discover" {
        app.gateway.settle(&request.arrival.caller).await;
        return Ok(discover(app, &request.arrival.caller, request.surfaces));
    }
    if method.starts_with("tasks/") && !request.claim.abilities.knows(TASKS) {
        let extensions = Object::default().with(TASKS, Raw::empty_object());
        return Err(Refusal::lacking(&Object::default().with("extensions", extensions)));
    }
    forget_claim(&mut request.params);
    let is_read = method == "resources/read";
    let result = call(app, request, out).await?;
    Ok(if is_read && !waits(&result) { cacheable(&result, false) } else { complete(result) })
}

fn discover(app: &App, caller: &Caller, surfaces: Surfaces) -> Raw {
    let view = app.gateway.view_of(caller);
    let mut result = Object::default()
        .with("supportedVersions", Raw::of(&supported()))
        .with("capabilities", capability::stateless(&view));
    if let Some(instructions) = app.gateway.instructions(caller, surfaces) {
        result.set("instructions", instructions.as_str());
    }
    cacheable(&result.raw(), true)
}

impl Request {
    /// Returns the session that the next call of this client would use.
    fn next_session(&self, app: &App) -> Option<Arc<Session>> {
        app.lanes.next_session(&(self.arrival.caller.clone(), self.claim.abilities.clone()))
    }
}

/// Removes the client's own protocol claims from `_meta`; an upstream gets those of hikite.
fn forget_claim(params: &mut Object) {
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

async fn call(app: &Arc<App>, mut request: Request, out: mpsc::Sender<Bytes>) -> Result<Raw, Refusal> {
    let uri = request.params.text("uri");
    let refuse = |error: &Error| Refusal::of(error, uri.as_deref());
    let state = request.params.remove("requestState").and_then(|state| state.text());
    let responses = request.params.get("inputResponses").cloned();
    let purpose =
        Purpose { caller: &request.arrival.caller, method: &request.method, params: &request.params };
    let ticket = state.map(|state| app.parking.read(&state, purpose)).transpose();
    let mut running = match ticket.map_err(|error| refuse(&error))? {
        Some(Ticket::Parked { process, id }) => {
            let running = app.parking.resume(&process, id).map_err(|error| refuse(&error))?;
            running.back.turn_to(&request.claim, out);
            running
        }
        Some(Ticket::Server(state)) => {
            let params = request.params.clone().with("requestState", state.as_str());
            begin(app, &request, params, out).map_err(|error| refuse(&error))?
        }
        None => begin(app, &request, request.params.clone(), out).map_err(|error| refuse(&error))?,
    };
    running.answer(responses.as_ref());
    let back = Arc::clone(&running.back);
    match app.parking.drive(running, purpose).await {
        Step::Parked(body) => Ok(body.raw()),
        Step::Done(outcome) => {
            let failed = outcome.as_ref().map_or(true, is_error);
            if let Some(kind) = back.lacking().filter(|_| failed) {
                return Err(Refusal::cannot_ask(kind));
            }
            match outcome {
                Ok(result) => Ok(with_ticket(app, result, purpose)),
                Err(error) if code_of(&error) == Some(URL_REQUIRED) => {
                    let opens = opens_addresses(&request.claim.abilities);
                    addresses(&error).filter(|_| opens).ok_or_else(lacks_addresses)
                }
                Err(error) => Err(refuse(&error)),
            }
        }
    }
}

/// Starts the call on a pooled session.
fn begin(
    app: &Arc<App>,
    request: &Request,
    params: Object,
    out: mpsc::Sender<Bytes>,
) -> Result<Running<Arc<Back>>, Error> {
    let (back, questions) = Back::new(&request.claim, out);
    let back = Arc::new(back);
    let mut lease = Lanes::lease(
        app,
        (request.arrival.caller.clone(), request.claim.abilities.clone()),
        request.surfaces,
    )?;
    let level = request.claim.level.filter(|level| lease.changes_level(Some(*level)));
    let (app, name) = (Arc::clone(app), request.method.clone());
    let (surfaces, way_back) = (request.surfaces, Arc::clone(&back));
    let origin = Origin { client: request.claim.client.clone(), ..request.arrival.origin.clone() };
    let within = origin.clone();
    let outcome = async move {
        let context = CallContext {
            session: Arc::clone(&lease.session),
            back: way_back,
            origin,
            takes_rounds: true,
            account: None,
        };
        if let Some(level) = level {
            app.gateway.set_level(Object::default().with("level", level.name()), &context).await;
        }
        let outcome = method::dispatch(&app.gateway, surfaces, &name, params, context).await;
        if outcome.as_ref().is_ok_and(|result| is_of_type(result, ResultType::Task)) {
            lease.has_task();
        }
        // After a timeout the server may still be running the call.
        if outcome.as_ref().map_or_else(|error| error.kind != Kind::Timeout, |_| true) {
            lease.answered();
        }
        drop(lease);
        outcome
    };
    // The call may continue in a later request, but belongs to the trace of this one.
    Ok(Running::new(back, Box::pin(scope::within(within, outcome)), questions))
}

/// Wraps the `requestState` of a server that returns `input_required` itself into a continuation token.
fn with_ticket(app: &App, result: Raw, purpose: Purpose<'_>) -> Raw {
    if !waits(&result) {
        return result;
    }
    let Some(body) = result.object() else { return result };
    match body.text("requestState") {
        Some(state) => body.with("requestState", app.parking.ticket(state, purpose).as_str()).raw(),
        None => result,
    }
}

fn waits(result: &Raw) -> bool {
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
fn opens_addresses(abilities: &Abilities) -> bool {
    let modes = abilities.elicitation.as_ref().and_then(Raw::object);
    modes.is_some_and(|modes| modes.get("url").is_some())
}

fn lacks_addresses() -> Refusal {
    let url = Object::default().with("url", Raw::empty_object());
    Refusal::lacking(&Object::default().with("elicitation", url))
}

/// Builds the URL elicitations that a server of 2025-11-25 requires before the call is repeated.
fn addresses(error: &Error) -> Option<Raw> {
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

//! Runs a batch. The gateway validates it; a client that disconnects cancels it.

mod stream;

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use hikite_api::batch::CONCURRENCY_MAX;
use hikite_core::caller::{Caller, ClientCapabilities};
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::plan::OnError;
use hikite_core::source::{CallContext, CallOrigin, NoClient};
use hikite_core::time::rfc3339;
use hikite_gateway::{Batch, BatchReport, Observer, SilentObserver, now_ms};
use http::{HeaderMap, StatusCode, Uri};
use tokio::time::Instant;

use super::form::RequestForm;
use super::{body, query};
use crate::app::App;
use crate::error_response::{json, milliseconds, timed_error_response};
use crate::mcp::StatelessSessions;
use crate::request_context::RequestContext;

const MEMBERS: [&str; 4] = ["commands", "dry_run", "concurrency", "on_error"];

pub(crate) async fn batch(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let began = Instant::now();
    let batch = match parse_batch(&app, &uri, &headers, body).await {
        Ok(batch) => batch,
        Err(error) => return timed_error_response(error, began.elapsed()),
    };
    if stream::is_wanted(&headers) {
        return stream::run(app, caller, origin, batch);
    }
    match run(&app, caller, origin, batch, &SilentObserver).await {
        Ok(report) => json(StatusCode::OK, &answer(&report, began.elapsed())),
        Err(error) => timed_error_response(error, began.elapsed()),
    }
}

/// Builds the response body.
fn answer(report: &BatchReport, took: Duration) -> Raw {
    let mut body = Object::default().with("success", Raw::of(&true)).with("result", report.document.clone());
    if !report.content.is_empty() {
        body.set("content", Raw::array(&report.content));
    }
    body.set("executionTime", milliseconds(took));
    body.with("timestamp", rfc3339(now_ms())).raw()
}

async fn parse_batch(app: &App, uri: &Uri, headers: &HeaderMap, body: Body) -> Result<Batch, Error> {
    query::none(uri)?;
    let mut form = RequestForm::new(body::read(app, headers, body).await?, &MEMBERS);
    let commands = form.raw("commands");
    if commands.as_ref().is_none_or(|raw| raw.text().is_none() && raw.bytes().first() != Some(&b'[')) {
        form.fault("commands", "`commands` must be a list of tasks, or a string with one task per line.");
    }
    let dry_run = form.raw("dry_run").map(|raw| raw.decode::<bool>());
    if matches!(dry_run, Some(Err(_))) {
        form.fault("dry_run", "`dry_run` must be true or false.");
    }
    let concurrency = form.whole("concurrency", 1..=CONCURRENCY_MAX);
    let on_error = on_error(&mut form);
    form.finish()?;
    Ok(Batch {
        commands: commands.unwrap_or_else(Raw::null),
        dry_run: dry_run.is_some_and(Result::unwrap_or_default),
        concurrency: concurrency.and_then(|count| usize::try_from(count).ok()),
        on_error,
        params: Object::default(),
    })
}

fn on_error(form: &mut RequestForm) -> OnError {
    let Some(raw) = form.raw("on_error") else { return OnError::default() };
    let word = raw.text();
    let found = OnError::ALL.into_iter().find(|(name, _)| word.as_deref() == Some(name));
    if found.is_none() {
        form.fault("on_error", "`on_error` must be `skip`, `continue` or `fail_fast`.");
    }
    found.map(|(_, on_error)| on_error).unwrap_or_default()
}

/// Runs the batch on a pooled stateless session.
async fn run(
    app: &Arc<App>,
    caller: Caller,
    origin: CallOrigin,
    batch: Batch,
    observer: &dyn Observer,
) -> Result<BatchReport, Error> {
    let surfaces = app.settings.load().surfaces;
    let mut lease = StatelessSessions::lease(app, (caller, ClientCapabilities::default()), surfaces)?;
    let context = CallContext {
        session: Arc::clone(&lease.session),
        back: Arc::new(NoClient),
        origin,
        accepts_input_required: false,
        account: None,
    };
    // Boxed, because this future is much larger than its caller's.
    let outcome = Box::pin(app.gateway.batches().run("rest", batch, context, observer)).await;
    // Otherwise a server may still be running a call.
    if outcome.as_ref().map_or(true, |report| report.is_over) {
        lease.answered();
    }
    outcome
}

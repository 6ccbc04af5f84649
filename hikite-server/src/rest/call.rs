//! Runs a tool. Parameters and result stay raw bytes; a client that disconnects cancels its call.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use hikite_api::call::{BOTH, DELAY_MS_MAX, NAME_CHARS, RETRY_MAX, TIMEOUT_MS_MAX};
use hikite_core::call_policy::RetryPolicy;
use hikite_core::caller::{Caller, ClientCapabilities};
use hikite_core::compact::AnswerFormat;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::selector::{Selector, TEXT_MAX};
use hikite_core::source::{CallContext, CallOrigin, NoClient};
use hikite_core::time::rfc3339;
use hikite_core::tool_output::ToolOutput;
use hikite_gateway::{CallOptions, OutputOptions, now_ms};
use http::{HeaderMap, StatusCode, Uri};
use tokio::time::Instant;

use super::form::RequestForm;
use super::text::tool_error;
use super::{body, query};
use crate::app::App;
use crate::error_response::{json, milliseconds, timed_error_response};
use crate::mcp::StatelessSessions;
use crate::request_context::RequestContext;

const FORMAT_CHARS: usize = 32;

/// A parsed call request.
struct CallRequest {
    name: String,
    parameters: Option<Raw>,
    options: (CallOptions, OutputOptions),
    /// `true` if both the value and its compact form are requested.
    both: bool,
    account: Option<String>,
}

/// The result of a call.
struct RestCallResult {
    answer: ToolOutput,
    /// The compact form, if both were requested.
    compact: Option<String>,
    about: Option<Raw>,
}

pub(crate) async fn call(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let began = Instant::now();
    let outcome = match request(&app, &uri, &headers, body).await {
        Ok(request) => run(&app, caller, origin, request).await,
        Err(error) => Err(error),
    };
    let took = began.elapsed();
    match outcome {
        Ok(RestCallResult { answer, compact, about }) => {
            let mut body = Object::default().with("success", Raw::of(&true)).with("result", answer.value);
            if !answer.others.is_empty() {
                body.set("content", Raw::array(&answer.others));
            }
            if let Some(next) = &answer.next {
                body.set("nextCursor", next.as_str());
            }
            if let Some(compact) = compact {
                body.set("compact", compact);
            }
            if let Some(about) = about {
                body.set("answer", about);
            }
            body.set("executionTime", milliseconds(took));
            json(StatusCode::OK, &body.with("timestamp", rfc3339(now_ms())).raw())
        }
        Err(error) => timed_error_response(error, took),
    }
}

async fn request(app: &App, uri: &Uri, headers: &HeaderMap, body: Body) -> Result<CallRequest, Error> {
    query::none(uri)?;
    let mut form = RequestForm::new(body::read(app, headers, body).await?, &["name", "parameters", "options"]);
    let name = form.text("name", NAME_CHARS);
    if name.as_ref().map_or(form.raw("name").is_none(), String::is_empty) {
        form.fault("name", "`name` must be the key or the name of a tool.");
    }
    let parameters = form.raw("parameters");
    // A string that contains an object is unwrapped when the parameters are validated.
    if parameters.as_ref().is_some_and(|sent| !sent.is_object() && sent.text().is_none()) {
        form.fault("parameters", "`parameters` must be an object.");
    }
    let (options, both, account) = options(&mut form);
    form.finish()?;
    Ok(CallRequest { name: name.unwrap_or_default(), parameters, options, both, account })
}

fn options(form: &mut RequestForm) -> ((CallOptions, OutputOptions), bool, Option<String>) {
    let known = ["timeout", "retry", "retryDelay", "format", "select", "account"];
    let Some(mut options) = form.inner("options", &known) else {
        return Default::default();
    };
    let span = |ms: u32| Duration::from_millis(ms.into());
    let timeout = options.whole("timeout", 1..=TIMEOUT_MS_MAX).map(span);
    let delay = options.whole("retryDelay", 0..=DELAY_MS_MAX).map_or(RetryPolicy::DELAY, span);
    let retry = options.whole("retry", 0..=RETRY_MAX).map(|attempts| RetryPolicy { attempts, delay });
    let (wanted, both) = wanted(&mut options);
    let account = options.text("account", NAME_CHARS).filter(|name| !name.is_empty());
    form.join(options);
    ((CallOptions { timeout, retry }, wanted), both, account)
}

/// Parses the output options, and reports whether both formats are requested.
fn wanted(options: &mut RequestForm) -> (OutputOptions, bool) {
    let word = options.text("format", FORMAT_CHARS);
    let both = word.as_deref() == Some(BOTH);
    let format = word.filter(|_| !both).and_then(|word| {
        let format = AnswerFormat::parse(&word);
        if format.is_none() {
            let known = AnswerFormat::ALL.map(|(name, _)| name).join("`, `");
            options.fault("format", format!("`format` must be `{known}` or `{BOTH}`."));
        }
        format
    });
    let select = options.text("select", TEXT_MAX).and_then(|text| {
        Selector::parse(&text).map_err(|what| options.fault("select", format!("`select` {what}."))).ok()
    });
    (OutputOptions { format, select }, both)
}

/// Runs the call on a pooled stateless session.
async fn run(
    app: &Arc<App>,
    caller: Caller,
    origin: CallOrigin,
    request: CallRequest,
) -> Result<RestCallResult, Error> {
    let surfaces = app.settings.load().surfaces;
    let mut lease = StatelessSessions::lease(app, (caller, ClientCapabilities::default()), surfaces)?;
    let context = CallContext {
        session: Arc::clone(&lease.session),
        back: Arc::new(NoClient),
        origin,
        accepts_input_required: false,
        account: None,
    };
    let CallRequest { name, parameters, options, both, account } = request;
    let (gateway, account) = (&app.gateway, account.as_deref());
    let outcome = if both {
        let ran = Box::pin(gateway.run_tool_with_preview(&name, account, parameters, options, context)).await;
        ran.map(|(answer, text, about)| RestCallResult { answer, compact: Some(text), about: Some(about) })
    } else {
        let ran = gateway.run_tool_with(&name, account, parameters, options, context).await;
        ran.map(|(answer, about)| RestCallResult { answer, compact: None, about })
    };
    // After a timeout the server may still be running the call.
    if outcome.as_ref().map_or_else(|error| error.kind != ErrorKind::Timeout, |_| true) {
        lease.answered();
    }
    outcome.map_err(|error| tool_error(&name, error))
}

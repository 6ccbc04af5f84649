//! Errors outside of JSON-RPC. An error travels as a response extension; the guard writes its body, because it knows
//! the request id.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::time::rfc3339;
use hikite_gateway::now_ms;
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};

use crate::request_id::RequestId;

/// Default `Retry-After` of a 503.
const DEFAULT_RETRY_AFTER: Duration = Duration::from_secs(1);

/// An error, and the execution time if it is reported.
#[derive(Clone, Debug)]
pub(crate) struct HttpError {
    error: Error,
    took: Option<Duration>,
}

/// Builds an error response; the status is set now, the body by the guard.
pub(crate) fn error_response(error: Error) -> Response {
    refuse(HttpError { error, took: None })
}

/// Builds the error response of a call, with its execution time.
pub(crate) fn timed_error_response(error: Error, took: Duration) -> Response {
    refuse(HttpError { error, took: Some(took) })
}

fn refuse(http_error: HttpError) -> Response {
    let status = http_error.error.kind.definition().http;
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = status.into_response();
    // A 503 always has a `Retry-After`.
    let soon = (status == StatusCode::SERVICE_UNAVAILABLE).then_some(DEFAULT_RETRY_AFTER);
    if let Some(wait) = http_error.error.retry_after.or(soon) {
        response.headers_mut().insert(RETRY_AFTER, whole_seconds(wait).into());
    }
    response.extensions_mut().insert(http_error);
    response
}

/// Writes the body of an error response; other responses are unchanged.
pub(crate) fn with_error_body(mut response: Response, id: &RequestId) -> Response {
    let Some(http_error) = response.extensions_mut().remove::<HttpError>() else { return response };
    let body = body(&http_error, id);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    // The router may have set the length of the empty body.
    response.headers_mut().remove(CONTENT_LENGTH);
    *response.body_mut() = body.bytes().clone().into();
    response
}

fn body(HttpError { error, took }: &HttpError, id: &RequestId) -> Raw {
    // Internal errors appear only in the log.
    let message = if error.kind == ErrorKind::Internal { "Internal server error" } else { &*error.message };
    let mut body = Object::default().with("success", Raw::of(&false)).with("error", message).with("code", error.code());
    if let Some(hint) = error.hint.as_deref().filter(|_| error.kind != ErrorKind::Internal) {
        body.set("hint", hint);
    }
    for (name, value) in [("details", &error.details), ("schema", &error.schema)] {
        if let Some(value) = value {
            body.set(name, value.clone());
        }
    }
    body.set("requestId", &*id.0);
    if let Some(took) = took {
        body.set("executionTime", milliseconds(*took));
    }
    body.with("timestamp", rfc3339(now_ms()).as_str()).raw()
}

pub(crate) fn json(status: StatusCode, body: &Raw) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.bytes().clone()).into_response()
}

/// Formats a duration in milliseconds, with microsecond precision.
pub(crate) fn milliseconds(span: Duration) -> Raw {
    let whole = span.as_millis();
    let rest = span.as_micros() % 1000;
    Raw::trusted(format!("{whole}.{rest:03}"))
}

/// Rounds a duration up to whole seconds for HTTP headers.
pub(crate) fn whole_seconds(wait: Duration) -> u64 {
    wait.as_secs() + u64::from(wait.subsec_nanos() > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(error: Error) -> serde_json::Value {
        body(&HttpError { error, took: Some(Duration::from_micros(1_500)) }, &RequestId("r-1".into())).value()
    }

    #[test]
    fn an_error_of_ours_shows_nothing_of_the_inside() {
        let secret = Error::new(ErrorKind::Internal, "at /srv/hikite: stack").hint("look at 10.0.0.1");
        let shown = shown(secret);
        assert_eq!(shown["error"], "Internal server error");
        assert_eq!(shown["code"], "INTERNAL_ERROR");
        assert_eq!(shown.get("hint"), None);
    }

    #[test]
    fn a_refusal_has_the_shape_of_the_specification() {
        let error = Error::new(ErrorKind::ToolNotFound, "Tool not found: x").hint("Did you mean `y`?");
        let shown = shown(error);
        let names: Vec<&String> = shown.as_object().expect("an object").keys().collect();
        assert_eq!(names, ["success", "error", "code", "hint", "requestId", "executionTime", "timestamp"]);
        assert_eq!((&shown["success"], &shown["executionTime"]), (&false.into(), &1.5.into()));
    }

    #[test]
    fn who_finds_no_room_is_told_when_to_come_back() {
        for (error, said) in [
            (Error::new(ErrorKind::Overloaded, "full"), Some("1")),
            (Error::new(ErrorKind::Overloaded, "full").after(Duration::from_secs(5)), Some("5")),
            (Error::new(ErrorKind::NotFound, "nothing here"), None),
        ] {
            let response = error_response(error);
            let header = response.headers().get(RETRY_AFTER).map(|value| value.to_str().expect("ASCII"));
            assert_eq!(header, said);
        }
    }

    #[test]
    fn a_wait_is_told_in_seconds_and_never_too_short() {
        for (ms, seconds) in [(0, 0), (1, 1), (1000, 1), (1001, 2)] {
            assert_eq!(whole_seconds(Duration::from_millis(ms)), seconds);
        }
    }
}

//! Whether we are up, for people and load balancers; says nothing about what stands behind.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use http::StatusCode;
use http::header::CONTENT_TYPE;

use crate::app::App;

pub(crate) async fn health(State(app): State<Arc<App>>) -> Response {
    let body = Object::default()
        .with("status", "ok")
        .with("name", "hikite")
        .with("version", env!("CARGO_PKG_VERSION"))
        .with("uptime", Raw::of(&app.started.elapsed().as_secs()))
        .with("timestamp", Raw::of(&now_ms()));
    json(StatusCode::OK, &body.raw())
}

pub(crate) async fn not_found() -> Response {
    refusal(
        &Error::new(Kind::NotFound, "there is nothing at this address").hint("MCP clients connect to `/mcp`"),
    )
}

/// A HEAD request must not open a stream.
pub(crate) async fn not_allowed() -> StatusCode {
    StatusCode::METHOD_NOT_ALLOWED
}

pub(crate) fn json(status: StatusCode, body: &Raw) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.bytes().clone()).into_response()
}

/// An error outside JSON-RPC.
pub(crate) fn refusal(error: &Error) -> Response {
    let status = StatusCode::from_u16(error.kind.face().http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut body = Object::default()
        .with("success", Raw::of(&false))
        .with("error", &*error.message)
        .with("code", error.code());
    if let Some(hint) = &error.hint {
        body.set("hint", &**hint);
    }
    json(status, &body.raw())
}

#[expect(clippy::disallowed_methods, reason = "the caller wants the wall clock")]
fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

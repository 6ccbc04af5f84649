//! Liveness and readiness, for people and load balancers. Reveals nothing about upstreams.

use std::sync::Arc;

use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use hikite_api::Health;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_core::time::rfc3339;
use hikite_gateway::now_ms;
use http::header::{ACCEPT, ALLOW, HeaderValue};
use http::{HeaderMap, StatusCode};
use tokio::time::Instant;

use crate::app::App;
use crate::error_response::{error_response, json};
use crate::readiness;

/// Handles `GET /`: browsers are redirected to the UI, other clients get the health status.
pub(crate) async fn root(app: State<Arc<App>>, headers: HeaderMap) -> Response {
    let accept = headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    if accept.is_some_and(|accept| accept.starts_with("text/html")) {
        return Redirect::to("/ui").into_response();
    }
    health(app).await
}

pub(crate) async fn health(State(app): State<Arc<App>>) -> Response {
    alive(app.started)
}

/// Returns the liveness response, with the uptime since `started`.
pub(crate) fn alive(started: Instant) -> Response {
    let body = Health {
        status: "ok".to_owned(),
        message: "MCP Server is running".to_owned(),
        name: "hikite".to_owned(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime: started.elapsed().as_secs_f64(),
        timestamp: rfc3339(now_ms()),
    };
    json(StatusCode::OK, &Raw::of(&body))
}

/// Handles the readiness probe: whether load balancers may send requests here, and why not.
pub(crate) async fn ready(State(app): State<Arc<App>>) -> Response {
    readiness::answer(&app.unready())
}

pub(crate) async fn not_found() -> Response {
    let error = Error::new(ErrorKind::NotFound, "There is nothing at this address.");
    error_response(error.hint("MCP clients connect to `/mcp`. `/docs` describes the REST API."))
}

/// Returns 405; axum adds the `Allow` header.
pub(crate) async fn wrong_method() -> Response {
    error_response(Error::new(ErrorKind::MethodNotAllowed, "This address does not support this method."))
}

/// Returns 405 with its own `Allow` header, as for a HEAD request that must not open a stream.
pub(crate) fn only(methods: &'static str) -> Response {
    let error = Error::new(ErrorKind::MethodNotAllowed, "This address does not support this method here.");
    let mut response = error_response(error);
    response.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
    response
}

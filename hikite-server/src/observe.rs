//! Around every HTTP request: its duration, its origin for whoever handles it, and for the REST API its span.
//! Requests of MCP have spans of their own, in the words of that protocol.

use std::sync::Arc;

use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hikite_core::source::Origin;
use hikite_gateway::trace::{Span, SpanKind, context_of};
use hikite_gateway::{named, scope};
use http::Method;
use tokio::time::Instant;

use crate::app::App;
use crate::arrival;
use crate::request_id::RequestId;

/// What is told of an address that is none of ours.
const NO_ROUTE: &str = "";
/// Requests of the REST API are traced here.
const REST: &str = "/v1/";

pub(crate) async fn observe(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = known(request.method());
    let route = request.extensions().get::<MatchedPath>().cloned();
    let route = route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str);
    let origin = arrival::origin(request.extensions().get::<RequestId>(), request.headers());
    let mut span = begin(&app, method, route, &origin);
    let origin = match &mut span {
        Some(span) => {
            span.set("url.path", request.uri().path().to_owned());
            span.origin(&origin)
        }
        None => origin,
    };
    request.extensions_mut().insert(origin.clone());
    let response = scope::within(origin, next.run(request)).await;
    let status = response.status();
    app.gateway.meter().exchange(method, route, status.as_u16(), started.elapsed());
    if let Some(span) = &mut span {
        span.set("http.response.status_code", i64::from(status.as_u16()));
        if status.is_server_error() {
            span.fail("server_error");
        }
    }
    response
}

fn begin(app: &App, method: &'static str, route: &str, origin: &Origin) -> Option<Box<Span>> {
    let tracer = app.gateway.meter().tracer().filter(|_| route.starts_with(REST))?;
    let mut span = tracer.begin(SpanKind::Server, || named(method, Some(route)), context_of(origin))?;
    span.set("http.request.method", method);
    span.set("http.route", route.to_owned());
    span.set("url.scheme", "http");
    span.set_with("hikite.request.id", || origin.request_id.as_deref().map(ToOwned::to_owned));
    Some(span)
}

/// A bounded set, whatever clients send.
fn known(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "_OTHER",
    }
}

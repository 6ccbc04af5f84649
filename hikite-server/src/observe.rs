//! Observability of every HTTP request: id, duration, origin, and a span for the REST API. MCP requests have spans of
//! their own.

use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use hikite_core::source::CallOrigin;
use hikite_gateway::named;
use hikite_gateway::trace::{SpanKind, TraceSpan, context_of};
use http::Method;
use tokio::time::Instant;

use crate::app::App;
use crate::connection::ClientAddress;
use crate::request_context;
use crate::request_id::RequestId;

/// Route label of unknown paths.
const NO_ROUTE: &str = "";
/// Path prefix of the REST API, whose requests are traced here.
const REST: &str = "/v1/";
/// The MCP routes, where a message may name its sender.
const MCP: [&str; 2] = ["/mcp", "/mcp/{project}"];

/// A request from arrival to response.
#[derive(Debug)]
pub(crate) struct HttpOperation {
    id: RequestId,
    started: Instant,
    method: &'static str,
    route: Option<MatchedPath>,
    span: Option<Box<TraceSpan>>,
    pub(crate) origin: CallOrigin,
}

impl HttpOperation {
    pub(crate) fn begin(app: &App, request: &Request) -> Self {
        let id = RequestId::of(request.headers());
        let method = method_label(request.method());
        let route = request.extensions().get::<MatchedPath>().cloned();
        let origin = request_context::origin(&id, request.headers());
        let mut operation = Self { id, started: Instant::now(), method, route, span: None, origin };
        operation.trace(app, request);
        operation
    }

    fn trace(&mut self, app: &App, request: &Request) {
        let route = self.route();
        let Some(tracer) = app.gateway.meter().tracer().filter(|_| route.starts_with(REST)) else { return };
        let name = || named(self.method, Some(route));
        let Some(mut span) = tracer.begin(SpanKind::Server, name, context_of(&self.origin)) else { return };
        span.set("http.request.method", self.method);
        span.set("http.route", route.to_owned());
        if let Some(peer) = request.extensions().get::<ClientAddress>() {
            span.set("url.scheme", if peer.is_secure { "https" } else { "http" });
            span.set("client.address", peer.address.to_string());
        }
        span.set_with("hikite.request.id", || Some(self.request_id().to_owned()));
        span.set("url.path", request.uri().path().to_owned());
        self.origin = span.origin(&self.origin);
        self.span = Some(span);
    }

    /// Records the metrics and sets the request id header.
    pub(crate) fn end(mut self, app: &App, response: Response) -> Response {
        let status = response.status();
        app.gateway.meter().exchange(self.method, self.route(), status.as_u16(), self.started.elapsed());
        if let Some(span) = &mut self.span {
            span.set("http.response.status_code", i64::from(status.as_u16()));
            if status.is_server_error() {
                span.fail("server_error");
            }
        }
        self.id.set_header(response)
    }

    /// Returns the route pattern, not the path.
    fn route(&self) -> &str {
        self.route.as_ref().map_or(NO_ROUTE, MatchedPath::as_str)
    }

    pub(crate) fn is_mcp(&self) -> bool {
        MCP.contains(&self.route())
    }

    pub(crate) fn request_id(&self) -> &str {
        &self.id.0
    }
}

/// Maps the method to a bounded set of labels.
fn method_label(method: &Method) -> &'static str {
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

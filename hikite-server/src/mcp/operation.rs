//! The metrics and the span of one MCP request. If dropped before its end, the request counts as cancelled.

use std::sync::LazyLock;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::listing::ListKind;
use hikite_core::source::CallOrigin;
use hikite_core::trace::TraceContext;
use hikite_gateway::meter::{Meter, TOOL_ERROR, is_error_result};
use hikite_gateway::trace::{SpanKind, TraceSpan, context_of};
use hikite_gateway::{CallResult, named, without_query};
use hikite_wire::message::MessageId;
use tokio::time::Instant;

use crate::request_context::{RequestContext, TCP};

/// All methods that a client may call, except the lists.
const METHODS: [&str; 19] = [
    "initialize",
    "ping",
    "tools/call",
    "resources/read",
    "resources/directory/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "prompts/get",
    "completion/complete",
    "logging/setLevel",
    "skills/get",
    "tasks/get",
    "tasks/list",
    "tasks/result",
    "tasks/update",
    "tasks/cancel",
    "server/discover",
    "subscriptions/listen",
    "roots/list",
];
const RESOURCE: &str = "mcp.resource.uri";
const OTHER: &str = "_OTHER";
/// Maximum characters of a client-chosen name in a span.
const NAME_CHARS_MAX: usize = 128;

#[derive(Debug)]
pub(crate) struct McpOperation<'a> {
    meter: &'a Meter,
    method: &'static str,
    transport: &'static str,
    started: Instant,
    error: Option<&'static str>,
    span: Option<Box<TraceSpan>>,
    /// The attribute and the value of the requested tool, prompt or resource, as the client named it.
    target: Option<(&'static str, String)>,
    pub(crate) origin: CallOrigin,
}

/// The parts of a request that the span describes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RequestInfo<'a> {
    pub(crate) id: &'a MessageId,
    pub(crate) method: &'a str,
    pub(crate) params: &'a Object,
    pub(crate) meta: Option<&'a Object>,
    pub(crate) revision: &'a str,
    pub(crate) session: Option<u64>,
}

impl<'a> RequestInfo<'a> {
    /// Builds the info of an `initialize` request.
    pub(crate) fn initialize(id: &'a MessageId, revision: &'a str) -> Self {
        static NOTHING: LazyLock<Object> = LazyLock::new(Object::default);
        Self { id, method: "initialize", params: &NOTHING, meta: None, revision, session: None }
    }
}

impl<'a> McpOperation<'a> {
    pub(crate) fn begin(meter: &'a Meter, request_context: RequestContext, request: RequestInfo<'_>) -> Self {
        let RequestContext { origin, transport, .. } = request_context;
        let method = known(request.method);
        let declared = request.meta.and_then(context_in);
        let span = meter.tracer().and_then(|tracer| {
            let outer = context_of(&origin);
            let parent = declared.clone().or_else(|| outer.clone());
            let mut span = tracer.begin(SpanKind::Server, || method.to_owned(), parent)?;
            span.link(outer.filter(|outer| declared.as_ref().is_some_and(|declared| declared.trace != outer.trace)));
            describe(&mut span, method, transport, &request, &origin);
            Some(span)
        });
        let origin = match (&span, declared) {
            (Some(span), _) => span.origin(&origin),
            (None, Some(declared)) => {
                let traceparent = Some(declared.to_string().into());
                CallOrigin { traceparent, tracestate: declared.state, ..origin }
            }
            (None, None) => origin,
        };
        let error = Some(ErrorKind::Cancelled.definition().code);
        let target = span.as_ref().filter(|span| span.context().sampled).and_then(|_| target(&request));
        Self { meter, method, transport, started: Instant::now(), error, span, target, origin }
    }

    pub(crate) fn end(mut self, outcome: &Result<CallResult, Error>) {
        match outcome {
            Ok(result) => self.end_with(&result.raw),
            Err(error) => {
                let number = error.upstream_code().unwrap_or(error.kind.definition().rpc.into());
                self.refused(error.code(), number);
            }
        }
    }

    pub(crate) fn end_with(mut self, result: &Raw) {
        self.error = (self.method == "tools/call" && is_error_result(result)).then_some(TOOL_ERROR);
    }

    /// Ends with a result that needs no inspection, or with an error of this code and number.
    pub(crate) fn close(mut self, error: Option<(&'static str, i64)>) {
        self.error = None;
        if let Some((word, number)) = error {
            self.refused(word, number);
        }
    }

    fn refused(&mut self, word: &'static str, number: i64) {
        self.error = Some(word);
        if let Some(span) = &mut self.span {
            span.set("rpc.response.status_code", number.to_string());
        }
    }
}

impl Drop for McpOperation<'_> {
    fn drop(&mut self) {
        self.meter.operation(self.method, self.transport, self.error, self.started.elapsed());
        let Some(span) = &mut self.span else { return };
        if let Some(error) = self.error {
            span.fail(error);
        }
        // A name that does not exist may be arbitrary text, so it is not recorded.
        if let Some((name, value)) = self.target.take().filter(|_| !self.error.is_some_and(is_unknown)) {
            if name != RESOURCE {
                span.rename(named(self.method, Some(&value)));
            }
            span.set(name, value);
        }
    }
}

fn is_unknown(code: &str) -> bool {
    [ErrorKind::ToolNotFound, ErrorKind::NotFound, ErrorKind::Validation]
        .iter()
        .any(|kind| kind.definition().code == code)
}

fn describe(
    span: &mut TraceSpan,
    method: &'static str,
    transport: &'static str,
    request: &RequestInfo<'_>,
    origin: &CallOrigin,
) {
    span.set("mcp.method.name", method);
    span.set("mcp.protocol.version", request.revision.to_owned());
    span.set("network.transport", transport);
    if transport == TCP {
        span.set("network.protocol.name", "http");
    }
    span.set_with("jsonrpc.request.id", || Some(short(request.id.raw().as_str().trim_matches('"'))));
    span.set_with("mcp.session.id", || request.session.map(|session| session.to_string()));
    span.set_with("hikite.request.id", || origin.request_id.as_deref().map(ToOwned::to_owned));
    if method == "tools/call" {
        span.set("gen_ai.operation.name", "execute_tool");
    }
}

/// Returns the requested tool, prompt or resource. The query of a URI is removed because it may hold a key.
fn target(request: &RequestInfo<'_>) -> Option<(&'static str, String)> {
    let (attribute, member) = match request.method {
        "tools/call" => ("gen_ai.tool.name", "name"),
        "prompts/get" => ("gen_ai.prompt.name", "name"),
        _ => (RESOURCE, "uri"),
    };
    Some((attribute, short(without_query(&request.params.text(member)?))))
}

/// Reads the trace context in `_meta` of a request.
fn context_in(meta: &Object) -> Option<TraceContext> {
    let context = TraceContext::parse(&meta.text("traceparent")?)?;
    Some(context.with_state(meta.text("tracestate").as_deref()))
}

fn known(method: &str) -> &'static str {
    let lists = ListKind::ALL.into_iter().map(ListKind::method);
    METHODS.into_iter().chain(lists).find(|known| *known == method).unwrap_or(OTHER)
}

fn short(text: &str) -> String {
    text.chars().take(NAME_CHARS_MAX).collect()
}

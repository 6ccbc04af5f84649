//! Metrics and tracing of one request to a source. A request dropped before its end counts as cancelled.

use std::sync::Arc;

use hikite_core::catalog::Module;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::Raw;
use hikite_core::source::{CallContext, Invocation, SourceMethod};
use tokio::time::Instant;

use crate::meter::{ModuleMeter, error_type};
use crate::trace::{SpanKind, TraceSpan, context_of};

#[derive(Debug)]
pub(crate) struct SourceRequest {
    meter: Arc<ModuleMeter>,
    method: SourceMethod,
    started: Instant,
    error: Option<&'static str>,
    span: Option<Box<TraceSpan>>,
}

impl SourceRequest {
    /// Starts the request and sets its span as the parent of the source's own.
    pub(crate) fn begin(
        meter: &Arc<ModuleMeter>,
        module: &Module,
        invocation: &Invocation,
        context: &mut CallContext,
    ) -> Self {
        let span = meter.tracer().and_then(|tracer| {
            let parent = context_of(&context.origin);
            let target = target(invocation);
            let name = || named(invocation.method.name(), target.as_deref());
            let mut span = tracer.begin(SpanKind::Client, name, parent)?;
            context.origin = span.origin(&context.origin);
            describe(&mut span, module, invocation, target.clone());
            Some(span)
        });
        let error = Some(ErrorKind::Cancelled.definition().code);
        Self { meter: Arc::clone(meter), method: invocation.method, started: Instant::now(), error, span }
    }

    /// Records the number of earlier attempts.
    pub(crate) fn set_attempts(&mut self, made: u32) {
        if let Some(span) = self.span.as_mut().filter(|_| made > 0) {
            span.set("hikite.resend_count", i64::from(made));
        }
    }

    /// Ends the request and returns the error type of a failure.
    pub(crate) fn end(mut self, outcome: &Result<Raw, Error>) -> Option<&'static str> {
        self.error = error_type(outcome);
        if let (Some(span), Err(error)) = (&mut self.span, outcome) {
            span.set_with("rpc.response.status_code", || error.upstream_code().map(|code| code.to_string()));
        }
        self.error
    }
}

impl Drop for SourceRequest {
    fn drop(&mut self) {
        self.meter.request(self.method, self.error, self.started.elapsed());
        if let (Some(span), Some(error)) = (&mut self.span, self.error) {
            span.fail(error);
        }
    }
}

fn describe(span: &mut TraceSpan, module: &Module, invocation: &Invocation, target: Option<String>) {
    span.set("mcp.method.name", invocation.method.name());
    span.set("hikite.module", module.name.to_string());
    span.set_with("mcp.protocol.version", || module.listing.as_ref()?.revision.as_ref().map(ToString::to_string));
    match invocation.method {
        SourceMethod::CallTool => {
            span.set("gen_ai.operation.name", "execute_tool");
            span.set_with("gen_ai.tool.name", || target);
        }
        SourceMethod::GetPrompt => span.set_with("gen_ai.prompt.name", || target),
        _ => span
            .set_with("mcp.resource.uri", || invocation.params.text("uri").map(|uri| without_query(&uri).to_owned())),
    }
}

/// Returns the target in the span's name: a tool or prompt, since there are few of them.
fn target(invocation: &Invocation) -> Option<String> {
    match invocation.method {
        SourceMethod::CallTool | SourceMethod::GetPrompt => invocation.params.text("name"),
        _ => None,
    }
}

/// Returns the span name that the OpenTelemetry conventions define.
pub fn named(method: &str, target: Option<&str>) -> String {
    target.map_or_else(|| method.to_owned(), |target| format!("{method} {target}"))
}

/// Returns a URI without query and fragment, which may contain secrets.
pub fn without_query(uri: &str) -> &str {
    uri.split(['?', '#']).next().unwrap_or_default()
}

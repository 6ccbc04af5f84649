//! Encodes spans as OTLP messages.

use hikite_core::trace::TraceContext;
use hikite_gateway::trace::{AttributeValue, SpanKind, SpanRecord};
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::any_value;
use opentelemetry_proto::tonic::trace::v1::span::{Link, SpanKind as Kind};
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_proto::tonic::trace::v1::{ResourceSpans, ScopeSpans, Span, Status};

use super::message::{OtlpResource, nanos, pair, scope};

/// OTLP span flags: the remote state of the parent is known, and the parent is remote.
const KNOWN: u32 = 0x100;
const REMOTE: u32 = 0x200;

pub(crate) fn request(resource: &OtlpResource, spans: Vec<SpanRecord>) -> ExportTraceServiceRequest {
    let scope_spans =
        ScopeSpans { scope: Some(scope()), spans: spans.into_iter().map(span).collect(), ..ScopeSpans::default() };
    let resource_spans = ResourceSpans {
        resource: Some(resource.message()),
        scope_spans: vec![scope_spans],
        ..ResourceSpans::default()
    };
    ExportTraceServiceRequest { resource_spans: vec![resource_spans] }
}

fn span(record: SpanRecord) -> Span {
    let SpanRecord { context, parent, is_remote, name, kind, start, end, attributes, failed, link } = record;
    let remote = if is_remote && parent.is_some() { REMOTE } else { 0 };
    let status = if failed { StatusCode::Error } else { StatusCode::Unset };
    Span {
        trace_id: context.trace.to_be_bytes().to_vec(),
        span_id: context.span.to_be_bytes().to_vec(),
        parent_span_id: parent.map(|parent| parent.to_be_bytes().to_vec()).unwrap_or_default(),
        flags: KNOWN | remote | u32::from(context.sampled),
        trace_state: context.state.as_deref().unwrap_or_default().to_owned(),
        name,
        kind: match kind {
            SpanKind::Server => Kind::Server,
            SpanKind::Client => Kind::Client,
            SpanKind::Internal => Kind::Internal,
        }
        .into(),
        start_time_unix_nano: nanos(start),
        end_time_unix_nano: nanos(end),
        attributes: attributes.into_iter().map(|(name, value)| pair(name, any(value))).collect(),
        status: Some(Status { code: status.into(), ..Status::default() }),
        links: link.iter().map(linked).collect(),
        ..Span::default()
    }
}

fn linked(to: &TraceContext) -> Link {
    Link {
        trace_id: to.trace.to_be_bytes().to_vec(),
        span_id: to.span.to_be_bytes().to_vec(),
        trace_state: to.state.as_deref().unwrap_or_default().to_owned(),
        flags: KNOWN | REMOTE | u32::from(to.sampled),
        ..Link::default()
    }
}

fn any(value: AttributeValue) -> any_value::Value {
    match value {
        AttributeValue::Text(text) => any_value::Value::StringValue(text.into_owned()),
        AttributeValue::Number(number) => any_value::Value::IntValue(number),
    }
}

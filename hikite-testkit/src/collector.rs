//! A small OTLP receiver for tests: accepts traces and metrics over HTTP with protobuf and exposes them. It can also
//! reject every request or never answer.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::metrics::v1::number_data_point;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode as Status;
use parking_lot::Mutex;
use prost::Message;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Behavior towards requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CollectorBehavior {
    Accept,
    Reject(u16),
    Hang,
}

/// A received span. Ids are hexadecimal; a root span has an empty parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectedSpan {
    pub trace: String,
    pub id: String,
    pub parent: String,
    pub name: String,
    /// OTLP span kind: 2 for server, 3 for client.
    pub kind: i32,
    pub attributes: Attributes,
    pub failed: bool,
    /// Ids of the linked traces.
    pub links: Vec<String>,
    /// Resource attributes of the sender.
    pub resource: Attributes,
}

pub type Attributes = BTreeMap<String, String>;

/// One series of a metric: its value, or the count of a histogram.
#[derive(Clone, Debug, PartialEq)]
pub struct CollectedSeries {
    pub name: String,
    pub unit: String,
    pub attributes: Attributes,
    pub value: f64,
}

/// A running receiver on a free loopback port. Dropping it stops it.
#[derive(Debug)]
pub struct OtlpCollector {
    address: SocketAddr,
    received: Arc<CollectedTelemetry>,
    shutdown: CancellationToken,
}

#[derive(Debug)]
struct CollectedTelemetry {
    behavior: CollectorBehavior,
    requests: Mutex<Vec<(HeaderMap, Bytes)>>,
    spans: Mutex<Vec<CollectedSpan>>,
    series: Mutex<Vec<CollectedSeries>>,
}

impl OtlpCollector {
    pub async fn start(behavior: CollectorBehavior) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let received = Arc::new(CollectedTelemetry {
            behavior,
            requests: Mutex::default(),
            spans: Mutex::default(),
            series: Mutex::default(),
        });
        let router = Router::new()
            .route("/v1/traces", post(traces))
            .route("/v1/metrics", post(metrics))
            .with_state(Arc::clone(&received));
        let shutdown = CancellationToken::new();
        let serving = axum::serve(listener, router);
        TaskTracker::new().spawn(shutdown.clone().run_until_cancelled_owned(async move {
            let _ = serving.await;
        }));
        Self { address, received, shutdown }
    }

    /// Returns the URL to configure as the OTLP endpoint.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns every span so far, in the order they ended.
    pub fn spans(&self) -> Vec<CollectedSpan> {
        self.received.spans.lock().clone()
    }

    /// Returns the series of the last message that contained this metric.
    pub fn series(&self, name: &str) -> Vec<CollectedSeries> {
        self.received.series.lock().iter().filter(|series| series.name == name).cloned().collect()
    }

    pub fn requests(&self) -> usize {
        self.received.requests.lock().len()
    }

    /// Returns a header of every request so far.
    pub fn headers(&self, name: &str) -> Vec<Option<String>> {
        let requests = self.received.requests.lock();
        let value = |headers: &HeaderMap| Some(headers.get(name)?.to_str().ok()?.to_owned());
        requests.iter().map(|(headers, _)| value(headers)).collect()
    }

    /// Returns `true` if any request body contains this text.
    pub fn has_received(&self, text: &str) -> bool {
        let holds = |body: &Bytes| body.windows(text.len()).any(|window| window == text.as_bytes());
        self.received.requests.lock().iter().any(|(_, body)| holds(body))
    }
}

impl Drop for OtlpCollector {
    fn drop(&mut self) {
        self.shutdown.cancel();
    }
}

impl CollectedTelemetry {
    /// Records the request and returns the response, unless it is to succeed.
    async fn respond(&self, headers: HeaderMap, body: &Bytes) -> Option<Response> {
        self.requests.lock().push((headers, body.clone()));
        match self.behavior {
            CollectorBehavior::Accept => None,
            CollectorBehavior::Reject(status) => StatusCode::from_u16(status).ok().map(IntoResponse::into_response),
            CollectorBehavior::Hang => std::future::pending().await,
        }
    }
}

async fn traces(State(received): State<Arc<CollectedTelemetry>>, headers: HeaderMap, body: Bytes) -> Response {
    if let Some(refusal) = received.respond(headers, &body).await {
        return refusal;
    }
    let Ok(message) = ExportTraceServiceRequest::decode(body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    for resource in message.resource_spans {
        let of = attributes(resource.resource.unwrap_or_default().attributes);
        for span in resource.scope_spans.into_iter().flat_map(|scope| scope.spans) {
            received.spans.lock().push(CollectedSpan {
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                name: span.name,
                kind: span.kind,
                attributes: attributes(span.attributes),
                failed: span.status.is_some_and(|status| status.code == i32::from(Status::Error)),
                links: span.links.iter().map(|link| hex(&link.trace_id)).collect(),
                resource: of.clone(),
            });
        }
    }
    StatusCode::OK.into_response()
}

async fn metrics(State(received): State<Arc<CollectedTelemetry>>, headers: HeaderMap, body: Bytes) -> Response {
    if let Some(refusal) = received.respond(headers, &body).await {
        return refusal;
    }
    let Ok(message) = ExportMetricsServiceRequest::decode(body) else {
        return StatusCode::BAD_REQUEST.into_response();
    };
    let mut all = Vec::new();
    let scopes = message.resource_metrics.into_iter().flat_map(|resource| resource.scope_metrics);
    for metric in scopes.flat_map(|scope| scope.metrics) {
        let series = |value: f64, of: Vec<KeyValue>| CollectedSeries {
            name: metric.name.clone(),
            unit: metric.unit.clone(),
            attributes: attributes(of),
            value,
        };
        match metric.data {
            Some(Data::Sum(sum)) => {
                all.extend(sum.data_points.into_iter().map(|p| series(number(p.value), p.attributes)));
            }
            Some(Data::Gauge(gauge)) => {
                all.extend(gauge.data_points.into_iter().map(|p| series(number(p.value), p.attributes)));
            }
            Some(Data::Histogram(histogram)) => {
                for point in histogram.data_points {
                    let counted: u64 = point.bucket_counts.iter().sum();
                    assert_eq!(counted, point.count, "a histogram adds up");
                    assert_eq!(point.bucket_counts.len(), point.explicit_bounds.len() + 1);
                    let count = u32::try_from(point.count).expect("a small count");
                    all.push(series(count.into(), point.attributes));
                }
            }
            _ => {}
        }
    }
    *received.series.lock() = all;
    StatusCode::OK.into_response()
}

fn number(value: Option<number_data_point::Value>) -> f64 {
    match value {
        Some(number_data_point::Value::AsDouble(value)) => value,
        _ => f64::NAN,
    }
}

fn attributes(pairs: Vec<KeyValue>) -> Attributes {
    let text = |value| match value {
        Value::StringValue(text) => text,
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let pair = |pair: KeyValue| Some((pair.key, text(pair.value?.value?)));
    pairs.into_iter().filter_map(pair).collect()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

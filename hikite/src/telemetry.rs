//! Exports traces and metrics to an OTLP collector. No call ever waits for the collector: spans queue in a bounded
//! channel, and what cannot be sent is dropped and counted.
//!
//! The messages are those of `opentelemetry-proto`. Sending them is ours, because the exporter of the SDK brings an
//! HTTP client of its own, and only `hikite-egress` may build one.

mod message;
mod metric;
mod sender;
mod span;

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Result;
use hikite_config::OtlpSection;
use hikite_egress::EgressClient;
use hikite_gateway::trace::{SpanRecord, Tracer};
use hikite_server::App;
use prost::Message;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use message::OtlpResource;
use sender::OtlpSender;

/// Maximum number of queued spans.
const QUEUE: usize = 4096;
/// Maximum number of spans per message.
const BATCH: usize = 512;
/// Maximum time a span waits for its batch to fill.
const BATCH_DELAY_MAX: Duration = Duration::from_secs(1);
/// Time limit for the last messages at shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug, Default)]
pub(crate) struct TelemetryExporter {
    tasks: TaskTracker,
    stopping: CancellationToken,
}

impl TelemetryExporter {
    /// Starts the configured exporters; none if no collector is configured.
    pub(crate) fn start(otlp: Option<&OtlpSection>, app: &Arc<App>, client: &EgressClient) -> Result<Self> {
        let telemetry = Self::default();
        let Some(otlp) = otlp else { return Ok(telemetry) };
        let resource = OtlpResource::new(otlp)?;
        if let Some(url) = &otlp.traces {
            let (queue, spans) = mpsc::channel(QUEUE);
            let tracer = Arc::new(Tracer::new(otlp.sampler, queue));
            app.trace(Arc::clone(&tracer));
            let post = OtlpSender::new(client, url, otlp, "traces")?;
            let sending = send_spans(spans, tracer, post, resource.clone(), telemetry.stopping.clone());
            telemetry.tasks.spawn(sending);
        }
        if let Some(url) = &otlp.metrics {
            let post = OtlpSender::new(client, url, otlp, "metrics")?;
            let stopping = telemetry.stopping.clone();
            telemetry.tasks.spawn(send_metrics(Arc::clone(app), otlp.interval, post, resource, stopping));
        }
        Ok(telemetry)
    }

    /// Sends what is queued, within a short time limit.
    pub(crate) async fn stop(self) {
        self.stopping.cancel();
        self.tasks.close();
        let _ = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.tasks.wait()).await;
    }
}

async fn send_spans(
    mut spans: mpsc::Receiver<SpanRecord>,
    tracer: Arc<Tracer>,
    post: OtlpSender,
    resource: OtlpResource,
    stopping: CancellationToken,
) {
    let mut batch = Vec::new();
    loop {
        let stopped = stopping.run_until_cancelled(gather(&mut spans, &mut batch)).await.is_none();
        if stopped {
            while batch.len() < QUEUE
                && let Ok(span) = spans.try_recv()
            {
                batch.push(span);
            }
        }
        if !batch.is_empty() {
            let count = batch.len();
            let message = span::request(&resource, std::mem::take(&mut batch)).encode_to_vec();
            if !post.send(message, &stopping).await {
                tracer.note_dropped(count);
            }
        }
        if stopped {
            return;
        }
    }
}

/// Waits for spans, then briefly for more. Cancel-safe: spans stay in the batch.
async fn gather(spans: &mut mpsc::Receiver<SpanRecord>, batch: &mut Vec<SpanRecord>) {
    if spans.recv_many(batch, BATCH).await == 0 {
        // All senders are gone; only cancellation ends the wait.
        return std::future::pending().await;
    }
    let more = async { while batch.len() < BATCH && spans.recv_many(batch, BATCH - batch.len()).await > 0 {} };
    let _ = tokio::time::timeout(BATCH_DELAY_MAX, more).await;
}

async fn send_metrics(
    app: Arc<App>,
    interval: Duration,
    post: OtlpSender,
    resource: OtlpResource,
    stopping: CancellationToken,
) {
    let begin = now();
    loop {
        let stopped = stopping.run_until_cancelled(tokio::time::sleep(interval)).await.is_none();
        let message = metric::request(&resource, &app.reading(), begin, now()).encode_to_vec();
        post.send(message, &stopping).await;
        if stopped {
            return;
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "metrics are told in wall-clock time")]
fn now() -> SystemTime {
    SystemTime::now()
}

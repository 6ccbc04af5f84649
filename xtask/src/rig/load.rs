//! Concurrent calls from several clients for a while, with their latencies.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::client::{McpEndpoint, RigClient};
use super::table::percentile;

/// Calls of each client before the measurement.
const WARM_UP: usize = 20;

pub(crate) struct LoadSummary {
    pub(crate) calls: usize,
    pub(crate) per_second: f64,
    pub(crate) p50_ms: f64,
    pub(crate) p99_ms: f64,
}

impl LoadSummary {
    pub(crate) fn of(mut times_ms: Vec<f64>, seconds: f64) -> Self {
        let calls = times_ms.len();
        #[expect(clippy::cast_precision_loss, reason = "far fewer calls than a double counts exactly")]
        let per_second = calls as f64 / seconds;
        let p50_ms = percentile(&mut times_ms, 0.5);
        Self { calls, per_second, p50_ms, p99_ms: percentile(&mut times_ms, 0.99) }
    }
}

/// A client, and the request that it repeats.
pub(crate) trait Repeat: Send + 'static {
    fn once(&mut self) -> impl Future<Output = Result<()>> + Send;
}

struct EchoCalls {
    client: RigClient,
    tool: String,
}

impl Repeat for EchoCalls {
    async fn once(&mut self) -> Result<()> {
        self.client.echo(&self.tool).await
    }
}

pub(crate) async fn run(target: &McpEndpoint, tool: &str, clients: usize, duration: Duration) -> Result<LoadSummary> {
    let mut ready = Vec::new();
    for _ in 0..clients {
        ready.push(EchoCalls { client: RigClient::open(target, duration).await?, tool: tool.to_owned() });
    }
    repeat(ready, duration).await
}

pub(crate) async fn repeat<R: Repeat>(mut ready: Vec<R>, duration: Duration) -> Result<LoadSummary> {
    for client in &mut ready {
        for _ in 0..WARM_UP {
            client.once().await?;
        }
    }
    let started = Instant::now();
    let mut running = JoinSet::new();
    for mut client in ready {
        running.spawn(async move {
            let mut times_ms = Vec::new();
            while started.elapsed() < duration {
                times_ms.push(timed(client.once()).await?);
            }
            anyhow::Ok(times_ms)
        });
    }
    let mut times_ms = Vec::new();
    while let Some(done) = running.join_next().await {
        times_ms.extend(done??);
    }
    Ok(LoadSummary::of(times_ms, started.elapsed().as_secs_f64()))
}

/// One client that calls repeatedly in the background, with a pause between calls.
pub(crate) struct BackgroundCalls {
    stop: CancellationToken,
    running: JoinSet<Result<Vec<f64>>>,
}

impl BackgroundCalls {
    pub(crate) async fn start(target: &McpEndpoint, tool: &str, pause: Duration) -> Result<Self> {
        let mut client = RigClient::open(target, Duration::from_secs(5)).await?;
        let (stop, tool) = (CancellationToken::new(), tool.to_owned());
        let stopped = stop.clone();
        let mut running = JoinSet::new();
        running.spawn(async move {
            let mut times_ms = Vec::new();
            while !stopped.is_cancelled() {
                times_ms.push(timed(client.echo(&tool)).await?);
                tokio::time::sleep(pause).await;
            }
            Ok(times_ms)
        });
        Ok(Self { stop, running })
    }

    /// Stops and returns the results; an error if any call failed.
    pub(crate) async fn end(mut self) -> Result<LoadSummary> {
        self.stop.cancel();
        let times_ms = self.running.join_next().await.context("it runs until now")???;
        Ok(LoadSummary::of(times_ms, 1.0))
    }
}

/// Returns the duration of some work in milliseconds.
pub(crate) async fn timed<T>(work: impl Future<Output = Result<T>>) -> Result<f64> {
    let started = Instant::now();
    work.await?;
    Ok(started.elapsed().as_secs_f64() * 1000.0)
}

//! Five times the calls that a module can serve: nearly full throughput, immediate `Retry-After` for the rest, and
//! recovery when the rush is over. The module's concurrency is the bottleneck, not the CPU: on a saturated machine the
//! kernel decides who waits.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;
use tokio::task::JoinSet;

use super::check::FaultCheck;
use super::settings::{FaultSettings, config, number};
use crate::rig::TOOLS;
use crate::rig::process::{GatewayChild, UpstreamChild};
use crate::rig::rest::RestClient;
use crate::rig::table::percentile;

/// Duration and concurrency of the calls: 160 per second.
const CALL_MS: u64 = 50;
const SLOTS: usize = 8;
const QUEUE: usize = 16;
const TIMES: f64 = 5.0;
const CONNECTIONS: usize = 100;
const SHED_MS: f64 = 5.0;
const GOODPUT: f64 = 80.0;
const RECOVERS_S: f64 = 2.0;

/// Results of the calls in a period.
#[derive(Default)]
struct OverloadCounts {
    served: usize,
    shed_ms: Vec<f64>,
    without_retry_after: usize,
    other: Vec<String>,
}

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let span = settings.lasts(60, 5);
    let upstream = UpstreamChild::with_delay(CALL_MS)?;
    let folder = tempfile::tempdir()?;
    let mut config = config(&upstream, &json!({ "module_queue": QUEUE }), &[]);
    config["mcpServers"]["well"]["concurrency"] = SLOTS.into();
    let gateway = GatewayChild::launch(std::process::Command::new(&settings.hikite), folder.path(), &config)?;
    gateway.tools(TOOLS).await?;
    // One caller per slot, each calling again as soon as it is answered.
    let calm = Duration::from_secs(5).min(span);
    let peak = rush(&gateway, SLOTS, Duration::ZERO, calm).await?;
    let best = number(peak.served) / calm.as_secs_f64();
    let pause = Duration::from_secs_f64(number(CONNECTIONS) / (best * TIMES));
    crate::print(&format!("  … {best:.0}/s can be served; {:.0}/s for {} s", best * TIMES, span.as_secs()));
    let mut rush_seen = rush(&gateway, CONNECTIONS, pause, span).await?;
    let recovered = recovery(&gateway).await?;
    let share = number(rush_seen.served) / span.as_secs_f64() / best * 100.0;
    let offered = number(rush_seen.served + rush_seen.shed_ms.len()) / span.as_secs_f64();
    let shed = rush_seen.shed_ms.len();
    let p50 = percentile(&mut rush_seen.shed_ms, 0.5);
    let p99 = percentile(&mut rush_seen.shed_ms, 0.99);
    let odd = rush_seen.other;
    Ok(vec![
        FaultCheck::at_least("offered, of what can be served", offered / best * 100.0, 300.0, "%"),
        FaultCheck::at_least(format!("served under the rush, of {best:.0}/s"), share, GOODPUT, "%"),
        FaultCheck::that(
            "told to come back",
            format!("p99 < {SHED_MS} ms"),
            format!("p50 {p50:.1}, p99 {p99:.1} ms of {shed}"),
            shed > 0 && p99 < SHED_MS,
        ),
        FaultCheck::none("told so without Retry-After", rush_seen.without_retry_after, shed),
        FaultCheck::that(
            "other answers",
            "0",
            format!("{} {}", odd.len(), odd.first().map_or("", |first| first)),
            odd.is_empty(),
        ),
        FaultCheck::at_most("as fast as before after", recovered, RECOVERS_S, "s"),
    ])
}

async fn rush(gateway: &GatewayChild, connections: usize, pause: Duration, span: Duration) -> Result<OverloadCounts> {
    let mut running = JoinSet::new();
    for index in 0..connections {
        let client = RestClient::open(gateway.target.address).await?;
        let offset = pause.mul_f64(number(index) / number(connections));
        running.spawn(calls(client, offset, pause, span));
    }
    let mut all = OverloadCounts::default();
    while let Some(done) = running.join_next().await {
        let one = done??;
        all.served += one.served;
        all.shed_ms.extend(one.shed_ms);
        all.without_retry_after += one.without_retry_after;
        all.other.extend(one.other);
    }
    Ok(all)
}

/// Makes a call at fixed intervals, whether the last one was served or not.
async fn calls(mut client: RestClient, offset: Duration, pause: Duration, span: Duration) -> Result<OverloadCounts> {
    tokio::time::sleep(offset).await;
    let (begin, mut due, mut seen) = (Instant::now(), Instant::now(), OverloadCounts::default());
    while begin.elapsed() < span {
        tokio::time::sleep_until(due.into()).await;
        // Missed intervals are skipped.
        due = (due + pause).max(Instant::now());
        let body = r#"{"name":"well:echo","parameters":{"text":"x"}}"#.to_owned();
        let request = client.posting("/v1/tools/call", body)?;
        let started = Instant::now();
        let answer = client.ask(request).await?;
        let took = started.elapsed().as_secs_f64() * 1000.0;
        match answer.status().as_u16() {
            200 => seen.served += 1,
            503 => {
                seen.shed_ms.push(took);
                seen.without_retry_after += usize::from(!answer.headers().contains_key("retry-after"));
            }
            status => seen.other.push(format!("{status}: {}", String::from_utf8_lossy(answer.body()))),
        }
    }
    Ok(seen)
}

/// Returns the seconds until a single call takes at most twice its normal time.
async fn recovery(gateway: &GatewayChild) -> Result<f64> {
    let started = Instant::now();
    let mut client = RestClient::open(gateway.target.address).await?;
    loop {
        let body = r#"{"name":"well:echo","parameters":{"text":"x"}}"#.to_owned();
        let request = client.posting("/v1/tools/call", body)?;
        let begin = Instant::now();
        let is_served = client.ask(request).await?.status().is_success();
        if is_served && begin.elapsed() < Duration::from_millis(2 * CALL_MS) {
            return Ok(started.elapsed().as_secs_f64());
        }
        if started.elapsed() > Duration::from_secs(30) {
            return Ok(f64::INFINITY);
        }
    }
}

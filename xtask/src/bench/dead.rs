//! Cost of ten dead upstreams out of fifty for the others: connections refused, or accepted and never answered; with
//! cached lists and without.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

use super::BenchRun;
use crate::rig::TOOLS;
use crate::rig::load::{LoadSummary, timed};
use crate::rig::process::{GatewayChild, UpstreamChild, http_server};
use crate::rig::table::{ReportTable, TableCell, median};

const UPSTREAMS: usize = 50;
const DYING: usize = 10;
const LISTS: usize = 100;
const CALLS: usize = 2000;

#[derive(Clone, Copy)]
enum UpstreamCase {
    Alive,
    Refused,
    Silent,
    SilentUnknown,
}

const CASES: &[(UpstreamCase, &str)] = &[
    (UpstreamCase::Alive, "none dead"),
    (UpstreamCase::Refused, "10 refuse"),
    (UpstreamCase::Silent, "10 silent"),
    (UpstreamCase::SilentUnknown, "10 silent, lists unknown"),
];

/// One run of one case.
struct DeadSample {
    first_ms: f64,
    tools: usize,
    lists: LoadSummary,
    calls: LoadSummary,
}

pub(super) async fn measure(bench: &BenchRun) -> Result<ReportTable> {
    let living = UpstreamChild::start()?;
    let dying = UpstreamChild::start()?;
    let address = dying.address;
    let servers = servers(living.address, address);
    let known = tempfile::tempdir()?;
    let gateway = GatewayChild::start(&bench.hikite, known.path(), &servers)?;
    gateway.tools(UPSTREAMS * TOOLS).await?;
    gateway.stop()?;
    drop(dying);
    let mut samples: Vec<Vec<DeadSample>> = CASES.iter().map(|_| Vec::new()).collect();
    for _ in 0..bench.rounds {
        for ((case, _), samples) in CASES.iter().zip(&mut samples) {
            let unknown = tempfile::tempdir()?;
            let folder = if matches!(case, UpstreamCase::SilentUnknown) { unknown.path() } else { known.path() };
            let _dying = match case {
                UpstreamCase::Alive => Some(UpstreamChild::again(address)?),
                UpstreamCase::Refused => None,
                UpstreamCase::Silent | UpstreamCase::SilentUnknown => Some(UpstreamChild::silent(address)?),
            };
            samples.push(sample(bench, folder, &servers).await?);
        }
    }
    let rows = CASES.iter().zip(&samples).map(|((_, name), samples)| row(name, samples)).collect();
    let title = format!("{UPSTREAMS} upstreams, medians of {} rounds", bench.rounds);
    let columns = &["upstreams", "tools", "first list ms", "list p50", "list p99", "call p50", "call p99"];
    Ok(ReportTable { name: "dead", title, columns, rows })
}

async fn sample(bench: &BenchRun, folder: &Path, servers: &Value) -> Result<DeadSample> {
    let started = Instant::now();
    let gateway = GatewayChild::start(&bench.hikite, folder, servers)?;
    let mut client = gateway.client().await?;
    let tools = client.tools().await?;
    let first_ms = started.elapsed().as_secs_f64() * 1000.0;
    let mut times_ms = Vec::new();
    for _ in 0..LISTS {
        times_ms.push(timed(client.tools()).await?);
    }
    let lists = LoadSummary::of(times_ms, 1.0);
    let tool = tools.iter().find(|tool| tool.ends_with("echo")).context("no tool of a living upstream")?;
    client.echo(tool).await?;
    let mut times_ms = Vec::new();
    for _ in 0..CALLS {
        times_ms.push(timed(client.echo(tool)).await?);
    }
    let calls = LoadSummary::of(times_ms, 1.0);
    gateway.stop()?;
    Ok(DeadSample { first_ms, tools: tools.len(), lists, calls })
}

fn row(name: &str, samples: &[DeadSample]) -> Vec<TableCell> {
    let of = |value: fn(&DeadSample) -> f64| median(samples.iter().map(value).collect());
    vec![
        TableCell::text(name),
        TableCell::text(samples.first().map_or(0, |sample| sample.tools).to_string()),
        TableCell::Number(of(|sample| sample.first_ms), 1),
        TableCell::Number(of(|sample| sample.lists.p50_ms), 3),
        TableCell::Number(of(|sample| sample.lists.p99_ms), 3),
        TableCell::Number(of(|sample| sample.calls.p50_ms), 3),
        TableCell::Number(of(|sample| sample.calls.p99_ms), 3),
    ]
}

fn servers(living: SocketAddr, dying: SocketAddr) -> Value {
    let servers = (0..UPSTREAMS).map(|index| {
        let address = if index < UPSTREAMS - DYING { living } else { dying };
        (format!("s{index}"), http_server(address, index))
    });
    Value::Object(servers.collect::<Map<_, _>>())
}

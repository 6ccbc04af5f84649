//! Time from process start to the first `tools/list`, with lists cached by an earlier run.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::{Map, Value};

use super::BenchRun;
use crate::rig::TOOLS;
use crate::rig::client::RigClient;
use crate::rig::process::{GatewayChild, UpstreamChild, http_server, stdio_server};
use crate::rig::table::{ReportTable, TableCell, percentile};

const STARTS: usize = 7;
/// Every this-many-th upstream is a stdio server.
const STDIO_EVERY: usize = 5;

pub(super) async fn measure(bench: &BenchRun) -> Result<ReportTable> {
    let upstream = UpstreamChild::start()?;
    let mut rows = Vec::new();
    for count in [1, 50] {
        let servers = servers(&upstream, count)?;
        let folder = tempfile::tempdir()?;
        let gateway = GatewayChild::start(&bench.hikite, folder.path(), &servers)?;
        gateway.tools(count * TOOLS).await?;
        gateway.stop()?;
        let mut times_ms = Vec::new();
        for _ in 0..STARTS * bench.rounds {
            let started = Instant::now();
            let gateway = GatewayChild::start(&bench.hikite, folder.path(), &servers)?;
            let mut client = RigClient::open(&gateway.target, Duration::from_secs(10)).await?;
            let tools = client.tools().await?;
            times_ms.push(started.elapsed().as_secs_f64() * 1000.0);
            ensure!(tools.len() == count * TOOLS, "{} tools from a warm cache", tools.len());
            gateway.stop()?;
        }
        rows.push(vec![
            TableCell::text(count.to_string()),
            TableCell::Number(percentile(&mut times_ms, 0.5), 1),
            TableCell::Number(percentile(&mut times_ms, 1.0), 1),
        ]);
    }
    let title = format!("process start to first tools/list, warm cache, {} starts", STARTS * bench.rounds);
    Ok(ReportTable { name: "start", title, columns: &["upstreams", "median ms", "worst ms"], rows })
}

fn servers(upstream: &UpstreamChild, count: usize) -> Result<Value> {
    let mut servers = Map::new();
    for index in 0..count {
        let is_program = index % STDIO_EVERY == STDIO_EVERY - 1;
        let server = if is_program { stdio_server(index)? } else { http_server(upstream.address, index) };
        servers.insert(format!("s{index}"), server);
    }
    Ok(Value::Object(servers))
}

//! `tools/call` directly to an upstream and through hikite, in alternating turns.

use std::path::Path;

use anyhow::Result;
use serde_json::{Value, json};

use super::BenchRun;
use crate::rig::process::{GatewayChild, UpstreamChild, http_server};
use crate::rig::table::{ReportTable, TableCell, median};
use crate::rig::{TOOLS, load};

const CLIENTS: &[usize] = &[1, 16, 64];

pub(super) async fn measure(bench: &BenchRun) -> Result<ReportTable> {
    let upstream = UpstreamChild::start()?;
    let folder = tempfile::tempdir()?;
    let servers = json!({ "bench": http_server(upstream.address, 0) });
    let mut sides = vec![BuildUnderTest::start("hikite", &bench.hikite, &folder.path().join("own"), &servers).await?];
    if let Some(other) = &bench.against {
        sides.push(BuildUnderTest::start("against", other, &folder.path().join("other"), &servers).await?);
    }
    let mut rows = Vec::new();
    for clients in CLIENTS {
        let mut direct = Vec::new();
        for _ in 0..bench.rounds {
            direct.push(load::run(&upstream.target(), "echo", *clients, bench.seconds).await?);
            for side in &mut sides {
                side.measure(*clients, bench).await?;
            }
        }
        rows.push(row(*clients, "direct", &direct, &direct, None));
        for side in &mut sides {
            let (loads, cpu) = (std::mem::take(&mut side.loads), std::mem::take(&mut side.cpu));
            rows.push(row(*clients, side.name, &loads, &direct, Some(median(cpu))));
        }
    }
    for side in sides {
        side.gateway.stop()?;
    }
    let title = format!("tools/call, medians of {} rounds of {} s", bench.rounds, bench.seconds.as_secs_f64());
    let columns = &["clients", "side", "req/s", "of direct", "p50 ms", "p99 ms", "CPU s/10k"];
    Ok(ReportTable { name: "calls", title, columns, rows })
}

/// One build of hikite with its results by number of clients.
struct BuildUnderTest {
    name: &'static str,
    gateway: GatewayChild,
    tool: String,
    loads: Vec<load::LoadSummary>,
    cpu: Vec<f64>,
}

impl BuildUnderTest {
    async fn start(name: &'static str, program: &Path, folder: &Path, servers: &Value) -> Result<Self> {
        std::fs::create_dir(folder)?;
        let gateway = GatewayChild::start(program, folder, servers)?;
        let tools = gateway.tools(TOOLS).await?;
        let tool = tools.iter().find(|tool| tool.ends_with("echo")).cloned().unwrap_or_default();
        Ok(Self { name, gateway, tool, loads: Vec::new(), cpu: Vec::new() })
    }

    async fn measure(&mut self, clients: usize, bench: &BenchRun) -> Result<()> {
        let before = self.gateway.cpu_seconds()?;
        let load = load::run(&self.gateway.target, &self.tool, clients, bench.seconds).await?;
        #[expect(clippy::cast_precision_loss, reason = "far fewer calls than a double counts exactly")]
        self.cpu.push((self.gateway.cpu_seconds()? - before) / load.calls as f64 * 10_000.0);
        self.loads.push(load);
        Ok(())
    }
}

fn row(
    clients: usize,
    side: &str,
    loads: &[load::LoadSummary],
    direct: &[load::LoadSummary],
    cpu: Option<f64>,
) -> Vec<TableCell> {
    let of = |value: fn(&load::LoadSummary) -> f64| median(loads.iter().map(value).collect());
    // A ratio within each round: the machine may be slower in the next.
    let ratios = loads.iter().zip(direct).map(|(load, direct)| load.per_second / direct.per_second);
    vec![
        TableCell::text(clients.to_string()),
        TableCell::text(side),
        TableCell::Number(of(|load| load.per_second), 0),
        TableCell::Number(median(ratios.collect()), 2),
        TableCell::Number(of(|load| load.p50_ms), 3),
        TableCell::Number(of(|load| load.p99_ms), 3),
        cpu.map_or(TableCell::text("-"), |cpu| TableCell::Number(cpu, 2)),
    ]
}

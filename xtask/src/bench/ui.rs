//! Every UI page, with two thousand tools and a hundred thousand audit records.

use std::time::Duration;

use anyhow::{Result, ensure};
use serde_json::json;

use super::BenchRun;
use crate::rig::load;
use crate::rig::process::{GatewayChild, UpstreamChild, http_server};
use crate::rig::rest::RestClient;
use crate::rig::table::{ReportTable, TableCell, median};

const TOOLS: usize = 2_000;
const RECORDS: usize = 100_000;
const CLIENTS: usize = 16;
/// Duration per page and round, with one client.
const PAGE_DURATION: Duration = Duration::from_secs(1);
const PAGES: &[&str] = &[
    "/ui",
    "/ui/start",
    "/ui/modules",
    "/ui/modules/bench",
    "/ui/tools/bench:echo",
    "/ui/categories",
    "/ui/projects",
    "/ui/projects/bench",
    "/ui/accounts",
    "/ui/playground?q=echo+a+text",
    "/ui/batch",
    "/ui/pins",
    "/ui/audit",
    "/ui/audit?kind=call&tool=echo&before=50000",
    "/ui/audit/50000",
    "/ui/access",
];

pub(super) async fn measure(bench: &BenchRun) -> Result<ReportTable> {
    let (folder, upstream) = (tempfile::tempdir()?, UpstreamChild::with_tools(TOOLS)?);
    let servers = json!({ "bench": http_server(upstream.address, 0) });
    let gateway = GatewayChild::start(&bench.hikite, folder.path(), &servers)?;
    gateway.tools(TOOLS).await?;
    let mut rest = RestClient::open(gateway.target.address).await?;
    let made = rest.post("/v1/projects", json!({ "name": "bench" }).to_string()).await?;
    ensure!(std::str::from_utf8(&made)?.contains("bench"), "no project: {made:?}");
    fill(&gateway).await?;
    let mut rows = Vec::new();
    for page in PAGES {
        let mut loads = Vec::new();
        for _ in 0..bench.rounds {
            let client = RestClient::open(gateway.target.address).await?;
            loads.push(load::repeat(vec![PageViews { client, page }], PAGE_DURATION).await?);
        }
        let of = |value: fn(&load::LoadSummary) -> f64| median(loads.iter().map(value).collect());
        let cells = [of(|load| load.p50_ms), of(|load| load.p99_ms)].map(|ms| TableCell::Number(ms, 2));
        rows.push([TableCell::text(*page)].into_iter().chain(cells).collect());
    }
    let title = format!("pages with {TOOLS} tools and {RECORDS} records, medians of {} rounds", bench.rounds);
    Ok(ReportTable { name: "ui", title, columns: &["page", "p50 ms", "p99 ms"], rows })
}

/// Makes calls until the audit has enough records.
async fn fill(gateway: &GatewayChild) -> Result<()> {
    let mut clients = Vec::new();
    for _ in 0..CLIENTS {
        clients.push(gateway.client().await?);
    }
    let mut running = tokio::task::JoinSet::new();
    for mut client in clients {
        running.spawn(async move {
            for _ in 0..RECORDS / CLIENTS {
                client.echo("echo").await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    Ok(())
}

struct PageViews {
    client: RestClient,
    page: &'static str,
}

impl load::Repeat for PageViews {
    async fn once(&mut self) -> Result<()> {
        let answer = self.client.get(self.page).await?;
        ensure!(answer.trim_ascii_end().ends_with(b"</html>"), "{} is no page", self.page);
        Ok(())
    }
}

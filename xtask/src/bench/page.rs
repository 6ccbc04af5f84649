//! `GET /v1/tools`, one page of fifty, among few tools and among ten thousand.

use anyhow::{Result, ensure};
use serde_json::json;

use super::BenchRun;
use crate::rig::load;
use crate::rig::process::{GatewayChild, UpstreamChild, http_server};
use crate::rig::rest::RestClient;
use crate::rig::table::{ReportTable, TableCell, median};

const MANY: usize = 10_000;
/// Number of tools, and the requested page.
const CASES: &[(usize, usize)] = &[(50, 1), (MANY, 1), (MANY, 100), (MANY, 200)];
const CLIENTS: usize = 4;

pub(super) async fn measure(bench: &BenchRun) -> Result<ReportTable> {
    let folder = tempfile::tempdir()?;
    let mut sides = Vec::new();
    for count in [50, MANY] {
        let upstream = UpstreamChild::with_tools(count)?;
        let own = folder.path().join(count.to_string());
        std::fs::create_dir(&own)?;
        let gateway = GatewayChild::start(&bench.hikite, &own, &json!({ "bench": http_server(upstream.address, 0) }))?;
        gateway.tools(count).await?;
        sides.push((count, gateway, upstream));
    }
    let mut loads: Vec<Vec<load::LoadSummary>> = CASES.iter().map(|_| Vec::new()).collect();
    for _ in 0..bench.rounds {
        for ((count, page), loads) in CASES.iter().zip(&mut loads) {
            let Some((_, gateway, _)) = sides.iter().find(|(tools, ..)| tools == count) else { continue };
            let mut ready = Vec::new();
            for _ in 0..CLIENTS {
                ready.push(PageRequests { client: RestClient::open(gateway.target.address).await?, page: *page });
            }
            loads.push(load::repeat(ready, bench.seconds).await?);
        }
    }
    let rows = CASES.iter().zip(&loads).map(|((count, page), loads)| {
        let of = |value: fn(&load::LoadSummary) -> f64| median(loads.iter().map(value).collect());
        vec![
            TableCell::text(count.to_string()),
            TableCell::text(page.to_string()),
            TableCell::Number(of(|load| load.per_second), 0),
            TableCell::Number(of(|load| load.p50_ms), 3),
            TableCell::Number(of(|load| load.p99_ms), 3),
        ]
    });
    let title = format!("GET /v1/tools?limit=50, {CLIENTS} clients, medians of {} rounds", bench.rounds);
    let columns = &["tools", "page", "req/s", "p50 ms", "p99 ms"];
    Ok(ReportTable { name: "pages", title, columns, rows: rows.collect() })
}

struct PageRequests {
    client: RestClient,
    page: usize,
}

impl load::Repeat for PageRequests {
    async fn once(&mut self) -> Result<()> {
        let answer = self.client.get(&format!("/v1/tools?limit=50&page={}", self.page)).await?;
        let page = format!("\"page\":{}", self.page);
        ensure!(std::str::from_utf8(&answer)?.contains(&page), "a wrong page: {answer:?}");
        Ok(())
    }
}

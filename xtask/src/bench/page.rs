//! `GET /v1/tools`, one page of fifty, among few tools and among ten thousand.

use anyhow::{Result, ensure};
use serde_json::json;

use super::Bench;
use crate::rig::load;
use crate::rig::process::{Gateway, Upstream, http_server};
use crate::rig::rest::Rest;
use crate::rig::table::{Cell, Table, median};

const MANY: usize = 10_000;
/// Number of tools, and the requested page.
const CASES: &[(usize, usize)] = &[(50, 1), (MANY, 1), (MANY, 100), (MANY, 200)];
const CLIENTS: usize = 4;

pub(super) async fn measure(bench: &Bench) -> Result<Table> {
    let folder = tempfile::tempdir()?;
    let mut sides = Vec::new();
    for count in [50, MANY] {
        let upstream = Upstream::with_tools(count)?;
        let own = folder.path().join(count.to_string());
        std::fs::create_dir(&own)?;
        let gateway =
            Gateway::start(&bench.hikite, &own, &json!({ "bench": http_server(upstream.address, 0) }))?;
        gateway.tools(count).await?;
        sides.push((count, gateway, upstream));
    }
    let mut loads: Vec<Vec<load::Load>> = CASES.iter().map(|_| Vec::new()).collect();
    for _ in 0..bench.rounds {
        for ((count, page), loads) in CASES.iter().zip(&mut loads) {
            let Some((_, gateway, _)) = sides.iter().find(|(tools, ..)| tools == count) else { continue };
            let mut ready = Vec::new();
            for _ in 0..CLIENTS {
                ready.push(Page { client: Rest::open(gateway.target.address).await?, page: *page });
            }
            loads.push(load::repeat(ready, bench.seconds).await?);
        }
    }
    let rows = CASES.iter().zip(&loads).map(|((count, page), loads)| {
        let of = |value: fn(&load::Load) -> f64| median(loads.iter().map(value).collect());
        vec![
            Cell::text(count.to_string()),
            Cell::text(page.to_string()),
            Cell::Number(of(|load| load.per_second), 0),
            Cell::Number(of(|load| load.p50_ms), 3),
            Cell::Number(of(|load| load.p99_ms), 3),
        ]
    });
    let title = format!("GET /v1/tools?limit=50, {CLIENTS} clients, medians of {} rounds", bench.rounds);
    let columns = &["tools", "page", "req/s", "p50 ms", "p99 ms"];
    Ok(Table { name: "pages", title, columns, rows: rows.collect() })
}

struct Page {
    client: Rest,
    page: usize,
}

impl load::Repeat for Page {
    async fn once(&mut self) -> Result<()> {
        let answer = self.client.get(&format!("/v1/tools?limit=50&page={}", self.page)).await?;
        let page = format!("\"page\":{}", self.page);
        ensure!(std::str::from_utf8(&answer)?.contains(&page), "a wrong page: {answer:?}");
        Ok(())
    }
}

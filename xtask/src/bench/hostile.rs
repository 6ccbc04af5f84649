//! Inputs crafted to take long, at four sizes, each twice the previous: the time grows in proportion or ends at a
//! limit. Sent to the built program over HTTP, with one request thread, while another client polls `/health`; config
//! files go through `hikite config check`.

mod case;
mod config;
mod health;

use std::time::Duration;

use anyhow::{Context, Result};
use bytes::Bytes;
use http_body_util::Full;
use hyper::Request;
use hyper::header::{CONTENT_TYPE, HOST};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::BenchRun;
use crate::rig::process::{GatewayChild, UpstreamChild, http_server};
use crate::rig::rest::RestClient;
use crate::rig::table::{ReportTable, TableCell, median};
use case::{CASES, HostileCase, HostileRequest, RequestKind, SIZES};
use health::HealthProbe;

/// Highest growth exponent that still counts as linear: caches and the clock add noise.
const LINEAR: f64 = 1.4;
/// A rejected response with a lower growth exponent than this has met a limit.
const CAPPED: f64 = 0.5;
/// Faster responses say nothing about growth.
const NOTHING_MS: f64 = 5.0;
/// Timeout of one request; something that takes longer grows.
const REQUEST: Duration = Duration::from_secs(60);

/// Result of one case.
struct HostileRow {
    name: String,
    sizes: Vec<usize>,
    times_ms: Vec<f64>,
    /// Response status of the largest input.
    status: u16,
    /// Longest `/health` response meanwhile.
    health_ms: Option<f64>,
}

pub(super) async fn measure(bench: &BenchRun) -> Result<ReportTable> {
    let upstream = UpstreamChild::start()?;
    let folder = tempfile::tempdir()?;
    let mut program = std::process::Command::new(&bench.hikite);
    program.env("HIKITE_THREADS", "1");
    let config = json!({
        "server": { "surface": ["direct"], "rate_limit": "1000000/s" },
        "mcpServers": { "bench": http_server(upstream.address, 0) },
    });
    let gateway = GatewayChild::launch(program, folder.path(), &config)?;
    let mut asker = HostileClient::open(&gateway, folder.path()).await?;
    asker.prepare().await?;
    let mut rows = Vec::new();
    for case in CASES {
        rows.push(asker.case(case, bench.rounds).await.with_context(|| format!("case `{}`", case.name))?);
    }
    gateway.stop()?;
    for case in config::CASES {
        rows.push(config::row(&bench.hikite, case, bench.rounds)?);
    }
    let title = format!("input that was made to take long, medians of {} in ms; one thread for requests", bench.rounds);
    let columns = &["input", "smallest", "ms", "×2", "×4", "×8", "growth", "answer", "/health at most ms", "verdict"];
    Ok(ReportTable { name: "hostile", title, columns, rows: rows.iter().map(HostileRow::cells).collect() })
}

impl HostileRow {
    /// Returns the exponent by which the time grows with the size, from the smallest to the largest input.
    fn growth(&self) -> f64 {
        let (first, last) = (self.times_ms.first().copied(), self.times_ms.last().copied().unwrap_or_default());
        let (from, to) = (first.unwrap_or_default().max(NOTHING_MS), last.max(NOTHING_MS));
        let doublings = f64::from(u32::try_from(self.times_ms.len().saturating_sub(1)).unwrap_or(1)).max(1.0);
        (to / from).log2() / doublings
    }

    fn verdict(&self) -> &'static str {
        match self.growth() {
            growth if growth > LINEAR => "GROWS",
            growth if growth < CAPPED && self.status >= 400 => "capped",
            _ => "linear",
        }
    }

    fn cells(&self) -> Vec<TableCell> {
        let mut cells = vec![
            TableCell::text(self.name.as_str()),
            TableCell::text(self.sizes.first().map(ToString::to_string).unwrap_or_default()),
        ];
        cells.extend(self.times_ms.iter().map(|ms| TableCell::Number(*ms, 1)));
        cells.push(TableCell::Number(self.growth(), 2));
        cells.push(TableCell::text(if self.status == 0 { "-".into() } else { self.status.to_string() }));
        cells.push(self.health_ms.map_or(TableCell::text("-"), |ms| TableCell::Number(ms, 1)));
        cells.push(TableCell::text(self.verdict()));
        cells
    }
}

/// A client with the owner's token, and one that polls `/health`.
struct HostileClient {
    rest: RestClient,
    host: String,
    health: HealthProbe,
}

impl HostileClient {
    async fn open(gateway: &GatewayChild, folder: &std::path::Path) -> Result<Self> {
        let address = gateway.target.address;
        let rest = RestClient::open(address).await?;
        let token = std::fs::read_to_string(folder.join("data/token")).context("no token was made")?;
        let rest = rest.with_token(token.trim())?;
        Ok(Self { rest, host: address.to_string(), health: HealthProbe::watch(address).await? })
    }

    /// Registers the tools to call, and waits for the upstream's tools.
    async fn prepare(&mut self) -> Result<()> {
        for form in case::tools() {
            self.rest.post("/v1/tools", form.to_string()).await?;
        }
        let started = Instant::now();
        loop {
            let call = json!({ "name": "bench:echo", "parameters": { "text": "x" } });
            match self.rest.post("/v1/tools/call", call.to_string()).await {
                Ok(_) => return Ok(()),
                Err(error) if started.elapsed() > REQUEST => {
                    return Err(error.context("no call gets through"));
                }
                Err(_) => tokio::time::sleep(Duration::from_millis(50)).await,
            }
        }
    }

    async fn case(&mut self, case: &HostileCase, rounds: usize) -> Result<HostileRow> {
        let sizes: Vec<usize> = (0..SIZES).map(|doubled| case.smallest << doubled).collect();
        let (mut times_ms, mut status) = (Vec::new(), 0);
        self.health.begin();
        for size in &sizes {
            let mut times = Vec::new();
            for round in 0..rounds {
                let sent = (case.make)(*size, round);
                let started = Instant::now();
                for sent in sent {
                    status = tokio::time::timeout(REQUEST, self.send(sent))
                        .await
                        .with_context(|| format!("no answer to {size} within {REQUEST:?}"))??;
                }
                times.push(started.elapsed().as_secs_f64() * 1000.0);
            }
            times_ms.push(median(times));
        }
        let health_ms = Some(self.health.longest_ms());
        Ok(HostileRow { name: case.name.into(), sizes, times_ms, status, health_ms })
    }

    async fn send(&mut self, sent: HostileRequest) -> Result<u16> {
        let (kind, method) = match sent.kind {
            RequestKind::Json => ("application/json", "POST"),
            RequestKind::Form => ("application/x-www-form-urlencoded", "POST"),
            RequestKind::Query => ("", "GET"),
        };
        let mut request = Request::builder().method(method).uri(sent.path).header(HOST, &self.host);
        if !kind.is_empty() {
            request = request.header(CONTENT_TYPE, kind);
        }
        let response = self.rest.ask(request.body(Full::from(Bytes::from(sent.body)))?).await?;
        let status = response.status().as_u16();
        anyhow::ensure!(response.body().len() < 4 << 20, "an answer of {} bytes", response.body().len());
        Ok(if is_failure(response.body()) { 422 } else { status })
    }
}

/// Returns `true` if a call was answered with an embedded error.
fn is_failure(body: &Bytes) -> bool {
    let body: Option<Value> = serde_json::from_slice(body).ok();
    body.is_some_and(|body| body["success"] == false && body["code"].is_null())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(times_ms: &[f64], status: u16) -> HostileRow {
        let sizes = vec![1; times_ms.len()];
        HostileRow { name: "x".into(), sizes, times_ms: times_ms.to_vec(), status, health_ms: None }
    }

    #[test]
    fn what_grows_faster_than_its_input_is_seen() {
        assert_eq!(row(&[10.0, 20.0, 41.0, 80.0], 200).verdict(), "linear");
        assert_eq!(row(&[10.0, 20.0, 41.0, 20.0], 400).verdict(), "capped");
        assert_eq!(row(&[10.0, 40.0, 160.0, 640.0], 200).verdict(), "GROWS");
        assert_eq!(row(&[0.1, 0.4, 1.6, 4.4], 200).verdict(), "linear");
    }
}

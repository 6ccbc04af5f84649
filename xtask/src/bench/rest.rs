//! `POST /v1/tools/call` compared with the same call directly to its upstream, in alternating turns.

use anyhow::{Result, ensure};
use serde_json::json;

use super::BenchRun;
use crate::rig::process::{GatewayChild, UpstreamChild, http_server};
use crate::rig::rest::RestClient;
use crate::rig::table::{ReportTable, TableCell, median};
use crate::rig::{TOOLS, load};

const CLIENTS: &[usize] = &[1, 16, 64];

pub(super) async fn measure(bench: &BenchRun) -> Result<ReportTable> {
    let upstream = UpstreamChild::start()?;
    let folder = tempfile::tempdir()?;
    let servers = json!({ "bench": http_server(upstream.address, 0) });
    let gateway = GatewayChild::start(&bench.hikite, folder.path(), &servers)?;
    gateway.tools(TOOLS).await?;
    let mut rows = Vec::new();
    for clients in CLIENTS {
        let (mut direct, mut rest, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..bench.rounds {
            direct.push(load::run(&upstream.target(), "echo", *clients, bench.seconds).await?);
            let mut ready = Vec::new();
            for _ in 0..*clients {
                ready.push(RestCalls { client: RestClient::open(gateway.target.address).await?, last: 0 });
            }
            let before = gateway.cpu_seconds()?;
            let load = load::repeat(ready, bench.seconds).await?;
            #[expect(clippy::cast_precision_loss, reason = "far fewer calls than a double counts exactly")]
            cpu.push((gateway.cpu_seconds()? - before) / load.calls as f64 * 10_000.0);
            rest.push(load);
        }
        let ratios = rest.iter().zip(&direct).map(|(rest, direct)| rest.per_second / direct.per_second);
        let ratio = median(ratios.collect());
        rows.push(row(*clients, "direct", &direct, 1.0, None));
        rows.push(row(*clients, "REST", &rest, ratio, Some(median(cpu))));
    }
    gateway.stop()?;
    let title = format!("POST /v1/tools/call, medians of {} rounds of {} s", bench.rounds, bench.seconds.as_secs_f64());
    let columns = &["clients", "side", "req/s", "of direct", "p50 ms", "p99 ms", "CPU s/10k"];
    Ok(ReportTable { name: "rest", title, columns, rows })
}

fn row(clients: usize, side: &str, loads: &[load::LoadSummary], ratio: f64, cpu: Option<f64>) -> Vec<TableCell> {
    let of = |value: fn(&load::LoadSummary) -> f64| median(loads.iter().map(value).collect());
    vec![
        TableCell::text(clients.to_string()),
        TableCell::text(side),
        TableCell::Number(of(|load| load.per_second), 0),
        TableCell::Number(ratio, 2),
        TableCell::Number(of(|load| load.p50_ms), 3),
        TableCell::Number(of(|load| load.p99_ms), 3),
        cpu.map_or(TableCell::text("-"), |cpu| TableCell::Number(cpu, 2)),
    ]
}

struct RestCalls {
    client: RestClient,
    last: u64,
}

impl load::Repeat for RestCalls {
    async fn once(&mut self) -> Result<()> {
        self.last += 1;
        let text = format!("marker-{}", self.last);
        let body = format!(r#"{{"name":"bench:echo","parameters":{{"text":"{text}"}}}}"#);
        let answer = self.client.post("/v1/tools/call", body).await?;
        let answer = std::str::from_utf8(&answer)?;
        ensure!(answer.contains(&text) && answer.contains("\"success\":true"), "a wrong answer: {answer}");
        Ok(())
    }
}

//! `POST /v1/tools/call` compared with the same call directly to its upstream, in alternating turns.

use anyhow::{Result, ensure};
use serde_json::json;

use super::Bench;
use crate::rig::process::{Gateway, Upstream, http_server};
use crate::rig::rest::Rest;
use crate::rig::table::{Cell, Table, median};
use crate::rig::{TOOLS, load};

const CLIENTS: &[usize] = &[1, 16, 64];

pub(super) async fn measure(bench: &Bench) -> Result<Table> {
    let upstream = Upstream::start()?;
    let folder = tempfile::tempdir()?;
    let servers = json!({ "bench": http_server(upstream.address, 0) });
    let gateway = Gateway::start(&bench.hikite, folder.path(), &servers)?;
    gateway.tools(TOOLS).await?;
    let mut rows = Vec::new();
    for clients in CLIENTS {
        let (mut direct, mut rest, mut cpu) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..bench.rounds {
            direct.push(load::run(&upstream.target(), "echo", *clients, bench.seconds).await?);
            let mut ready = Vec::new();
            for _ in 0..*clients {
                ready.push(Call { client: Rest::open(gateway.target.address).await?, last: 0 });
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
    let title = format!(
        "POST /v1/tools/call, medians of {} rounds of {} s",
        bench.rounds,
        bench.seconds.as_secs_f64()
    );
    let columns = &["clients", "side", "req/s", "of direct", "p50 ms", "p99 ms", "CPU s/10k"];
    Ok(Table { name: "rest", title, columns, rows })
}

fn row(clients: usize, side: &str, loads: &[load::Load], ratio: f64, cpu: Option<f64>) -> Vec<Cell> {
    let of = |value: fn(&load::Load) -> f64| median(loads.iter().map(value).collect());
    vec![
        Cell::text(clients.to_string()),
        Cell::text(side),
        Cell::Number(of(|load| load.per_second), 0),
        Cell::Number(ratio, 2),
        Cell::Number(of(|load| load.p50_ms), 3),
        Cell::Number(of(|load| load.p99_ms), 3),
        cpu.map_or(Cell::text("-"), |cpu| Cell::Number(cpu, 2)),
    ]
}

struct Call {
    client: Rest,
    last: u64,
}

impl load::Repeat for Call {
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

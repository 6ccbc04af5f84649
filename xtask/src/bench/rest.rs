//! `POST /v1/tools/call` against the same call straight to its upstream, in turns.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Result, bail, ensure};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::client::conn::http1::SendRequest;
use hyper::header::{CONTENT_TYPE, HOST};
use serde_json::json;
use tokio::task::JoinSet;

use super::client::connect;
use super::process::{Gateway, Upstream, http_server};
use super::table::{Cell, Table, median};
use super::{Bench, TOOLS, load};

const CLIENTS: &[usize] = &[1, 16, 64];
const PATIENCE: Duration = Duration::from_secs(5);

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

/// A client of the REST API over one kept connection.
pub(super) struct Rest {
    address: SocketAddr,
    sender: SendRequest<Full<Bytes>>,
    /// Moves the bytes; ends with the client.
    _driver: JoinSet<()>,
}

impl Rest {
    pub(super) async fn open(address: SocketAddr) -> Result<Self> {
        let (sender, driver) = connect(address, PATIENCE).await?;
        Ok(Self { address, sender, _driver: driver })
    }

    pub(super) async fn get(&mut self, path: &str) -> Result<Bytes> {
        let request = Request::get(path).header(HOST, self.address.to_string());
        self.send(request.body(Full::default())?).await
    }

    pub(super) async fn post(&mut self, path: &str, body: String) -> Result<Bytes> {
        let request = Request::post(path)
            .header(HOST, self.address.to_string())
            .header(CONTENT_TYPE, "application/json");
        self.send(request.body(Full::from(body))?).await
    }

    async fn send(&mut self, request: Request<Full<Bytes>>) -> Result<Bytes> {
        self.sender.ready().await?;
        let response = self.sender.send_request(request).await?;
        let status = response.status();
        let body = response.into_body().collect().await?.to_bytes();
        if !status.is_success() {
            bail!("{status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(body)
    }
}

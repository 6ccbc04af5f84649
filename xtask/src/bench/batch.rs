//! A batch of a hundred independent calls, compared with the same calls made concurrently and directly to their
//! upstream: by a bare HTTP client and by published SDKs, with an upstream that answers at once and with one that is as
//! slow as a remote service.

mod published;

use std::net::SocketAddr;
use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::BenchRun;
use super::peer::Install;
use crate::rig::TOOLS;
use crate::rig::client::RigClient;
use crate::rig::load::timed;
use crate::rig::process::{GatewayChild, UpstreamChild, http_server};
use crate::rig::rest::RestClient;
use crate::rig::table::{ReportTable, TableCell, median, percentile};

const CALLS: usize = 100;
/// Delays of the upstream in milliseconds.
const DELAYS: &[u64] = &[0, 20];
const WARM_UP: usize = 5;

/// Returns the clients that can be installed.
pub(super) fn clients() -> impl Iterator<Item = (&'static str, Install)> {
    published::ALL.iter().map(|client| (client.name, client.install))
}

pub(super) async fn measure(bench: &BenchRun) -> Result<ReportTable> {
    let mut rows = Vec::new();
    for delay in DELAYS {
        let upstream = UpstreamChild::with_delay(*delay)?;
        let folder = tempfile::tempdir()?;
        let servers = json!({ "bench": http_server(upstream.address, 0) });
        let (usual, few) = (folder.path().join("usual"), folder.path().join("few"));
        let few_at_once = ("16 at once", json!({ "batch_concurrency": 16 }));
        let mut sides = [
            BatchSide::start(bench, &usual, &servers, ("batch", json!({}))).await?,
            BatchSide::start(bench, &few, &servers, few_at_once).await?,
        ];
        let direct = DirectClients::open(&upstream, bench).await?;
        rows.extend(bare(bench, *delay, direct, &mut sides).await?);
        rows.extend(published(bench, *delay, [upstream.address, sides[0].gateway.target.address])?);
        for side in sides {
            side.gateway.stop()?;
        }
    }
    let title = format!("{CALLS} independent calls, in turns");
    let columns = &["upstream ms", "client", "side", "rounds", "p50 ms", "p99 ms", "times direct"];
    Ok(ReportTable { name: "batch", title, columns, rows })
}

/// Measures with a bare HTTP client.
async fn bare(
    bench: &BenchRun,
    delay: u64,
    mut direct: DirectClients,
    sides: &mut [BatchSide],
) -> Result<Vec<Vec<TableCell>>> {
    const NAME: &str = "bare HTTP";
    for _ in 0..WARM_UP {
        direct.once().await?;
        for side in &mut *sides {
            side.once().await?;
        }
    }
    direct.times_ms.clear();
    for side in &mut *sides {
        side.times_ms.clear();
    }
    let (started, whole) = (Instant::now(), bench.whole()?);
    while started.elapsed() < whole {
        direct.once().await?;
        for side in &mut *sides {
            side.once().await?;
        }
    }
    let direct = direct.times_ms;
    let mut rows = vec![row((delay, NAME, "direct"), &direct, &direct)];
    rows.extend(sides.iter().map(|side| row((delay, NAME, side.name), &side.times_ms, &direct)));
    Ok(rows)
}

/// Measures with the installed SDKs, each against the upstream itself and against hikite.
fn published(bench: &BenchRun, delay: u64, [upstream, gateway]: [SocketAddr; 2]) -> Result<Vec<Vec<TableCell>>> {
    let folder = tempfile::tempdir()?;
    let words = [
        format!("http://{upstream}/mcp"),
        format!("http://{gateway}/mcp?surface=modules"),
        CALLS.to_string(),
        bench.whole()?.as_secs_f64().to_string(),
    ];
    let mut rows = Vec::new();
    for client in published::ALL {
        let Some(times) = client.run(folder.path(), &words)? else {
            crate::print_error(&format!("{}: not installed (`--install-peers`)", client.name));
            continue;
        };
        rows.push(row((delay, client.name, "direct"), &times.direct, &times.direct));
        rows.push(row((delay, client.name, "batch"), &times.batch, &times.direct));
    }
    Ok(rows)
}

#[expect(clippy::cast_precision_loss, reason = "far fewer rounds than a double counts exactly")]
fn row((delay, client, side): (u64, &str, &str), times_ms: &[f64], direct: &[f64]) -> Vec<TableCell> {
    // A ratio within each turn: the machine may be slower in the next.
    let ratios = times_ms.iter().zip(direct).map(|(own, direct)| own / direct);
    vec![
        TableCell::text(delay.to_string()),
        TableCell::text(client),
        TableCell::text(side),
        TableCell::Number(times_ms.len() as f64, 0),
        TableCell::Number(median(times_ms.to_vec()), 2),
        TableCell::Number(percentile(&mut times_ms.to_vec(), 0.99), 2),
        TableCell::Number(median(ratios.collect()), 2),
    ]
}

/// One client connection per concurrent call.
struct DirectClients {
    clients: Vec<RigClient>,
    times_ms: Vec<f64>,
}

impl DirectClients {
    async fn open(upstream: &UpstreamChild, bench: &BenchRun) -> Result<Self> {
        let mut clients = Vec::with_capacity(CALLS);
        for _ in 0..CALLS {
            clients.push(RigClient::open(&upstream.target(), bench.seconds).await?);
        }
        Ok(Self { clients, times_ms: Vec::new() })
    }

    async fn once(&mut self) -> Result<()> {
        let (clients, back) = (std::mem::take(&mut self.clients), &mut self.clients);
        let all = async {
            let mut running = JoinSet::new();
            for mut client in clients {
                running.spawn(async move { client.echo("echo").await.map(|()| client) });
            }
            while let Some(done) = running.join_next().await {
                back.push(done??);
            }
            Ok(())
        };
        self.times_ms.push(timed(all).await?);
        Ok(())
    }
}

/// A hikite with its own limits, and the batch that is sent to it.
struct BatchSide {
    name: &'static str,
    gateway: GatewayChild,
    client: RestClient,
    batch: String,
    times_ms: Vec<f64>,
}

impl BatchSide {
    async fn start(
        bench: &BenchRun,
        folder: &Path,
        servers: &Value,
        (name, limits): (&'static str, Value),
    ) -> Result<Self> {
        std::fs::create_dir(folder)?;
        let gateway = GatewayChild::start_with(&bench.hikite, folder, servers, &limits)?;
        gateway.tools(TOOLS).await?;
        let task = |number: usize| {
            let params = json!({ "text": format!("marker-{number}") });
            json!({ "id": format!("t{number}"), "module": "bench", "tool": "echo", "params": params, "raw_output": true })
        };
        let tasks: Vec<Value> = (0..CALLS).map(task).collect();
        let client = RestClient::open(gateway.target.address).await?;
        let batch = json!({ "commands": tasks }).to_string();
        Ok(Self { name, gateway, client, batch, times_ms: Vec::new() })
    }

    async fn once(&mut self) -> Result<()> {
        let started = Instant::now();
        let answer = self.client.post("/v1/batch", self.batch.clone()).await?;
        self.times_ms.push(started.elapsed().as_secs_f64() * 1000.0);
        let answer: Value = serde_json::from_slice(&answer)?;
        ensure!(answer["result"]["summary"]["ok"] == CALLS, "a wrong answer: {answer}");
        ensure!(answer["result"]["tasks"][7]["result"] == "marker-7", "a wrong result: {answer}");
        Ok(())
    }
}

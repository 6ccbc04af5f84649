//! SIGKILL during store writes: every acknowledged write is there after a quick restart, and the audit chain is intact.
//! Loss of power is not tested.

use std::collections::HashSet;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use super::check::FaultCheck;
use super::settings::{FaultSettings, config};
use crate::rig::TOOLS;
use crate::rig::client::RigClient;
use crate::rig::process::{GatewayChild, UpstreamChild};
use crate::rig::rest::RestClient;
use crate::rig::table::median;

const READY_MS: f64 = 500.0;
const WRITERS: usize = 4;

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let upstream = UpstreamChild::start()?;
    let folder = tempfile::tempdir()?;
    let config = config(&upstream, &json!({}), &[]);
    let start = || GatewayChild::launch(Command::new(&settings.hikite), folder.path(), &config);
    let mut gateway = start()?;
    gateway.tools(TOOLS).await?;
    let (mut told, mut missing, mut ready, mut broken) = (HashSet::new(), 0, Vec::new(), 0);
    let rounds = settings.count(10, 3);
    for round in 0..rounds {
        let mut writing = JoinSet::new();
        for writer in 0..WRITERS {
            let client = RestClient::open(gateway.target.address).await?;
            writing.spawn(write(client, format!("p{round}-{writer}")));
        }
        tokio::time::sleep(Duration::from_millis(700 + 37 * u64::try_from(round)?)).await;
        gateway.signal(Signal::KILL)?;
        while let Some(names) = writing.join_next().await {
            told.extend(names?);
        }
        while gateway.ended()?.is_none() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let started = Instant::now();
        gateway = start()?;
        // Ready means that it lists the tools.
        let mut client = RigClient::open(&gateway.target, Duration::from_secs(10)).await?;
        let tools = client.tools().await?;
        ready.push(started.elapsed().as_secs_f64() * 1000.0);
        ensure!(tools.len() == TOOLS, "{} tools after the start", tools.len());
        let mut rest = RestClient::open(gateway.target.address).await?;
        let projects: Value = serde_json::from_slice(&rest.get("/v1/projects").await?)?;
        let text = projects.to_string();
        missing += told.iter().filter(|name: &&String| !text.contains(&format!("\"{name}\""))).count();
        let chain: Value = serde_json::from_slice(&rest.get("/v1/audit/verify").await?)?;
        broken += usize::from(chain["intact"] != true);
    }
    let typical = median(ready.clone());
    let slowest = ready.iter().copied().fold(0.0, f64::max);
    Ok(vec![
        FaultCheck::none(format!("rows that were told to be kept and are not, {rounds} kills"), missing, told.len()),
        FaultCheck::at_most(
            format!("ready after the start, the slowest of {rounds} (median {typical:.0} ms)"),
            slowest,
            settings.within(READY_MS),
            "ms",
        ),
        FaultCheck::none("starts after which the audit's chain is broken", broken, rounds),
    ])
}

/// Creates projects until it fails; returns the acknowledged names.
async fn write(mut client: RestClient, prefix: String) -> Vec<String> {
    let mut names = Vec::new();
    loop {
        let name = format!("{prefix}-{}", names.len());
        if client.post("/v1/projects", json!({ "name": name }).to_string()).await.is_err() {
            return names;
        }
        names.push(name);
    }
}

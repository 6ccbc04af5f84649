//! SIGTERM under load: running calls are answered, then hikite exits successfully.

use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::process::Signal;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::check::FaultCheck;
use super::settings::{FaultSettings, config};
use crate::rig::TOOLS;
use crate::rig::client::RigClient;
use crate::rig::process::{GatewayChild, UpstreamChild};

const CLIENTS: usize = 32;
const CALL_MS: u64 = 400;
const WITHIN_S: f64 = 30.0;

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let upstream = UpstreamChild::with_delay(CALL_MS)?;
    let (mut failed, mut finished, mut slowest, mut codes) = (Vec::new(), 0, 0.0_f64, Vec::new());
    let rounds = settings.count(5, 2);
    for _ in 0..rounds {
        let folder = tempfile::tempdir()?;
        let config = config(&upstream, &serde_json::json!({ "drain": "30s" }), &[]);
        let mut gateway = GatewayChild::launch(std::process::Command::new(&settings.hikite), folder.path(), &config)?;
        gateway.tools(TOOLS).await?;
        let stop = CancellationToken::new();
        let mut running = JoinSet::new();
        for index in 0..CLIENTS {
            let client = gateway.client().await?;
            running.spawn(calls(client, stop.clone(), index));
        }
        tokio::time::sleep(Duration::from_secs(3)).await;
        // From here on no call begins; running ones must be answered.
        stop.cancel();
        gateway.signal(Signal::TERM)?;
        let started = Instant::now();
        while let Some(done) = running.join_next().await {
            match done? {
                Ok(()) => finished += 1,
                Err(error) => failed.push(format!("{error:#}")),
            }
        }
        let code = loop {
            if let Some(status) = gateway.ended()? {
                break status.code();
            }
            if started.elapsed().as_secs_f64() > WITHIN_S {
                break None;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        };
        slowest = slowest.max(started.elapsed().as_secs_f64());
        codes.push(code);
    }
    let seen = format!("{} of {} {}", failed.len(), failed.len() + finished, failed.first().map_or("", |error| error));
    Ok(vec![
        FaultCheck::that("calls under way that fail", "0", seen, failed.is_empty() && finished == rounds * CLIENTS),
        FaultCheck::at_most(format!("the end of {rounds} runs, the slowest"), slowest, WITHIN_S, "s"),
        FaultCheck::that("exit", "0", format!("{codes:?}"), codes.iter().all(|code| *code == Some(0))),
    ])
}

/// Calls until told to stop; an error if a call fails.
async fn calls(mut client: RigClient, stop: CancellationToken, index: usize) -> Result<()> {
    // The first calls all wait for the connection to the server; after that no two start at the same moment.
    client.echo("echo").await?;
    tokio::time::sleep(Duration::from_millis(u64::try_from(index)? * 13)).await;
    while !stop.is_cancelled() {
        client.echo("echo").await?;
    }
    Ok(())
}

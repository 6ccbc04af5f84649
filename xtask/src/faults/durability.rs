//! SIGKILL while many callers are answered: how many answered calls the audit does not have afterwards, and what each
//! setting of `audit.durability` costs. On SQLite, and on a PostgreSQL of its own.

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::json;
use tokio::task::JoinSet;

use super::check::FaultCheck;
use super::settings::{FaultSettings, config, number};
use crate::rig::TOOLS;
use crate::rig::client::RigClient;
use crate::rig::postgres::Postgres;
use crate::rig::process::{GatewayChild, UpstreamChild};
use crate::rig::table::percentile;

const CALLERS: usize = 50;
/// Master key of these runs: 64 hexadecimal digits.
const KEY: &str = "6861726d6c657373206b6579206f66207468652064757261626c697479207275";
/// Loss bound of `group` documented in docs/audit.md.
const GROUP_LOSES: usize = 256;

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let mut checks = Vec::new();
    let database = Postgres::start().await?;
    let postgres = Postgres::url(database.address);
    settings.prepare_store(&postgres).await?;
    for (store, url) in [("SQLite", None), ("PostgreSQL", Some(&*postgres))] {
        // The default is tried as the default.
        for (durability, most) in [(None, GROUP_LOSES), (Some("strict"), 0)] {
            let name = durability.unwrap_or("group");
            // What cannot be tried has not been shown to hold; the others are tried all the same.
            let tried = one(settings, (store, url), durability, most).await.unwrap_or_else(|error| {
                let what = format!("{name} on {store}: it can be tried");
                vec![FaultCheck::that(what, "no error", format!("{error:#}"), false)]
            });
            checks.extend(tried);
        }
    }
    Ok(checks)
}

async fn one(
    settings: &FaultSettings,
    (store, url): (&str, Option<&str>),
    durability: Option<&str>,
    most: usize,
) -> Result<Vec<FaultCheck>> {
    let upstream = UpstreamChild::start()?;
    let folder = tempfile::tempdir()?;
    let mut config = config(&upstream, &json!({}), &[]);
    if let Some(durability) = durability {
        config["audit"] = json!({ "durability": durability });
    }
    if let Some(url) = url {
        config["store"] = json!({ "url": url });
    }
    let mut program = Command::new(&settings.hikite);
    // The database is reused with another data folder.
    program.env("HIKITE_VAULT_KEY", KEY);
    let mut gateway = GatewayChild::launch(program, folder.path(), &config)?;
    gateway.tools(TOOLS).await.context("no tools")?;
    let recorded_before = recorded(settings, folder.path()).await?;
    let answered = Arc::new(AtomicUsize::new(0));
    let mut callers = JoinSet::new();
    for _ in 0..CALLERS {
        callers.spawn(calls(gateway.client().await.context("a caller cannot connect")?, Arc::clone(&answered)));
    }
    let (before, started) = (answered.load(Ordering::SeqCst), Instant::now());
    tokio::time::sleep(settings.lasts(10, 2)).await;
    let (count, seconds) = (answered.load(Ordering::SeqCst) - before, started.elapsed().as_secs_f64());
    gateway.signal(Signal::KILL)?;
    let mut times = Vec::new();
    while let Some(took) = callers.join_next().await {
        times.extend(took?);
    }
    while gateway.ended()?.is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let recorded = recorded(settings, folder.path()).await? - recorded_before;
    let answered = answered.load(Ordering::SeqCst);
    let lost = answered.saturating_sub(recorded);
    let name = durability.unwrap_or("group");
    let (p50, p99) = (percentile(&mut times, 0.5), percentile(&mut times, 0.99));
    Ok(vec![
        FaultCheck::that(
            format!("{name} on {store}: answered calls without a record after SIGKILL"),
            format!("≤ {most}"),
            format!("{lost} of {answered}"),
            lost <= most && answered > 0,
        ),
        FaultCheck::that(
            format!("{name} on {store}: {CALLERS} callers"),
            "told",
            format!("{:.0} calls/s, p50 {p50:.1} ms, p99 {p99:.1} ms", number(count) / seconds),
            true,
        ),
    ])
}

/// Calls until nothing answers; returns the times in milliseconds.
async fn calls(mut client: RigClient, answered: Arc<AtomicUsize>) -> Vec<f64> {
    let mut times = Vec::new();
    loop {
        let started = Instant::now();
        if client.echo("echo").await.is_err() {
            return times;
        }
        answered.fetch_add(1, Ordering::SeqCst);
        times.push(started.elapsed().as_secs_f64() * 1000.0);
    }
}

/// Returns the number of calls in the audit.
async fn recorded(settings: &FaultSettings, folder: &std::path::Path) -> Result<usize> {
    let mut command = tokio::process::Command::new(&settings.hikite);
    command.env("HIKITE_VAULT_KEY", KEY);
    command.args(["audit", "export", "--kind", "call", "--config"]).arg(folder.join("hikite.json"));
    let output = command.arg("--data").arg(folder.join("data")).output().await.context("hikite")?;
    ensure!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Ok(output.stdout.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()).count())
}

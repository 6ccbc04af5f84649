//! A wall clock one year ahead (libfaketime). On one of two nodes on a PostgreSQL it deletes nothing that the other
//! wrote: the audit is trimmed by the database's clock. On SQLite, which has no other clock, trimming pauses, reports
//! it, and resumes once the clock is right.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

use super::check::FaultCheck;
use super::clock::with_clock;
use super::settings::{FaultSettings, config};
use crate::rig::TOOLS;
use crate::rig::postgres::Postgres;
use crate::rig::process::{GatewayChild, UpstreamChild};
use crate::rig::rest::RestClient;

const YEAR: &str = "+31536000";
/// Retention, longer than this row lasts and short enough for a check every ten seconds.
const RETENTION: &str = "100s";
/// Time for the node that is ahead to check at least twice.
const TRIM_WAIT: Duration = Duration::from_secs(25);
const CALLS: u64 = 200;
const TIMEOUT: Duration = Duration::from_secs(40);
/// An arbitrary key.
const KEY: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

struct SkewedNode {
    gateway: GatewayChild,
    folder: TempDir,
}

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let mut checks = two_nodes(settings).await?;
    checks.extend(alone(settings).await?);
    Ok(checks)
}

async fn two_nodes(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let (database, upstream) = (Postgres::start().await?, UpstreamChild::start()?);
    let url = Postgres::url(database.address);
    settings.prepare_store(&url).await?;
    let store = json!({ "url": url });
    let right = node(Command::new(&settings.hikite), &upstream, Some(&store))?;
    calls(&right, CALLS).await?;
    let ahead = {
        let folder = tempfile::tempdir()?;
        let offset = folder.path().join("offset");
        std::fs::write(&offset, YEAR)?;
        (node(with_clock(&settings.hikite, &offset)?, &upstream, Some(&store))?, folder)
    };
    calls(&ahead.0, 10).await?;
    let year = health(&ahead.0).await?;
    tokio::time::sleep(TRIM_WAIT).await;
    let verdict = verify(&right).await?;
    let there = verdict["records"].as_u64().unwrap_or_default();
    Ok(vec![
        FaultCheck::that("two nodes: the clock of one", "a year ahead", &year, year > health(&right).await?),
        FaultCheck::that(
            "two nodes: records of the audit that are gone after its looks",
            "0",
            format!("{} of {}, {there} there", verdict["first"], CALLS + 10),
            verdict["first"] == 0 && there >= CALLS + 10,
        ),
        FaultCheck::that(
            "two nodes: the audit's chain",
            "whole",
            verdict["intact"].to_string(),
            verdict["intact"] == true,
        ),
        no_panic("two nodes", &[&right, &ahead.0])?,
    ])
}

async fn alone(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let (upstream, folder) = (UpstreamChild::start()?, tempfile::tempdir()?);
    let offset = folder.path().join("offset");
    std::fs::write(&offset, "+0")?;
    let node = node(with_clock(&settings.hikite, &offset)?, &upstream, None)?;
    calls(&node, CALLS).await?;
    // It checks once before the jump, so that it knows the clock.
    tokio::time::sleep(Duration::from_secs(12)).await;
    std::fs::write(&offset, YEAR)?;
    let paused = becomes(&node, "hikite_audit_trim_paused 1").await?;
    let verdict = verify(&node).await?;
    let there = verdict["records"].as_u64().unwrap_or_default();
    std::fs::write(&offset, "+0")?;
    let resumed = becomes(&node, "hikite_audit_trim_paused 0").await?;
    let word = |is: bool| if is { "yes" } else { "no" };
    Ok(vec![
        FaultCheck::that("one node: trimming pauses after the jump", "yes", word(paused), paused),
        FaultCheck::that(
            "one node: records of the audit that are gone",
            "0",
            format!("{} of {CALLS}, {there} there", verdict["first"]),
            verdict["first"] == 0 && verdict["intact"] == true && there >= CALLS,
        ),
        FaultCheck::that("one node: it goes on when the clock is right", "yes", word(resumed), resumed),
        no_panic("one node", &[&node])?,
    ])
}

fn node(mut program: Command, upstream: &UpstreamChild, store: Option<&Value>) -> Result<SkewedNode> {
    let folder = tempfile::tempdir()?;
    // Nodes on one store share its master key.
    program.env("HIKITE_VAULT_KEY", KEY);
    let mut config = config(upstream, &json!({}), &[]);
    config["audit"] = json!({ "retention": RETENTION });
    if let Some(store) = store {
        config["store"] = store.clone();
    }
    Ok(SkewedNode { gateway: GatewayChild::launch(program, folder.path(), &config)?, folder })
}

async fn calls(node: &SkewedNode, count: u64) -> Result<()> {
    let log = || std::fs::read_to_string(node.folder.path().join("stderr.log")).unwrap_or_default();
    call(node, count).await.with_context(|| format!("its log says: {}", log()))
}

async fn call(node: &SkewedNode, count: u64) -> Result<()> {
    let started = Instant::now();
    while health(node).await.is_err() {
        ensure!(started.elapsed() < TIMEOUT, "it does not answer");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let tools = node.gateway.tools(TOOLS).await?;
    let echo = tools.iter().find(|tool| tool.ends_with("echo")).context("no tool to call")?;
    let mut client = node.gateway.client().await?;
    for _ in 0..count {
        client.echo(echo).await?;
    }
    Ok(())
}

async fn get(node: &SkewedNode, path: &str) -> Result<Vec<u8>> {
    Ok(RestClient::open(node.gateway.target.address).await?.get(path).await?.to_vec())
}

async fn verify(node: &SkewedNode) -> Result<Value> {
    Ok(serde_json::from_slice(&get(node, "/v1/audit/verify").await?)?)
}

/// Returns the date of its clock.
async fn health(node: &SkewedNode) -> Result<String> {
    let health: Value = serde_json::from_slice(&get(node, "/health").await?)?;
    Ok(health["timestamp"].as_str().context("no timestamp")?[..10].to_owned())
}

async fn becomes(node: &SkewedNode, metric: &str) -> Result<bool> {
    let started = Instant::now();
    while started.elapsed() < TIMEOUT {
        let metrics = String::from_utf8(get(node, "/metrics").await?)?;
        if metrics.lines().any(|line| line == metric) {
            return Ok(true);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(false)
}

fn no_panic(what: &str, nodes: &[&SkewedNode]) -> Result<FaultCheck> {
    let panics = |folder: &Path| -> Result<usize> {
        let log = std::fs::read_to_string(folder.join("stderr.log"))?;
        Ok(log.lines().filter(|line| line.contains("panicked")).count())
    };
    let mut count = 0;
    for node in nodes {
        count += panics(node.folder.path())?;
    }
    ensure!(!nodes.is_empty(), "no node");
    Ok(FaultCheck::that(format!("{what}: panics in the log"), "0", count.to_string(), count == 0))
}

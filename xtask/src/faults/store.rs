//! A disk that refuses writes: the kernel rejects every file write of hikite (a file size limit of zero, which needs no
//! privileges). Calls continue, writes that must persist answer 503, and it recovers by itself. SQLite only: an
//! unreachable PostgreSQL is covered by the integration tests.

use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use super::check::FaultCheck;
use super::settings::{FaultRun, FaultSettings};
use crate::rig::client::RigClient;
use crate::rig::rest::RestClient;

const RECOVERS_S: f64 = 10.0;

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let span = settings.lasts(60, 5);
    let scene = settings.open_by(ignoring_limits(settings), &json!({}), &[], 0).await?;
    let mut rest = RestClient::open(scene.gateway.target.address).await?;
    let token: Value = serde_json::from_slice(&rest.post("/v1/tokens", json!({ "name": "t" }).to_string()).await?)?;
    let secret = token["secret"].as_str().context("no token")?;
    let mut client = RigClient::open_as(&scene.gateway.target, Some(secret), Duration::from_secs(5)).await?;
    client.echo(&scene.echo).await?;
    fill(&scene, true)?;
    let (started, mut failed, mut calls, mut writes) = (Instant::now(), Vec::new(), 0, Vec::new());
    while started.elapsed() < span {
        for _ in 0..10 {
            calls += 1;
            if let Err(error) = client.echo(&scene.echo).await {
                failed.push(format!("{error:#}"));
            }
        }
        let (status, retry) = write(&mut rest, writes.len()).await?;
        writes.push(format!("{status}{}", if retry { " with Retry-After" } else { "" }));
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    // A new client is also accepted.
    let newcomer = RigClient::open_as(&scene.gateway.target, Some(secret), Duration::from_secs(5)).await.is_ok();
    fill(&scene, false)?;
    let started = Instant::now();
    let recovered = loop {
        if write(&mut rest, 100_000).await?.0 == 201 {
            break started.elapsed().as_secs_f64();
        }
        if started.elapsed().as_secs_f64() > 2.0 * RECOVERS_S {
            break f64::INFINITY;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    // The audit follows later.
    tokio::time::sleep(Duration::from_secs(6)).await;
    let chain: Value = serde_json::from_slice(&rest.get("/v1/audit/verify").await?)?;
    let all = writes.len();
    let right = writes.iter().filter(|seen| *seen == "503 with Retry-After").count();
    writes.dedup();
    let seconds = span.as_secs();
    let seen = format!("{} of {calls} {}", failed.len(), failed.first().map_or("", |error| error));
    Ok(vec![
        FaultCheck::that(format!("calls that fail in {seconds} s without a disk"), "0", seen, failed.is_empty()),
        FaultCheck::that(
            "a new session with a known token",
            "let in",
            if newcomer { "let in" } else { "refused" },
            newcomer,
        ),
        FaultCheck::that(
            "what would have to be kept",
            "503 with Retry-After",
            format!("{right} of {all}: {}", writes.join(", ")),
            right == all,
        ),
        FaultCheck::at_most("written again after", recovered, settings.within(RECOVERS_S), "s"),
        FaultCheck::that(
            "the audit afterwards",
            "whole, every call in it",
            format!("intact {}, {} records of {calls} calls", chain["intact"], chain["records"]),
            chain["intact"] == true && chain["records"].as_u64().is_some_and(|records| records >= calls),
        ),
        scene.no_panic()?,
    ])
}

/// Returns the program with SIGXFSZ ignored, a setting that it inherits.
pub(super) fn ignoring_limits(settings: &FaultSettings) -> Command {
    let mut program = Command::new("sh");
    program.args(["-c", "trap '' XFSZ; exec \"$0\" \"$@\""]).arg(&settings.hikite);
    program
}

/// Attempts a write; returns the status and whether it has `Retry-After`.
async fn write(rest: &mut RestClient, number: usize) -> Result<(u16, bool)> {
    let request = rest.posting("/v1/projects", json!({ "name": format!("p{number}") }).to_string())?;
    let answer = rest.ask(request).await?;
    Ok((answer.status().as_u16(), answer.headers().contains_key("retry-after")))
}

/// Makes writes fail, or restores them.
pub(super) fn fill(scene: &FaultRun, is_full: bool) -> Result<()> {
    let pid = i32::try_from(scene.gateway.pid()).ok().and_then(Pid::from_raw);
    let limit = Rlimit { current: is_full.then_some(0), maximum: None };
    prlimit(pid, Resource::Fsize, limit).context("the limit cannot be set")?;
    Ok(())
}

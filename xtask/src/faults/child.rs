//! Misbehaving server processes. They are started at most six times a minute, the circuit breaker opens, and they leave
//! no zombie and no open file.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};

use super::check::FaultCheck;
use super::code_of;
use super::settings::{FaultRun, FaultSettings, number};
use crate::rig::TOOLS;
use crate::rig::procfs;
use crate::rig::rest::RestClient;

/// Error texts of a server whose circuit breaker is open.
const BREAKER_OPEN: [&str; 2] = ["is not called for now", "keeps exiting soon after it starts"];
const SPAWNS: f64 = 6.0;

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let mut checks = Vec::new();
    let seconds = if settings.is_short { 6 } else { 60 };
    for (name, script) in [
        ("ends at once", "exit 3"),
        ("ends with its first call", "exec \"$XTASK\" upstream --stdio --crash"),
        ("talks nonsense and ends", "for i in 1 2 3 4 5 6 7 8 9; do echo '{nonsense'; done"),
        ("closes stdout and lives on", "exec 1>&-; sleep 1000"),
    ] {
        crate::print(&format!("  … a server that {name}, for {seconds} s"));
        checks.extend(crash_loop(settings, name, script, Duration::from_secs(seconds)).await?);
    }
    checks.extend(cycles(settings).await?);
    checks.push(flood(settings).await?);
    Ok(checks)
}

/// Returns a server that records each of its starts.
fn server(script: &str, starts: &Path) -> Result<Value> {
    let script = format!("echo x >> '{}'; {script}", starts.display());
    Ok(json!({ "command": "sh", "args": ["-c", script], "env": { "XTASK": std::env::current_exe()? } }))
}

fn count(starts: &Path) -> usize {
    std::fs::read_to_string(starts).map_or(0, |text| text.lines().count())
}

async fn crash_loop(settings: &FaultSettings, name: &str, script: &str, span: Duration) -> Result<Vec<FaultCheck>> {
    let folder = tempfile::tempdir()?;
    let starts = folder.path().join("starts");
    let listed = if script.contains("--crash") { TOOLS } else { 0 };
    let scene = settings
        .open(&json!({ "all_lists": "1s", "first_list": "1s" }), &[("bad", server(script, &starts)?)], listed)
        .await?;
    let mut client = RestClient::open(scene.gateway.target.address).await?;
    let (started, mut left_alone, mut calls) = (Instant::now(), 0, 0_usize);
    while started.elapsed() < span {
        let body = json!({ "name": "bad:echo", "parameters": { "text": "x" } }).to_string();
        let request = client.posting("/v1/tools/call", body)?;
        let answer = String::from_utf8_lossy(client.ask(request).await?.body()).into_owned();
        calls += 1;
        left_alone += usize::from(BREAKER_OPEN.iter().any(|words| answer.contains(words)));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let spawned = count(&starts);
    let mut checks = vec![FaultCheck::at_most(
        format!("{name}: starts in {} s, {calls} calls", span.as_secs()),
        number(spawned),
        SPAWNS,
        "starts",
    )];
    if listed > 0 {
        let seen = format!("{left_alone} of {calls} calls not sent");
        checks.push(FaultCheck::that(format!("{name}: calls are refused at once"), "> 0", seen, left_alone > 0));
    }
    let (_, dead) = procfs::process_tree(scene.gateway.pid())?;
    checks.push(FaultCheck::that(format!("{name}: dead children"), "0", dead.to_string(), dead == 0));
    checks.push(scene.no_panic()?);
    Ok(checks)
}

/// Starts and stops a server with children many times.
async fn cycles(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let all = settings.count(1000, 40);
    let folder = tempfile::tempdir()?;
    let script = "sleep 1000 & setsid sleep 1000 & exec \"$XTASK\" upstream --stdio";
    let server = server(script, &folder.path().join("starts"))?;
    let scene = settings.open(&json!({}), &[("bad", server)], TOOLS).await?;
    let mut client = RestClient::open(scene.gateway.target.address).await?;
    let (mut before, mut failed) = (0, 0);
    for cycle in 0..all {
        client.post("/v1/modules/bad/restart", String::new()).await?;
        failed += usize::from(!call(&mut client).await?);
        // The first cycles fill caches and pools.
        if cycle == 9 {
            before = settled(&scene).await?.0;
        }
        if cycle % 100 == 99 {
            crate::print(&format!("  … {} of {all} restarts", cycle + 1));
        }
    }
    let (after, alive, dead) = settled(&scene).await?;
    Ok(vec![
        FaultCheck::none("restarts after which a call fails", failed, all),
        FaultCheck::that(
            format!("open files after {all} restarts"),
            "+ 3",
            format!("{before} before, {after} after"),
            after <= before + 3,
        ),
        FaultCheck::that(
            "processes left",
            "≤ 4 (a guard and its server)",
            format!("{alive}, {dead} dead"),
            alive <= 4 && dead == 0,
        ),
    ])
}

/// Returns open files, living and dead descendants, once exiting processes are gone.
async fn settled(scene: &FaultRun) -> Result<(usize, usize, usize)> {
    let started = Instant::now();
    loop {
        let (alive, dead) = procfs::process_tree(scene.gateway.pid())?;
        if (alive <= 4 && dead == 0) || started.elapsed() > Duration::from_secs(10) {
            return Ok((procfs::open_files(scene.gateway.pid())?, alive, dead));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn call(client: &mut RestClient) -> Result<bool> {
    let body = json!({ "name": "bad:echo", "parameters": { "text": "x" } }).to_string();
    let request = client.posting("/v1/tools/call", body)?;
    Ok(client.ask(request).await?.status().is_success())
}

/// Writes a hundred megabytes to stderr: only the last lines are retained, and calls are served meanwhile.
async fn flood(settings: &FaultSettings) -> Result<FaultCheck> {
    let folder = tempfile::tempdir()?;
    let script = "(head -c 100000000 /dev/zero | tr '\\0' x | fold -w 1000 >&2) & exec \"$XTASK\" upstream --stdio";
    let server = server(script, &folder.path().join("starts"))?;
    let scene = settings.open(&json!({}), &[], 0).await?;
    let before = scene.memory()?;
    let mut config: Value = serde_json::from_slice(&std::fs::read(scene.config_file())?)?;
    config["mcpServers"]["bad"] = server;
    std::fs::write(scene.config_file(), config.to_string())?;
    scene.gateway.tools(2 * TOOLS).await?;
    let mut client = scene.gateway.client().await?;
    let answer = client.call("bad__echo", &json!({ "text": "x" })).await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let growth = scene.growth(before)?;
    let seen = format!("{}, {growth:.1} MiB", code_of(&answer).as_deref().unwrap_or("a result"));
    Ok(FaultCheck::that("100 MB on stderr", "a result, ≤ 16 MiB", seen, code_of(&answer).is_none() && growth <= 16.0))
}

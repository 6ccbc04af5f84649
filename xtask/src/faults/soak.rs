//! Calls and faults of all kinds for a long time: memory does not grow, and every file is closed. The slope is that of
//! a line through the second half, when caches are full.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::check::FaultCheck;
use super::rogue::{RogueBehavior, RogueServer, TOOL};
use super::settings::{FaultRun, FaultSettings, mib, number};
use crate::rig::TOOLS;
use crate::rig::client::RigClient;
use crate::rig::process::stdio_server;
use crate::rig::procfs;
use crate::rig::rest::RestClient;

const CLIENTS: usize = 8;
const BEHAVIORS: &[RogueBehavior] = &[
    RogueBehavior::Hang,
    RogueBehavior::HangMidBody,
    RogueBehavior::SilentStream,
    RogueBehavior::Large(20_000_000),
    RogueBehavior::EndlessLine,
    RogueBehavior::ResetRequest(100),
    RogueBehavior::ResetAnswer(100),
    RogueBehavior::Healthy,
];
/// Less than a tenth of its memory in half an hour.
const MIB_PER_HOUR: f64 = 4.0;
const FILES: usize = 2;
/// Faults before open files are counted: every kind has occurred several times.
const WARM_UP: usize = 40;

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let span = settings.lasts(1800, 30);
    let rogue = RogueServer::start().await?;
    let others = [("bad", rogue.server("300ms")), ("child", stdio_server(1)?)];
    let limits =
        json!({ "breaker_failures": 0, "answer_bytes": "8MiB", "header_timeout": "1s", "session_idle": "20s" });
    let scene = settings.open(&limits, &others, 1 + TOOLS).await?;
    let mut files = 0;
    let stop = CancellationToken::new();
    let mut running = JoinSet::new();
    for _ in 0..CLIENTS {
        running.spawn(calls(scene.gateway.client().await?, scene.echo.clone(), stop.clone()));
    }
    let (started, mut memory, mut round) = (Instant::now(), Vec::new(), 0_usize);
    while started.elapsed() < span {
        fault(&scene, &rogue, round).await?;
        round += 1;
        // By now every pool is full.
        if round == WARM_UP {
            files = procfs::open_files(scene.gateway.pid())?;
        }
        memory.push((started.elapsed().as_secs_f64() / 3600.0, mib(procfs::memory(scene.gateway.pid())?.0)));
        if round % 120 == 0 {
            crate::print(&format!(
                "  … {:.0} s, {round} faults, {:.1} MiB",
                started.elapsed().as_secs_f64(),
                memory[memory.len() - 1].1
            ));
        }
    }
    stop.cancel();
    let (mut calls, mut failed) = (0, Vec::new());
    while let Some(done) = running.join_next().await {
        let (well, wrong) = done?;
        calls += well;
        failed.extend(wrong);
    }
    let after = back_to(&scene, files + FILES).await?;
    let half = &memory[memory.len() / 2..];
    let (first, last) = (memory[0].1, half[half.len() - 1].1);
    let what = format!(
        "memory over the second half of {} s, {round} faults ({first:.1} MiB at first, {last:.1} at last)",
        span.as_secs()
    );
    let seen = format!("{} of {} {}", failed.len(), calls + failed.len(), failed.first().map_or("", |first| first));
    Ok(vec![
        FaultCheck::at_most(what, slope(half), MIB_PER_HOUR, "MiB/h"),
        FaultCheck::that(
            "open files afterwards",
            format!("+ {FILES}"),
            format!("{files} after {WARM_UP} faults, {after} at the end"),
            after <= files + FILES,
        ),
        FaultCheck::that("calls of the healthy server that fail", "0", seen, failed.is_empty() && calls > 0),
        scene.no_panic()?,
    ])
}

/// Injects the next fault.
async fn fault(scene: &FaultRun, rogue: &RogueServer, round: usize) -> Result<()> {
    let address = scene.gateway.target.address;
    rogue.set(BEHAVIORS[round % BEHAVIORS.len()]);
    let mut client = scene.gateway.client().await?;
    // The result does not matter.
    let _ = client.call(TOOL, &json!({})).await;
    match round % 10 {
        0 => drop(RestClient::open(address).await?.post("/v1/modules/child/restart", String::new()).await),
        2 => {
            let mut config: Value = serde_json::from_slice(&std::fs::read(scene.config_file())?)?;
            config["categories"] = json!({ format!("c{round}"): { "description": "d", "server": "well" } });
            std::fs::write(scene.config_file(), config.to_string())?;
        }
        4 => {
            let mut stream = TcpStream::connect(address).await?;
            stream.write_all(b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n\r\n\xff\xfe{[").await?;
        }
        _ => drop(client.call("child__echo", &json!({ "text": "x" })).await),
    }
    tokio::time::sleep(Duration::from_millis(100)).await;
    Ok(())
}

async fn calls(mut client: RigClient, tool: String, stop: CancellationToken) -> (usize, Vec<String>) {
    let (mut well, mut wrong) = (0, Vec::new());
    while !stop.is_cancelled() {
        match client.echo(&tool).await {
            Ok(()) => well += 1,
            Err(error) => wrong.push(format!("{error:#}")),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    (well, wrong)
}

/// Returns the open files, once they are this few or time is up.
async fn back_to(scene: &FaultRun, few: usize) -> Result<usize> {
    let started = Instant::now();
    loop {
        let now = procfs::open_files(scene.gateway.pid())?;
        if now <= few || started.elapsed() > Duration::from_secs(30) {
            return Ok(now);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Returns the slope of the least-squares line.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = number(points.len());
    let mean = |value: fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let above: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let below: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    above / below
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slope_is_that_of_the_line() {
        assert!((slope(&[(0.0, 1.0), (1.0, 3.0), (2.0, 5.0)]) - 2.0).abs() < 1e-9);
    }
}

//! Far more stdio servers than may run at once: each answers when called, idle ones are stopped, the process limit is
//! never exceeded, and none is left when hikite exits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow};
use serde_json::{Value, json};

use super::check::FaultCheck;
use super::settings::{FaultRun, FaultSettings, number};
use crate::rig::process::stdio_server;
use crate::rig::procfs;
use crate::rig::rest::RestClient;

/// Default limit of running servers, each with its guard process.
const PROCESSES: usize = 64;
/// Timeout for the first listing of all servers, however busy the machine.
const TIMEOUT: Duration = Duration::from_secs(300);
/// Interval of counting processes.
const POLL_INTERVAL: Duration = Duration::from_millis(20);

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let all = settings.count(200, 80);
    let scene = settings.open(&json!({}), &[], 0).await?;
    let mut config: Value = serde_json::from_slice(&std::fs::read(scene.config_file())?)?;
    for index in 0..all {
        config["mcpServers"][name(index)] = stdio_server(index)?;
    }
    let started = Instant::now();
    std::fs::write(scene.config_file(), config.to_string())?;
    let watch = ProcessWatch::begin(scene.gateway.pid());
    let listed = listed(&scene, all).await?;
    let seconds = started.elapsed().as_secs_f64();
    let calls = call_each(&scene, all).await?;
    let most = watch.end()?;
    let (_, dead) = procfs::process_tree(scene.gateway.pid())?;
    let mut checks = vec![
        FaultCheck::that(
            format!("servers of {all} that told what they offer (after {seconds:.0} s)"),
            all.to_string(),
            listed.to_string(),
            listed == all,
        ),
        FaultCheck::none("calls in turn, forwards and back, that fail", calls.failed.len(), 2 * all),
        FaultCheck::at_most("the slowest of them", calls.slowest.as_secs_f64(), settings.at_worst(5.0), "s"),
        FaultCheck::at_most("processes at once, guards included", number(most), number(2 * PROCESSES), "processes"),
        FaultCheck::that("dead children", "0", dead.to_string(), dead == 0),
        scene.no_panic()?,
    ];
    if let Some(first) = calls.failed.first() {
        crate::print(&format!("  … the first that failed: {first}"));
    }
    checks.push(left_behind(scene).await?);
    Ok(checks)
}

fn name(index: usize) -> String {
    format!("s{index:03}")
}

/// Returns how many servers have listed their tools, once all have or time is up.
async fn listed(scene: &FaultRun, all: usize) -> Result<usize> {
    let started = Instant::now();
    let mut client = RestClient::open(scene.gateway.target.address).await?;
    loop {
        let body: Value = serde_json::from_slice(&client.get("/v1/tools?limit=1").await?)?;
        let tools = body["pagination"]["total"].as_u64().context("no count of tools")?;
        let servers = usize::try_from(tools)? / crate::rig::TOOLS;
        // One of them is the healthy HTTP server.
        if servers > all || started.elapsed() > TIMEOUT {
            return Ok(servers.saturating_sub(1));
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

struct CallTimes {
    failed: Vec<String>,
    slowest: Duration,
}

/// Calls each server once, from first to last and back.
async fn call_each(scene: &FaultRun, all: usize) -> Result<CallTimes> {
    let mut client = RestClient::open(scene.gateway.target.address).await?;
    let mut calls = CallTimes { failed: Vec::new(), slowest: Duration::ZERO };
    for (step, index) in (0..all).chain((0..all).rev()).enumerate() {
        let body = json!({ "name": format!("{}:echo", name(index)), "parameters": { "text": "x" } });
        let request = client.posting("/v1/tools/call", body.to_string())?;
        let started = Instant::now();
        let answer = client.ask(request).await?;
        calls.slowest = calls.slowest.max(started.elapsed());
        if !answer.status().is_success() {
            calls.failed.push(String::from_utf8_lossy(answer.body()).into_owned());
        }
        if step % 100 == 99 {
            crate::print(&format!("  … {} of {} calls", step + 1, 2 * all));
        }
    }
    Ok(calls)
}

/// Counts the processes periodically.
struct ProcessWatch {
    is_done: Arc<AtomicBool>,
    counter: JoinHandle<Result<usize>>,
}

impl ProcessWatch {
    fn begin(pid: u32) -> Self {
        let is_done = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&is_done);
        let counter = std::thread::spawn(move || {
            let mut most = 0;
            while !seen.load(Ordering::Relaxed) {
                most = most.max(procfs::process_tree(pid)?.0);
                std::thread::sleep(POLL_INTERVAL);
            }
            Ok(most)
        });
        Self { is_done, counter }
    }

    fn end(self) -> Result<usize> {
        self.is_done.store(true, Ordering::Relaxed);
        self.counter.join().map_err(|_| anyhow!("nobody looked at the processes"))?
    }
}

/// Stops hikite and counts the processes left behind.
async fn left_behind(scene: FaultRun) -> Result<FaultCheck> {
    let process_tree = procfs::descendants(scene.gateway.pid())?;
    scene.gateway.stop()?;
    let started = Instant::now();
    loop {
        let left = process_tree.iter().filter(|pid| procfs::is_alive(**pid)).count();
        if left == 0 || started.elapsed() > Duration::from_secs(20) {
            return Ok(FaultCheck::none("processes left behind after SIGTERM", left, process_tree.len()));
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

//! A disk that is really full: hikite's data is on a tmpfs of a few MiB in its own mount namespace (unprivileged where
//! user namespaces are allowed; elsewhere the kernel refuses all writes, and the report says so). When nothing more can
//! be recorded, calls are refused at once and `/readyz` reports it; it recovers by itself, and reports records lost at
//! exit.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use rustix::process::Signal;
use serde_json::{Value, json};

use super::check::FaultCheck;
use super::settings::{FaultRun, FaultSettings};
use super::store;
use crate::rig::rest::RestClient;

const RECOVERS_S: f64 = 10.0;
const AT_ONCE_MS: f64 = 500.0;
/// Records that queue in memory before calls are refused.
const QUEUE: usize = 200;
const SIZE: &str = "16m";
const NAMESPACE: [&str; 3] = ["--user", "--map-root-user", "--mount"];

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let limits = json!({ "audit_queue": QUEUE, "drain": "2s" });
    let disk = DiskFailure::here();
    let mut scene = settings.open_by(disk.program(settings), &limits, &[], 0).await?;
    let mut rest = RestClient::open(scene.gateway.target.address).await?;
    ensure!(call(&mut rest).await?.0 == 200, "no call before the disk is full");
    disk.fill(&scene)?;
    let (mut answered, mut refused, mut odd, mut slowest) = (1_usize, 0_usize, Vec::new(), 0.0_f64);
    let started = Instant::now();
    while refused < 100 && started.elapsed() < Duration::from_secs(60) {
        let begun = Instant::now();
        match call(&mut rest).await? {
            (200, _) => answered += 1,
            (503, true) => refused += 1,
            (status, _) => odd.push(status),
        }
        slowest = slowest.max(begun.elapsed().as_secs_f64() * 1000.0);
    }
    let (status, body) = ready(&mut rest).await?;
    disk.empty(&scene)?;
    let started = Instant::now();
    let recovered = loop {
        if ready(&mut rest).await?.0 == 200 && call(&mut rest).await?.0 == 200 {
            answered += 1;
            break started.elapsed().as_secs_f64();
        }
        if started.elapsed().as_secs_f64() > 5.0 * RECOVERS_S {
            break f64::INFINITY;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    let chain: Value = serde_json::from_slice(&rest.get("/v1/audit/verify").await?)?;
    let mut checks = vec![
        FaultCheck::that(
            format!("calls refused on {}", disk.words()),
            "503 with Retry-After",
            format!("{refused} of 100, others {odd:?}"),
            refused == 100 && odd.is_empty(),
        ),
        FaultCheck::at_most("the slowest answer meanwhile", slowest, settings.at_worst(AT_ONCE_MS), "ms"),
        FaultCheck::that(
            "/readyz meanwhile",
            "503, reason audit_full",
            format!("{status} {body}"),
            status == 503 && body == "audit_full",
        ),
        FaultCheck::at_most("recovered after", recovered, settings.within(RECOVERS_S), "s"),
        FaultCheck::that(
            "the audit afterwards",
            "whole, every answered call in it",
            format!("intact {}, {} records of {answered} calls", chain["intact"], chain["records"]),
            chain["intact"] == true && chain["records"].as_u64() >= u64::try_from(answered).ok(),
        ),
    ];
    checks.push(stop_when_full(disk, &mut scene, &mut rest).await?);
    checks.push(scene.no_panic()?);
    Ok(checks)
}

/// Sends SIGTERM while records cannot be written.
async fn stop_when_full(disk: DiskFailure, scene: &mut FaultRun, rest: &mut RestClient) -> Result<FaultCheck> {
    disk.fill(scene)?;
    while call(rest).await?.0 == 200 {}
    scene.gateway.signal(Signal::TERM)?;
    let started = Instant::now();
    let code = loop {
        if let Some(status) = scene.gateway.ended()? {
            break status.code();
        }
        ensure!(started.elapsed() < Duration::from_secs(60), "hikite does not stop");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    let log = fs::read_to_string(scene.folder.path().join("stderr.log"))?;
    let said = log.lines().find(|line| line.contains("audit records are lost")).unwrap_or_default();
    let (is_fine, words) = match disk {
        _ if said.contains("records=") => (true, "said with the number"),
        // Every write is refused, including the log's.
        DiskFailure::Refused => (true, "the log could not be written either"),
        DiskFailure::Small => (false, "not said"),
    };
    let seen = format!("exit {code:?}, {words}");
    Ok(FaultCheck::that(
        "SIGTERM on a full disk",
        "exit 1, the loss said with its number",
        seen,
        code == Some(1) && is_fine,
    ))
}

/// Way to make the disk fail.
#[derive(Clone, Copy, PartialEq, Eq)]
enum DiskFailure {
    /// A file system without free space.
    Small,
    /// Every write is refused, because no file system can be mounted here.
    Refused,
}

impl DiskFailure {
    fn here() -> Self {
        let mount = "d=$(mktemp -d) && mount -t tmpfs tmpfs \"$d\"";
        let mounted = Command::new("unshare").args(NAMESPACE).args(["sh", "-c", mount]).output();
        if mounted.is_ok_and(|output| output.status.success()) { Self::Small } else { Self::Refused }
    }

    /// Returns the program, with its data on a separate disk if possible.
    fn program(self, settings: &FaultSettings) -> Command {
        if self == Self::Refused {
            return store::ignoring_limits(settings);
        }
        // The last argument is the data folder.
        let line = format!(
            "for last; do :; done; mkdir -p \"$last\" && \
             mount -t tmpfs -o size={SIZE},mode=0700 tmpfs \"$last\" && exec \"$0\" \"$@\""
        );
        let mut program = Command::new("unshare");
        program.args(NAMESPACE).args(["sh", "-c", &line]).arg(&settings.hikite);
        program
    }

    fn fill(self, scene: &FaultRun) -> Result<()> {
        if self == Self::Refused {
            return store::fill(scene, true);
        }
        let mut file = fs::File::create(filler(scene)).context("the small disk cannot be reached")?;
        for size in [1 << 16, 1 << 12, 1] {
            while file.write(&vec![1; size]).is_ok_and(|written| written > 0) {}
        }
        Ok(())
    }

    fn empty(self, scene: &FaultRun) -> Result<()> {
        match self {
            Self::Small => Ok(fs::remove_file(filler(scene))?),
            Self::Refused => store::fill(scene, false),
        }
    }

    fn words(self) -> &'static str {
        match self {
            Self::Small => "a full disk",
            Self::Refused => "a disk that refuses writes (none may be mounted here)",
        }
    }
}

/// Returns the path of a file on the disk that hikite sees.
fn filler(scene: &FaultRun) -> PathBuf {
    let data = scene.folder.path().join("data/filler");
    PathBuf::from(format!("/proc/{}/root{}", scene.gateway.pid(), data.display()))
}

/// Returns the status of one call, and whether it has `Retry-After`.
async fn call(rest: &mut RestClient) -> Result<(u16, bool)> {
    let body = json!({ "name": "echo", "parameters": { "text": "x" } });
    let request = rest.posting("/v1/tools/call", body.to_string())?;
    let answer = rest.ask(request).await?;
    Ok((answer.status().as_u16(), answer.headers().contains_key("retry-after")))
}

async fn ready(rest: &mut RestClient) -> Result<(u16, String)> {
    let mut request = rest.posting("/readyz", String::new())?;
    *request.method_mut() = hyper::Method::GET;
    let answer = rest.ask(request).await?;
    let body: Value = serde_json::from_slice(answer.body())?;
    Ok((answer.status().as_u16(), body["status"].as_str().unwrap_or_default().to_owned()))
}

//! An audit of a million records, on SQLite and on PostgreSQL: every filter answers quickly wherever its records are,
//! `verify` needs little memory and reports progress, `doctor` does not read it all, and retention returns disk space.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinSet;

use super::check::FaultCheck;
use super::settings::{FaultSettings, config, mib};
use crate::rig::TOOLS;
use crate::rig::postgres::Postgres;
use crate::rig::process::{GatewayChild, UpstreamChild};
use crate::rig::procfs;
use crate::rig::rest::RestClient;

const CLIENTS: usize = 16;
const ANSWERS_MS: f64 = 100.0;
const VERIFY_MIB: f64 = 64.0;
const DOCTOR_MIB: f64 = 64.0;
const TIMEOUT: Duration = Duration::from_secs(600);

/// A hikite with this many audit records, the rare ones first.
struct AuditScene {
    gateway: GatewayChild,
    folder: TempDir,
    config: Value,
    upstream: UpstreamChild,
    records: usize,
}

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let scene = fill(settings, None).await?;
    let mut checks = filters(settings, &scene, "SQLite").await?;
    checks.extend(verify(settings, &scene)?);
    checks.push(doctor(settings, &scene)?);
    checks.extend(space(settings, scene).await?);
    let database = Postgres::start().await?;
    let url = Postgres::url(database.address);
    settings.prepare_store(&url).await?;
    let scene = fill(settings, Some(&url)).await?;
    checks.extend(filters(settings, &scene, "PostgreSQL").await?);
    Ok(checks)
}

async fn fill(settings: &FaultSettings, store: Option<&str>) -> Result<AuditScene> {
    let records = settings.count(1_000_000, 4_000);
    let (upstream, folder) = (UpstreamChild::start()?, tempfile::tempdir()?);
    let mut config = config(&upstream, &json!({}), &[]);
    if let Some(url) = store {
        config["store"] = json!({ "url": url });
    }
    let gateway = GatewayChild::launch(Command::new(&settings.hikite), folder.path(), &config)?;
    let tools = gateway.tools(TOOLS).await?;
    let echo = tools.iter().find(|tool| tool.ends_with("echo")).context("no tool to call")?.clone();
    let mut rest = RestClient::open(gateway.target.address).await?;
    // The oldest record is the only one of its kind, with a unique name.
    rest.post("/v1/projects", json!({ "name": "needle" }).to_string()).await?;
    let mut running = JoinSet::new();
    for _ in 0..CLIENTS {
        let (mut client, echo) = (gateway.client().await?, echo.clone());
        running.spawn(async move {
            for _ in 0..records / CLIENTS {
                client.echo(&echo).await?;
            }
            anyhow::Ok(())
        });
    }
    while let Some(done) = running.join_next().await {
        done??;
    }
    Ok(AuditScene { gateway, folder, config, upstream, records })
}

/// Queries each filter several times through the API, to the last page.
async fn filters(settings: &FaultSettings, scene: &AuditScene, store: &str) -> Result<Vec<FaultCheck>> {
    let mut rest = RestClient::open(scene.gateway.target.address).await?;
    let first: Value = serde_json::from_slice(&rest.get("/v1/audit/1").await?)?;
    let (begin, far) = (first["at"].as_u64().context("no time")?, 4_000_000_000_000_u64);
    let mut checks = Vec::new();
    for (what, query, expected) in [
        ("kind", "kind=admin".to_owned(), 1),
        ("outcome", "outcome=TIMEOUT".to_owned(), 0),
        ("since, where nothing is", format!("since={far}"), 0),
        ("until, the oldest", format!("until={}", begin + 1), 1),
        ("actor that nobody is", "actor=nobody".to_owned(), 0),
        ("kind and actor", "kind=admin&actor=owner".to_owned(), 1),
        ("free text in the oldest record", "text=NEEDLE".to_owned(), 1),
    ] {
        let (mut slowest, mut pages, mut found) = (0.0_f64, 0, 0);
        for _ in 0..3 {
            (pages, found) = (0, 0);
            let mut before = String::new();
            loop {
                let started = Instant::now();
                let page = rest.get(&format!("/v1/audit?limit=50&{query}{before}")).await?;
                slowest = slowest.max(started.elapsed().as_secs_f64() * 1000.0);
                let page: Value = serde_json::from_slice(&page)?;
                found += page["records"].as_array().map_or(0, Vec::len);
                pages += 1;
                match page["next"].as_u64() {
                    Some(next) => before = format!("&before={next}"),
                    None => break,
                }
            }
        }
        checks.push(FaultCheck::that(
            format!("{store}, {} records: {what}", scene.records),
            format!("≤ {} ms a page, {expected} found", settings.at_worst(ANSWERS_MS)),
            format!("{slowest:.1} ms at worst, {pages} pages, {found} found"),
            slowest <= settings.at_worst(ANSWERS_MS) && found == expected,
        ));
    }
    Ok(checks)
}

/// Output, duration and peak memory of a hikite command.
struct ProgramRun {
    stdout: String,
    stderr: String,
    seconds: f64,
    peak_mib: f64,
    read_mib: f64,
}

fn run_program(settings: &FaultSettings, scene: &AuditScene, words: &[&str]) -> Result<ProgramRun> {
    let at = |name: &str| scene.folder.path().join(name);
    let mut child = Command::new(&settings.hikite)
        .args(words)
        .arg("--config")
        .arg(at("hikite.json"))
        .arg("--data")
        .arg(at("data"))
        .env("HIKITE_DUMPABLE", "1")
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(at("out"))?)
        .stderr(std::fs::File::create(at("err"))?)
        .spawn()?;
    let (started, mut peak, mut read) = (Instant::now(), 0, 0);
    while child.try_wait()?.is_none() {
        ensure!(started.elapsed() < TIMEOUT, "`{}` does not end", words.join(" "));
        peak = procfs::memory(child.id()).map_or(peak, |(_, most)| most.max(peak));
        let io = std::fs::read_to_string(format!("/proc/{}/io", child.id())).unwrap_or_default();
        let bytes = io.lines().find_map(|line| line.strip_prefix("rchar: ")).and_then(|text| text.parse().ok());
        read = bytes.unwrap_or(0_u64).max(read);
        std::thread::sleep(Duration::from_millis(5));
    }
    let seconds = started.elapsed().as_secs_f64();
    let text = |path: &Path| Ok::<_, anyhow::Error>(String::from_utf8_lossy(&std::fs::read(path)?).into_owned());
    Ok(ProgramRun {
        stdout: text(&at("out"))?,
        stderr: text(&at("err"))?,
        seconds,
        peak_mib: mib(peak),
        read_mib: mib(read),
    })
}

fn verify(settings: &FaultSettings, scene: &AuditScene) -> Result<Vec<FaultCheck>> {
    let ran = run_program(settings, scene, &["audit", "verify", "--json"])?;
    let verdict: Value = serde_json::from_str(&ran.stdout).context("verify printed no JSON")?;
    let told = ran.stderr.lines().filter(|line| line.contains("verifying the audit")).count();
    let records = verdict["records"].as_u64().unwrap_or_default();
    Ok(vec![
        FaultCheck::that(
            "verify",
            format!("intact, ≥ {} records", scene.records),
            format!("intact {}, {records} records in {:.1} s", verdict["intact"], ran.seconds),
            verdict["intact"] == true && records >= u64::try_from(scene.records)?,
        ),
        FaultCheck::at_most("verify: memory at most", ran.peak_mib, VERIFY_MIB, "MiB"),
        FaultCheck::that(
            "verify: says how far it is if it lasts over two seconds",
            "yes",
            format!("{told} times in {:.1} s", ran.seconds),
            ran.seconds < 2.0 || told > 0,
        ),
    ])
}

fn doctor(settings: &FaultSettings, scene: &AuditScene) -> Result<FaultCheck> {
    let ran = run_program(settings, scene, &["doctor", "--json"])?;
    let whole = mib(std::fs::metadata(scene.folder.path().join("data/hikite.db"))?.len());
    let findings: Value = serde_json::from_str(&ran.stdout).context("doctor printed no JSON")?;
    let store = findings.as_array().and_then(|all| all.iter().find(|one| one["what"] == "store"));
    let is_well = store.is_some_and(|store| store["level"] == "ok");
    Ok(FaultCheck::that(
        "doctor: reads of the store",
        format!("≤ {DOCTOR_MIB} MiB, well"),
        format!(
            "{:.1} MiB of {whole:.1} in {:.1} s, {}",
            ran.read_mib,
            ran.seconds,
            if is_well { "well" } else { "not well" }
        ),
        is_well && ran.read_mib <= DOCTOR_MIB,
    ))
}

/// Retains one percent and checks that the file shrinks.
async fn space(settings: &FaultSettings, scene: AuditScene) -> Result<Vec<FaultCheck>> {
    let AuditScene { gateway, folder, mut config, upstream, records } = scene;
    gateway.stop()?;
    let file = folder.path().join("data/hikite.db");
    let before = mib(std::fs::metadata(&file)?.len());
    let keep = records / 100;
    config["audit"] = json!({ "max_records": keep });
    let gateway = GatewayChild::launch(Command::new(&settings.hikite), folder.path(), &config)?;
    gateway.tools(TOOLS).await?;
    let mut rest = RestClient::open(gateway.target.address).await?;
    let started = Instant::now();
    let verdict = loop {
        let verdict: Value = serde_json::from_slice(&rest.get("/v1/audit/verify").await?)?;
        if verdict["records"].as_u64().is_some_and(|records| records <= keep as u64 + 10) {
            break verdict;
        }
        ensure!(started.elapsed() < TIMEOUT, "what is too much stays: {verdict}");
        tokio::time::sleep(Duration::from_secs(1)).await;
    };
    let seconds = started.elapsed().as_secs_f64();
    gateway.stop()?;
    drop(upstream);
    let after = mib(std::fs::metadata(&file)?.len());
    Ok(vec![
        FaultCheck::that(
            format!("trim to {keep} records"),
            "a record of it, the chain whole",
            format!("{} in {seconds:.0} s", verdict["trimmed"]),
            verdict["intact"] == true && verdict["trimmed"]["record"].is_u64(),
        ),
        FaultCheck::that(
            "the file afterwards",
            "≤ a quarter",
            format!("{before:.1} MiB before, {after:.1} MiB after"),
            after * 4.0 <= before,
        ),
    ])
}

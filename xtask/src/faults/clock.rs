//! A wall clock that jumps an hour forward and back while hikite runs (libfaketime; the monotonic clock is unaffected).
//! Calls continue, tokens are checked against the new time, and nothing panics.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

use super::check::FaultCheck;
use super::settings::{FaultRun, FaultSettings};
use crate::rig::client::RigClient;
use crate::rig::rest::RestClient;

const LIBRARIES: &[&str] = &[
    "/usr/lib/x86_64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/aarch64-linux-gnu/faketime/libfaketimeMT.so.1",
    "/usr/lib/faketime/libfaketimeMT.so.1",
    "/usr/local/lib/faketime/libfaketimeMT.so.1",
];

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let folder = tempfile::tempdir()?;
    let offset = folder.path().join("offset");
    std::fs::write(&offset, "+0")?;
    let program = with_clock(&settings.hikite, &offset)?;
    let scene = settings.open_by(program, &json!({}), &[], 0).await?;
    let mut rest = RestClient::open(scene.gateway.target.address).await?;
    let (short, long) = (token(&mut rest, 1800).await?, token(&mut rest, 7200).await?);
    let mut held = RigClient::open_as(&scene.gateway.target, Some(&long), Duration::from_secs(5)).await?;
    let mut checks = Vec::new();
    for (jump, short_is_good) in [("+0", true), ("+3600", false), ("+0", true), ("-3600", true), ("+0", true)] {
        jump_to(&offset, jump, &mut rest).await?;
        let mut failed = 0;
        for _ in 0..50 {
            failed += usize::from(held.echo(&scene.echo).await.is_err());
        }
        let known = async |secret: &str| is_known(&scene, secret).await;
        let (short, long) = (known(&short).await, known(&long).await);
        let seen = format!("{failed} of 50 calls fail; 30 min token {}, 2 h token {}", word(short), word(long));
        let bound = format!("0; {}, good", word(short_is_good));
        checks.push(FaultCheck::that(
            format!("the clock at {jump} s"),
            bound,
            seen,
            failed == 0 && short == short_is_good && long,
        ));
    }
    tokio::time::sleep(Duration::from_secs(1)).await;
    let chain: Value = serde_json::from_slice(&rest.get("/v1/audit/verify").await?)?;
    checks.push(FaultCheck::that("the audit's chain", "whole", chain["intact"].to_string(), chain["intact"] == true));
    checks.push(scene.no_panic()?);
    Ok(checks)
}

/// Returns the program with a wall clock shifted as the file says. `FAKETIME_LIBRARY` overrides Debian's library path.
pub(super) fn with_clock(program: &Path, offset: &Path) -> Result<Command> {
    let named = std::env::var_os("FAKETIME_LIBRARY").map(PathBuf::from);
    let known = LIBRARIES.iter().map(PathBuf::from);
    let Some(library) = named.into_iter().chain(known).find(|path| path.exists()) else {
        bail!("libfaketime is not installed");
    };
    let mut program = Command::new(program);
    program
        .env("LD_PRELOAD", library)
        .env("FAKETIME_TIMESTAMP_FILE", offset)
        .env("FAKETIME_NO_CACHE", "1")
        .env("DONT_FAKE_MONOTONIC", "1");
    Ok(program)
}

fn word(is_good: bool) -> &'static str {
    if is_good { "good" } else { "expired" }
}

async fn token(rest: &mut RestClient, seconds: u64) -> Result<String> {
    let wanted = json!({ "name": format!("t{seconds}"), "expiresIn": seconds }).to_string();
    let token: Value = serde_json::from_slice(&rest.post("/v1/tokens", wanted).await?)?;
    Ok(token["secret"].as_str().context("no token")?.to_owned())
}

async fn is_known(scene: &FaultRun, secret: &str) -> bool {
    RigClient::open_as(&scene.gateway.target, Some(secret), Duration::from_secs(5)).await.is_ok()
}

/// Sets the clock and waits until the program sees it.
async fn jump_to(offset: &PathBuf, jump: &str, rest: &mut RestClient) -> Result<()> {
    let now = async |rest: &mut RestClient| -> Result<String> {
        let health: Value = serde_json::from_slice(&rest.get("/health").await?)?;
        Ok(health["timestamp"].as_str().context("no timestamp")?[..13].to_owned())
    };
    let before = now(rest).await?;
    let was = std::fs::read_to_string(offset)?;
    std::fs::write(offset, jump)?;
    tokio::time::sleep(Duration::from_millis(200)).await;
    let after = now(rest).await?;
    anyhow::ensure!((was == jump) == (before == after), "the clock did not jump: {before} and {after}");
    Ok(())
}

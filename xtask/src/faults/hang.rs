//! A server that does not answer properly: its calls end at their deadline, its concurrency slot is released, its
//! responses are capped, and calls of other servers are not slower.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::json;

use super::check::FaultCheck;
use super::code_of;
use super::rogue::{RogueBehavior, RogueServer, TOOL};
use super::settings::FaultSettings;
use crate::rig::load::{BackgroundCalls, LoadSummary};

const DEADLINE_MS: f64 = 1000.0;
const SLACK_MS: f64 = 100.0;
const AT_ONCE_MS: f64 = 1000.0;
/// Twice the largest response: the buffer of an endless line and its previous size before it grew, plus memory that the
/// allocator has not returned yet.
const GROWTH_MIB: f64 = 40.0;
const PAUSE: Duration = Duration::from_millis(2);
/// Noise between two equal measurements on a shared machine.
const NOISE_MS: f64 = 3.0;

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let rogue = RogueServer::start().await?;
    let mut server = rogue.server("1s");
    // One slot: unless it is released, the next call does not run.
    server["concurrency"] = 1.into();
    let limits = json!({ "breaker_failures": 0, "answer_bytes": "16MiB" });
    let scene = settings.open(&limits, &[("bad", server)], 1).await?;
    let mut client = scene.gateway.client().await?;
    let (mut checks, slack) = (Vec::new(), settings.at_worst(SLACK_MS));
    for (act, name, waits) in [
        (RogueBehavior::Hang, "no answer", true),
        (RogueBehavior::HangMidBody, "half an answer", true),
        (RogueBehavior::SilentStream, "a stream that falls silent", true),
        (RogueBehavior::Large(100_000_000), "an answer of 100 MB", false),
        (RogueBehavior::EndlessLine, "a line without end", false),
    ] {
        let before = scene.memory()?;
        rogue.set(act);
        let started = Instant::now();
        let code = code_of(&client.call(TOOL, &json!({})).await?);
        let took = started.elapsed().as_secs_f64() * 1000.0;
        let growth = scene.growth(before)?;
        rogue.set(RogueBehavior::Healthy);
        let again = Instant::now();
        let well = code_of(&client.call(TOOL, &json!({})).await?);
        let again = again.elapsed().as_secs_f64() * 1000.0;
        let (earliest, latest) = (DEADLINE_MS - SLACK_MS, DEADLINE_MS + slack);
        let in_time = (!waits || took >= earliest) && took <= latest;
        let ok = in_time && code.is_some();
        let bound = if waits {
            format!("an error after {earliest} to {latest} ms")
        } else {
            format!("an error within {latest} ms, ≤ {GROWTH_MIB} MiB")
        };
        let ok = ok && (waits || growth <= GROWTH_MIB);
        let seen = format!("{} after {took:.0} ms, {growth:.1} MiB", code.as_deref().unwrap_or("a result"));
        checks.push(FaultCheck::that(name, bound, seen, ok));
        let seen = format!("{} after {again:.0} ms", well.as_deref().unwrap_or("a result"));
        let at_once = settings.within(AT_ONCE_MS);
        checks.push(FaultCheck::that(
            format!("{name}: the next call"),
            format!("a result within {at_once} ms"),
            seen,
            well.is_none() && again < at_once,
        ));
    }
    checks.push(others(settings, &rogue, &scene).await?);
    checks.push(scene.no_panic()?);
    Ok(checks)
}

/// Compares the p99 of another server's calls, alternating with and without hanging calls.
async fn others(
    settings: &FaultSettings,
    rogue: &RogueServer,
    scene: &super::settings::FaultRun,
) -> Result<FaultCheck> {
    let (mut quiet, mut troubled) = (Vec::new(), Vec::new());
    for _ in 0..settings.count(7, 3) {
        let steady = BackgroundCalls::start(&scene.gateway.target, &scene.echo, PAUSE).await?;
        tokio::time::sleep(Duration::from_secs(2)).await;
        quiet.push(steady.end().await?);
        rogue.set(RogueBehavior::Hang);
        let mut client = scene.gateway.client().await?;
        let steady = BackgroundCalls::start(&scene.gateway.target, &scene.echo, PAUSE).await?;
        for _ in 0..2 {
            client.call(TOOL, &json!({})).await?;
        }
        troubled.push(steady.end().await?);
        rogue.set(RogueBehavior::Healthy);
    }
    // The best rounds of each, since other work on this machine adds noise.
    let best = |loads: &[LoadSummary]| loads.iter().map(|load| load.p99_ms).fold(f64::INFINITY, f64::min);
    let (quiet, troubled) = (best(&quiet), best(&troubled));
    let seen = format!("{quiet:.2} ms without, {troubled:.2} ms with");
    let noise = settings.at_worst(NOISE_MS);
    let ok = troubled <= quiet * 1.1 || troubled - quiet <= noise;
    Ok(FaultCheck::that("p99 of another server's calls, best rounds", format!("+ 10 % or + {noise} ms"), seen, ok))
}

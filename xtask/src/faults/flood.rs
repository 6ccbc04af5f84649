//! A server that announces changed lists without end: they are read a few times and then rarely, its calls continue,
//! and calls of other servers are not slower.

use std::time::Duration;

use anyhow::Result;
use serde_json::json;

use super::check::FaultCheck;
use super::code_of;
use super::rogue::{RogueBehavior, RogueServer, TOOL};
use super::settings::FaultSettings;
use crate::rig::load::{BackgroundCalls, LoadSummary};

/// Maximum list reads in half a minute.
const READINGS: f64 = 16.0;
const GROWTH_MIB: f64 = 16.0;
/// Minimum announcements per second to count as a flood.
const FLOOD: f64 = 1000.0;
const PAUSE: Duration = Duration::from_millis(2);
/// Noise between two equal measurements on a shared machine, where one of two processors reads the flood.
const NOISE_MS: f64 = 5.0;

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let rogue = RogueServer::start().await?;
    let scene = settings.open(&json!({}), &[("bad", rogue.server("5s"))], 1).await?;
    let lasts = settings.lasts(30, 5);
    let quiet = measured(&scene, lasts / 2).await?;
    rogue.set(RogueBehavior::Flood);
    let mut client = scene.gateway.client().await?;
    let before = scene.memory()?;
    let mut checks = Vec::new();
    // The first call opens the connection, and with it the stream of the flood.
    let first = code_of(&client.call(TOOL, &json!({})).await?);
    let (said, read) = (rogue.announced(), rogue.lists());
    let troubled = measured(&scene, lasts).await?;
    let (said, read) = (rogue.announced() - said, rogue.lists() - read);
    let own = code_of(&client.call(TOOL, &json!({})).await?);
    let number = |count: usize| f64::from(u32::try_from(count).unwrap_or(u32::MAX));
    let rate = number(said) / lasts.as_secs_f64();
    checks.push(FaultCheck::at_least("announcements that were taken", rate, FLOOD, "a second"));
    let what = format!("readings of its lists in {} s", lasts.as_secs());
    checks.push(FaultCheck::at_most(what, number(read), READINGS, "times"));
    checks.push(FaultCheck::at_most("memory", scene.growth(before)?, GROWTH_MIB, "MiB"));
    let well = first.is_none() && own.is_none();
    let seen = if well { "two results" } else { "a failure" };
    checks.push(FaultCheck::that("its own calls meanwhile", "results", seen, well));
    let noise = settings.at_worst(NOISE_MS);
    let (without, with) = (quiet.p99_ms, troubled.p99_ms);
    let seen = format!("{without:.2} ms without, {with:.2} ms with");
    let bound = format!("twice as long or + {noise} ms");
    let ok = with <= without * 2.0 || with - without <= noise;
    checks.push(FaultCheck::that("p99 of another server's calls", bound, seen, ok));
    rogue.set(RogueBehavior::Healthy);
    checks.push(scene.no_panic()?);
    Ok(checks)
}

/// Measures calls of another server for a while.
async fn measured(scene: &super::settings::FaultRun, lasts: Duration) -> Result<LoadSummary> {
    let steady = BackgroundCalls::start(&scene.gateway.target, &scene.echo, PAUSE).await?;
    tokio::time::sleep(lasts).await;
    steady.end().await
}

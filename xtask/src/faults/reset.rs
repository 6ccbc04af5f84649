//! Connections to a server that are reset at every byte of a call and of its response. A tool without idempotency hints
//! never runs twice, and the caller gets the kind of failure.

use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use serde_json::json;

use super::check::FaultCheck;
use super::code_of;
use super::rogue::{RogueBehavior, RogueServer, TOOL};
use super::settings::FaultSettings;
use crate::rig::client::RigClient;

/// More bytes than the request and the response have.
const ENOUGH: usize = 4000;
/// Fewer bytes than either has: with fewer resets, something else was hit.
const LEAST: usize = 100;
const CLASSIFIED: &[&str] = &["UPSTREAM_UNAVAILABLE", "TIMEOUT"];

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let rogue = RogueServer::start().await?;
    let mut server = rogue.server("5s");
    // It would be retried if that were allowed.
    server["retry"] = json!({ "attempts": 3, "delay": "1ms" });
    let scene = settings.open(&json!({ "breaker_failures": 0 }), &[("bad", server)], 1).await?;
    let mut client = scene.gateway.client().await?;
    let (mut checks, step) = (Vec::new(), settings.count(1, 7));
    for (name, act) in [
        ("request", RogueBehavior::ResetRequest as fn(usize) -> RogueBehavior),
        ("answer", RogueBehavior::ResetAnswer as fn(usize) -> RogueBehavior),
    ] {
        let (mut twice, mut odd, mut lost, mut tried) = (0, Vec::new(), 0, 0);
        for bytes in (0..ENOUGH).step_by(step) {
            wait_until_healthy(&mut client).await?;
            let (runs, resets) = (rogue.runs(), rogue.resets());
            rogue.set(act(bytes));
            let answer = client.call(TOOL, &json!({ "text": "x" })).await?;
            rogue.set(RogueBehavior::Healthy);
            if rogue.resets() == resets {
                break;
            }
            tried += 1;
            twice += usize::from(rogue.runs() - runs > 1);
            if let Some(code) = code_of(&answer) {
                lost += 1;
                if !CLASSIFIED.contains(&code.as_str()) {
                    odd.push(format!("{bytes}: {code}"));
                }
            }
        }
        ensure!(
            tried >= LEAST / step && lost > 0,
            "{tried} resets of the {name} and {lost} lost calls: they do not hit"
        );
        checks.push(FaultCheck::none(format!("reset in the {name}: run twice"), twice, tried));
        let seen = format!("{} of {lost} lost calls {}", odd.len(), odd.first().map_or("", String::as_str));
        checks.push(FaultCheck::that(
            format!("reset in the {name}: failures without a kind"),
            "0",
            seen,
            odd.is_empty(),
        ));
    }
    checks.push(scene.no_panic()?);
    Ok(checks)
}

/// Waits until calls succeed again, so that the next reset hits a call and not the connection setup.
async fn wait_until_healthy(client: &mut RigClient) -> Result<()> {
    let started = Instant::now();
    while code_of(&client.call(TOOL, &json!({ "text": "x" })).await?).is_some() {
        ensure!(started.elapsed() < Duration::from_secs(10), "the server is not found again");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    Ok(())
}

//! A new config every second, valid and invalid, under load: no call fails.

use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::{Value, json};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::check::FaultCheck;
use super::settings::FaultSettings;
use crate::rig::client::RigClient;

const CLIENTS: usize = 8;

pub(super) async fn run(settings: &FaultSettings) -> Result<Vec<FaultCheck>> {
    let scene = settings.open(&json!({}), &[], 0).await?;
    let span = settings.lasts(30, 6);
    let stop = CancellationToken::new();
    let mut running = JoinSet::new();
    for _ in 0..CLIENTS {
        running.spawn(calls(scene.gateway.client().await?, scene.echo.clone(), stop.clone()));
    }
    let first: Value = serde_json::from_slice(&std::fs::read(scene.config_file())?)?;
    let (started, mut reloads) = (Instant::now(), 0);
    while started.elapsed() < span {
        reloads += 1;
        let mut next = first.clone();
        next["categories"] = json!({ format!("c{reloads}"): { "description": "d", "server": "well" } });
        // A server that is absent, one that changes, and sometimes an invalid file.
        next["mcpServers"]["gone"] = json!({ "url": format!("http://127.0.0.1:9/{reloads}") });
        let text = if reloads % 5 == 0 { "{ wrong".to_owned() } else { next.to_string() };
        std::fs::write(scene.config_file(), text)?;
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    stop.cancel();
    let (mut answered, mut wrong) = (0, Vec::new());
    while let Some(done) = running.join_next().await {
        let (well, failed) = done?;
        answered += well;
        wrong.extend(failed);
    }
    let seen = format!("{} of {} {}", wrong.len(), answered + wrong.len(), wrong.first().map_or("", |first| first));
    let log = std::fs::read_to_string(scene.folder.path().join("stderr.log"))?;
    let told = log.matches("the changed config is invalid").count();
    Ok(vec![
        FaultCheck::that(format!("wrong answers, {reloads} reloads"), "0", seen, wrong.is_empty() && answered > 0),
        FaultCheck::that("wrong files that are told", "≥ 1", told.to_string(), told >= 1),
        scene.no_panic()?,
    ])
}

/// Returns the number of successful calls, and the errors of the others.
async fn calls(mut client: RigClient, tool: String, stop: CancellationToken) -> (usize, Vec<String>) {
    let (mut well, mut wrong) = (0, Vec::new());
    while !stop.is_cancelled() {
        match client.echo(&tool).await {
            Ok(()) => well += 1,
            Err(error) => wrong.push(format!("{error:#}")),
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    (well, wrong)
}

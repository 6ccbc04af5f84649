//! Our own entries of the comparison: the bare upstream, the minimal relay, and hikite with its defaults and without
//! auth.

use anyhow::{Context, Result};
use serde_json::json;
use tokio::process::Command;

use super::side::{
    CallFormat, GatewayFront, GatewayLaunch, GatewayRole, GatewayUnderTest, LaunchContext, LaunchPlan, UpstreamKind,
};

const TOKEN: &str = "a-token-that-guards-nothing-but-a-benchmark-0001";
const SEARCH: (&str, &str) = (r#"{"name":"tool_discovery","arguments":{"query":"#, "}}");

pub(super) fn all() -> Vec<GatewayUnderTest> {
    let side = |name, role, plan| GatewayUnderTest { name, role, is_slow: false, install: None, plan };
    vec![
        side("direct", GatewayRole::Limit, direct),
        side("floor", GatewayRole::Floor, floor),
        side("hikite", GatewayRole::Hikite, hikite),
        side("hikite, no auth", GatewayRole::HikiteOpen, hikite_open),
    ]
}

fn direct(place: &LaunchContext<'_>) -> Result<LaunchPlan> {
    if place.searches {
        return Ok(LaunchPlan::Absent("has no search"));
    }
    let (command, front) = match (place.origin.kind, place.origin.address()) {
        (UpstreamKind::None, _) => return Ok(LaunchPlan::Absent("is the upstream")),
        (_, Some(address)) => (None, GatewayFront::Http(address, "/mcp")),
        (_, None) => (Some(upstream(place)?), GatewayFront::Pipe),
    };
    Ok(LaunchPlan::start(GatewayLaunch { command, ..GatewayLaunch::new(Command::new("true"), front, place) }))
}

fn upstream(place: &LaunchContext<'_>) -> Result<Command> {
    let program = place.origin.program()?;
    let (first, rest) = program.split_first().context("a program")?;
    let mut command = Command::new(first);
    command.args(rest);
    Ok(command)
}

fn floor(place: &LaunchContext<'_>) -> Result<LaunchPlan> {
    if place.searches {
        return Ok(LaunchPlan::Absent("has no search"));
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["floor", "--listen", &place.listen.to_string()]);
    match (place.origin.kind, place.origin.address()) {
        (UpstreamKind::None, _) => return Ok(LaunchPlan::Absent("needs an upstream")),
        (_, Some(address)) => command.args(["--http", &address.to_string()]),
        (_, None) => command.arg("--stdio").args(place.origin.program()?),
    };
    Ok(LaunchPlan::start(GatewayLaunch::new(command, place.front("/mcp"), place)))
}

fn hikite(place: &LaunchContext<'_>) -> Result<LaunchPlan> {
    start(place, true)
}

fn hikite_open(place: &LaunchContext<'_>) -> Result<LaunchPlan> {
    start(place, false)
}

fn start(place: &LaunchContext<'_>, has_auth: bool) -> Result<LaunchPlan> {
    let servers = match (place.origin.kind, place.origin.url()) {
        (UpstreamKind::None, _) => json!({}),
        (_, Some(url)) => json!({ "bench": { "url": url } }),
        (_, None) => {
            let program = place.origin.program()?;
            let (first, rest) = program.split_first().context("a program")?;
            json!({ "bench": { "command": first, "args": rest } })
        }
    };
    let auth = if has_auth { json!({ "mode": "token", "token": TOKEN }) } else { json!({ "mode": "none" }) };
    let surface = if place.searches { "search" } else { "direct" };
    let config = json!({ "auth": auth, "server": { "surface": [surface] }, "mcpServers": servers });
    let config = place.write("hikite.json", &config.to_string())?;
    let mut command = Command::new(place.hikite);
    // Its memory is read from `/proc`, which is closed for processes that are not dumpable.
    command.env("HIKITE_DUMPABLE", "1");
    command.args(["serve", "--listen", &place.listen.to_string(), "--config"]).arg(config);
    command.arg("--data").arg(place.folder.join("data"));
    let launch = GatewayLaunch::new(command, place.front("/mcp"), place);
    Ok(LaunchPlan::start(GatewayLaunch {
        token: has_auth.then(|| TOKEN.to_owned()),
        call_format: CallFormat::Listed("echo"),
        tools: if place.searches { 1 } else { place.origin.tools },
        search: place.searches.then_some(SEARCH),
        ..launch
    }))
}

//! Our own entries of the comparison: the bare upstream, the minimal relay, and hikite with its defaults and without
//! auth.

use anyhow::{Context, Result};
use serde_json::json;
use tokio::process::Command;

use super::side::{Front, Kind, Launch, Place, Plan, Role, Side, Wording};

const TOKEN: &str = "a-token-that-guards-nothing-but-a-benchmark-0001";
const SEARCH: (&str, &str) = (r#"{"name":"tool_discovery","arguments":{"query":"#, "}}");

pub(super) fn all() -> Vec<Side> {
    let side = |name, role, plan| Side { name, role, is_slow: false, install: None, plan };
    vec![
        side("direct", Role::Limit, direct),
        side("floor", Role::Floor, floor),
        side("hikite", Role::Hikite, hikite),
        side("hikite, no auth", Role::HikiteOpen, hikite_open),
    ]
}

fn direct(place: &Place<'_>) -> Result<Plan> {
    if place.searches {
        return Ok(Plan::Absent("has no search"));
    }
    let (command, front) = match (place.origin.kind, place.origin.address()) {
        (Kind::None, _) => return Ok(Plan::Absent("is the upstream")),
        (_, Some(address)) => (None, Front::Http(address, "/mcp")),
        (_, None) => (Some(upstream(place)?), Front::Pipe),
    };
    Ok(Plan::start(Launch { command, ..Launch::new(Command::new("true"), front, place) }))
}

fn upstream(place: &Place<'_>) -> Result<Command> {
    let program = place.origin.program()?;
    let (first, rest) = program.split_first().context("a program")?;
    let mut command = Command::new(first);
    command.args(rest);
    Ok(command)
}

fn floor(place: &Place<'_>) -> Result<Plan> {
    if place.searches {
        return Ok(Plan::Absent("has no search"));
    }
    let mut command = Command::new(std::env::current_exe()?);
    command.args(["floor", "--listen", &place.listen.to_string()]);
    match (place.origin.kind, place.origin.address()) {
        (Kind::None, _) => return Ok(Plan::Absent("needs an upstream")),
        (_, Some(address)) => command.args(["--http", &address.to_string()]),
        (_, None) => command.arg("--stdio").args(place.origin.program()?),
    };
    Ok(Plan::start(Launch::new(command, place.front("/mcp"), place)))
}

fn hikite(place: &Place<'_>) -> Result<Plan> {
    start(place, true)
}

fn hikite_open(place: &Place<'_>) -> Result<Plan> {
    start(place, false)
}

fn start(place: &Place<'_>, has_auth: bool) -> Result<Plan> {
    let servers = match (place.origin.kind, place.origin.url()) {
        (Kind::None, _) => json!({}),
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
    let launch = Launch::new(command, place.front("/mcp"), place);
    Ok(Plan::start(Launch {
        token: has_auth.then(|| TOKEN.to_owned()),
        wording: Wording::Listed("echo"),
        tools: if place.searches { 1 } else { place.origin.tools },
        search: place.searches.then_some(SEARCH),
        ..launch
    }))
}

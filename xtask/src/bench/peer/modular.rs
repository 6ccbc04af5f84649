//! `modular-mcp` from npm: one tool opens a group and one calls a tool of it, over stdio only.

use anyhow::{Context, Result};
use serde_json::json;
use tokio::process::Command;

use super::super::side::{CallFormat, GatewayFront, GatewayLaunch, LaunchContext, LaunchPlan, UpstreamKind};
use super::{Install, Way};

pub(super) const INSTALL: Install = Install {
    name: "modular-mcp",
    version: "0.0.5",
    way: Way::Npm("@kimuson/modular-mcp"),
    program: "node_modules/@kimuson/modular-mcp/dist/index.js",
};

const CALL: CallFormat =
    CallFormat::Wrapped(r#"{"name":"call-modular-tool","arguments":{"group":"bench","name":"echo","args":"#, "}}");

pub(super) fn plan(place: &LaunchContext<'_>) -> Result<LaunchPlan> {
    let Some(program) = INSTALL.program()? else { return Ok(LaunchPlan::Absent("not installed")) };
    if place.searches {
        return Ok(LaunchPlan::Absent("has no search"));
    }
    let mut server = match (place.origin.kind, place.origin.url()) {
        (UpstreamKind::None, _) => return Ok(LaunchPlan::Absent("needs an upstream")),
        (_, Some(url)) => json!({ "type": "http", "url": url }),
        (_, None) => {
            let program = place.origin.program()?;
            let (first, rest) = program.split_first().context("a program")?;
            json!({ "command": first, "args": rest })
        }
    };
    server["description"] = "The tools of the benchmark".into();
    let config = place.write("modular.json", &json!({ "mcpServers": { "bench": server } }).to_string())?;
    let mut command = Command::new("node");
    command.arg(program).arg(config);
    let launch = GatewayLaunch::new(command, GatewayFront::Pipe, place);
    Ok(LaunchPlan::start(GatewayLaunch { call_format: CALL, tools: 1, ..launch }))
}

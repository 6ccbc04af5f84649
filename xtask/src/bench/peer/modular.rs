//! `modular-mcp` from npm: one tool opens a group and one calls a tool of it, over stdio only.

use anyhow::{Context, Result};
use serde_json::json;
use tokio::process::Command;

use super::super::side::{Front, Kind, Launch, Place, Plan, Wording};
use super::{Install, Way};

pub(super) const INSTALL: Install = Install {
    name: "modular-mcp",
    version: "0.0.5",
    way: Way::Npm("@kimuson/modular-mcp"),
    program: "node_modules/@kimuson/modular-mcp/dist/index.js",
};

const CALL: Wording = Wording::Wrapped(
    r#"{"name":"call-modular-tool","arguments":{"group":"bench","name":"echo","args":"#,
    "}}",
);

pub(super) fn plan(place: &Place<'_>) -> Result<Plan> {
    let Some(program) = INSTALL.program()? else { return Ok(Plan::Absent("not installed")) };
    if place.searches {
        return Ok(Plan::Absent("has no search"));
    }
    let mut server = match (place.origin.kind, place.origin.url()) {
        (Kind::None, _) => return Ok(Plan::Absent("needs an upstream")),
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
    let launch = Launch::new(command, Front::Pipe, place);
    Ok(Plan::start(Launch { wording: CALL, tools: 1, ..launch }))
}

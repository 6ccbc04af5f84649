//! The proxy of `fastmcp`, started from a server config by its own command.

use anyhow::{Context, Result};
use serde_json::json;
use tokio::process::Command;

use super::super::side::{GatewayLaunch, LaunchContext, LaunchPlan, UpstreamKind};
use super::{Install, Way};

pub(super) const INSTALL: Install =
    Install { name: "fastmcp", version: "2.13.0", way: Way::Python("fastmcp"), program: "bin/fastmcp" };

pub(super) fn plan(place: &LaunchContext<'_>) -> Result<LaunchPlan> {
    let Some(program) = INSTALL.program()? else { return Ok(LaunchPlan::Absent("not installed")) };
    if place.searches {
        return Ok(LaunchPlan::Absent("has no search"));
    }
    let server = match (place.origin.kind, place.origin.url()) {
        (UpstreamKind::None, _) => return Ok(LaunchPlan::Absent("needs an upstream")),
        (_, Some(url)) => json!({ "url": url, "transport": "http" }),
        (_, None) => {
            let program = place.origin.program()?;
            let (first, rest) = program.split_first().context("a program")?;
            json!({ "command": first, "args": rest })
        }
    };
    let config = place.write("mcp.json", &json!({ "mcpServers": { "bench": server } }).to_string())?;
    let mut command = Command::new(program);
    command.arg("run").arg(config).args(["--transport", "http", "--host", "127.0.0.1", "--no-banner"]);
    command.args(["--port", &place.listen.port().to_string(), "--log-level", "ERROR"]);
    Ok(LaunchPlan::start(GatewayLaunch::new(command, place.front("/mcp"), place)))
}

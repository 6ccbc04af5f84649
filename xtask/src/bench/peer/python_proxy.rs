//! `mcp-proxy` from the Python registry: exposes a stdio server over HTTP, or an HTTP server over stdio.

use anyhow::Result;
use tokio::process::Command;

use super::super::side::{GatewayFront, GatewayLaunch, LaunchContext, LaunchPlan, UpstreamKind};
use super::{Install, Way};

pub(super) const INSTALL: Install =
    Install { name: "mcp-proxy-python", version: "0.13.0", way: Way::Python("mcp-proxy"), program: "bin/mcp-proxy" };

pub(super) fn plan(place: &LaunchContext<'_>) -> Result<LaunchPlan> {
    let Some(program) = INSTALL.program()? else { return Ok(LaunchPlan::Absent("not installed")) };
    if place.searches {
        return Ok(LaunchPlan::Absent("has no search"));
    }
    let mut command = Command::new(program);
    command.args(["--log-level", "ERROR"]);
    let front = match (place.origin.kind, place.origin.url()) {
        (UpstreamKind::None, _) => return Ok(LaunchPlan::Absent("needs an upstream")),
        (_, Some(url)) => {
            command.args(["--transport", "streamablehttp", &url]);
            GatewayFront::Pipe
        }
        (_, None) => {
            command.args(["--host", "127.0.0.1", "--port", &place.listen.port().to_string(), "--"]);
            command.args(place.origin.program()?);
            place.front("/mcp")
        }
    };
    Ok(LaunchPlan::start(GatewayLaunch::new(command, front, place)))
}

//! `mcp-proxy` from the Python registry: exposes a stdio server over HTTP, or an HTTP server over stdio.

use anyhow::Result;
use tokio::process::Command;

use super::super::side::{Front, Kind, Launch, Place, Plan};
use super::{Install, Way};

pub(super) const INSTALL: Install = Install {
    name: "mcp-proxy-python",
    version: "0.13.0",
    way: Way::Python("mcp-proxy"),
    program: "bin/mcp-proxy",
};

pub(super) fn plan(place: &Place<'_>) -> Result<Plan> {
    let Some(program) = INSTALL.program()? else { return Ok(Plan::Absent("not installed")) };
    if place.searches {
        return Ok(Plan::Absent("has no search"));
    }
    let mut command = Command::new(program);
    command.args(["--log-level", "ERROR"]);
    let front = match (place.origin.kind, place.origin.url()) {
        (Kind::None, _) => return Ok(Plan::Absent("needs an upstream")),
        (_, Some(url)) => {
            command.args(["--transport", "streamablehttp", &url]);
            Front::Pipe
        }
        (_, None) => {
            command.args(["--host", "127.0.0.1", "--port", &place.listen.port().to_string(), "--"]);
            command.args(place.origin.program()?);
            place.front("/mcp")
        }
    };
    Ok(Plan::start(Launch::new(command, front, place)))
}

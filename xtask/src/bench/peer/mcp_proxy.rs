//! `mcp-proxy` from crates.io: tools prefixed with their server's name, over HTTP.

use anyhow::{Context, Result};
use serde_json::json;
use tokio::process::Command;

use super::super::side::{GatewayLaunch, LaunchContext, LaunchPlan, UpstreamKind};
use super::{Install, Way};

pub(super) const INSTALL: Install =
    Install { name: "mcp-proxy-rust", version: "0.6.0", way: Way::Cargo("mcp-proxy", &[]), program: "bin/mcp-proxy" };

const SEARCH: (&str, &str) = (r#"{"name":"proxy/search_tools","arguments":{"query":"#, "}}");

pub(super) fn plan(place: &LaunchContext<'_>) -> Result<LaunchPlan> {
    let Some(program) = INSTALL.program()? else { return Ok(LaunchPlan::Absent("not installed")) };
    let backend = match (place.origin.kind, place.origin.url()) {
        (UpstreamKind::None, _) => return Ok(LaunchPlan::Absent("needs an upstream")),
        (_, Some(url)) => format!("transport = \"http\"\nurl = \"{url}\""),
        (_, None) => {
            let program = place.origin.program()?;
            let (first, rest) = program.split_first().context("a program")?;
            // A list of strings is written the same in TOML and JSON.
            format!("transport = \"stdio\"\ncommand = {}\nargs = {}", json!(first), json!(rest))
        }
    };
    let config = format!(
        "[proxy]\nname = \"bench\"\ntool_discovery = {}\n\n[proxy.listen]\nhost = \"127.0.0.1\"\nport = {}\n\n\
         [[backends]]\nname = \"bench\"\n{backend}\n",
        place.searches,
        place.listen.port(),
    );
    let mut command = Command::new(program);
    command.arg("--config").arg(place.write("proxy.toml", &config)?);
    let launch = GatewayLaunch::new(command, place.front("/"), place);
    Ok(LaunchPlan::start(GatewayLaunch { search: place.searches.then_some(SEARCH), ..launch }))
}

//! `mcp-gateway` from crates.io: a few meta tools that list, search and call the servers' tools.

use anyhow::Result;
use serde_json::json;
use tokio::process::Command;

use super::super::side::{CallFormat, GatewayLaunch, LaunchContext, LaunchPlan, UpstreamKind};
use super::{Install, Way};

pub(super) const INSTALL: Install = Install {
    name: "mcp-gateway",
    version: "2.11.0",
    way: Way::Cargo("mcp-gateway", &["--no-default-features"]),
    program: "bin/mcp-gateway",
};

const CALL: CallFormat =
    CallFormat::Wrapped(r#"{"name":"gateway_invoke","arguments":{"server":"bench","tool":"echo","arguments":"#, "}}");
const SEARCH: (&str, &str) = (r#"{"name":"gateway_search_tools","arguments":{"query":"#, "}}");

pub(super) fn plan(place: &LaunchContext<'_>) -> Result<LaunchPlan> {
    let Some(program) = INSTALL.program()? else { return Ok(LaunchPlan::Absent("not installed")) };
    let backend = match (place.origin.kind, place.origin.url()) {
        (UpstreamKind::None, _) => return Ok(LaunchPlan::Absent("needs an upstream")),
        (_, Some(url)) => json!({ "http_url": url, "streamable_http": true }),
        (_, None) => json!({ "command": place.origin.program()?.join(" ") }),
    };
    // JSON is valid YAML.
    let config = json!({
        "server": { "host": "127.0.0.1", "port": place.listen.port() },
        "meta_mcp": { "enabled": true },
        "failsafe": { "rate_limit": { "enabled": false } },
        // Otherwise it refuses an upstream on this machine.
        "security": { "ssrf_protection": false },
        "backends": { "bench": backend },
    });
    let mut command = Command::new(program);
    command.arg("--config").arg(place.write("gateway.yaml", &config.to_string())?);
    let launch = GatewayLaunch::new(command, place.front("/mcp"), place);
    Ok(LaunchPlan::start(GatewayLaunch {
        call_format: CALL,
        tools: 1,
        search: place.searches.then_some(SEARCH),
        ..launch
    }))
}

//! `mcp-proxy` from crates.io: tools prefixed with their server's name, over HTTP.

use anyhow::{Context, Result};
use serde_json::json;
use tokio::process::Command;

use super::super::side::{Kind, Launch, Place, Plan};
use super::{Install, Way};

pub(super) const INSTALL: Install = Install {
    name: "mcp-proxy-rust",
    version: "0.6.0",
    way: Way::Cargo("mcp-proxy", &[]),
    program: "bin/mcp-proxy",
};

const SEARCH: (&str, &str) = (r#"{"name":"proxy/search_tools","arguments":{"query":"#, "}}");

pub(super) fn plan(place: &Place<'_>) -> Result<Plan> {
    let Some(program) = INSTALL.program()? else { return Ok(Plan::Absent("not installed")) };
    let backend = match (place.origin.kind, place.origin.url()) {
        (Kind::None, _) => return Ok(Plan::Absent("needs an upstream")),
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
    let launch = Launch::new(command, place.front("/"), place);
    Ok(Plan::start(Launch { search: place.searches.then_some(SEARCH), ..launch }))
}

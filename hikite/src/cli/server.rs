//! `hikite server`: lists the servers of the config file and the store, and approves programs of the store on this
//! machine.

use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, bail};
use clap::{Args, Subcommand};
use hikite_config::{Config, ServerConfig, TransportConfig};
use serde_json::{Value, json};

use super::server_session;
use super::store_session::table;
use super::{GlobalArgs, note, print};
use crate::runtime::{Runtime, StoredServer, TerminalServers};

#[derive(Debug, Subcommand)]
pub(crate) enum ServerCommand {
    /// List the servers, where they are defined, and the programs that wait for an approval
    List(ServerListArgs),
    /// Allow a program of the store to start on this machine
    Approve(ServerApproveArgs),
}

#[derive(Debug, Args)]
pub(crate) struct ServerListArgs {
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ServerApproveArgs {
    /// The code that `hikite server list` and the log show
    code: String,
}

/// A server as a line of the list.
struct ServerLine {
    name: String,
    scope: &'static str,
    kind: &'static str,
    place: String,
    state: String,
    code: Option<String>,
}

impl ServerCommand {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let config = common.load()?;
        let runtime = server_session::start(&config, None).await?;
        let outcome = match self {
            Self::List(list) => match switched_off(&runtime).await {
                Ok(off) => {
                    list.print(&lines(&config, &TerminalServers(&runtime).list(), &off));
                    Ok(())
                }
                Err(error) => Err(error),
            },
            Self::Approve(approve) => match TerminalServers(&runtime).approve(&approve.code).await {
                Ok(approved) => approve.tell(&approved),
                Err(error) => Err(error),
            },
        };
        runtime.stop().await;
        outcome.map(|()| ExitCode::SUCCESS)
    }
}

impl ServerListArgs {
    fn print(&self, lines: &[ServerLine]) {
        if self.json {
            print(&lines.iter().map(ServerLine::json).collect::<Value>().to_string());
            return;
        }
        if !lines.is_empty() {
            print(&table(&lines.iter().map(ServerLine::row).collect::<Vec<_>>()));
        }
        note(&format!("{} server{}", lines.len(), if lines.len() == 1 { "" } else { "s" }));
    }
}

impl ServerApproveArgs {
    fn tell(&self, approved: &[StoredServer]) -> Result<()> {
        if approved.is_empty() {
            bail!("No program waits for the code `{}`.\nhint: `hikite server list` shows the codes.", self.code);
        }
        for one in approved {
            let command = one.server.as_ref().map(|server| kind_and_place(server).1).unwrap_or_default();
            note(&format!("`{}` may start on this machine: {command}", one.name));
        }
        Ok(())
    }
}

/// Returns the modules that `hikite disable` or the pages switched off.
async fn switched_off(runtime: &Runtime) -> Result<Vec<Arc<str>>> {
    let switches = runtime.store.tools().switches().await?.into_iter();
    Ok(switches.filter(|(key, enabled)| key.tool.is_empty() && !enabled).map(|(key, _)| key.module).collect())
}

fn lines(config: &Config, stored: &[StoredServer], off: &[Arc<str>]) -> Vec<ServerLine> {
    let is_off = |name: &str| off.iter().any(|off| **off == *name);
    let of_file = config.server_names.iter().map(|name| {
        let server = config.servers.iter().find(|server| server.name == *name);
        let invalid = config.invalid.iter().any(|entry| entry.id.name == *name);
        let (kind, place) = server.map(kind_and_place).unwrap_or_default();
        let state = match server {
            Some(_) if !is_off(name) => "enabled",
            None if invalid => "invalid",
            _ => "disabled",
        };
        ServerLine { name: name.to_string(), scope: "file", kind, place, state: state.into(), code: None }
    });
    let of_store = stored.iter().map(|stored| {
        let (kind, place) = stored.server.as_ref().map(kind_and_place).unwrap_or_default();
        let is_hidden = config.server_names.iter().any(|name| **name == *stored.name);
        let state = match (&stored.server, &stored.code) {
            _ if is_hidden => "hidden by the file".to_owned(),
            (_, Some(code)) => format!("run `hikite server approve {code}`"),
            (None, None) => "cannot be read".to_owned(),
            (Some(_), None) => if is_off(&stored.name) { "disabled" } else { "enabled" }.to_owned(),
        };
        ServerLine { name: stored.name.clone(), scope: "store", kind, place, state, code: stored.code.clone() }
    });
    of_file.chain(of_store).collect()
}

/// Returns the kind of a server, and its address or command line with secrets masked.
fn kind_and_place(server: &ServerConfig) -> (&'static str, String) {
    match &server.transport {
        TransportConfig::Stdio { command, args, .. } => {
            let words = args.iter().map(ToString::to_string);
            ("stdio", std::iter::once(command.clone()).chain(words).collect::<Vec<_>>().join(" "))
        }
        TransportConfig::Http { url, .. } => ("http", url.to_string()),
        TransportConfig::Sse { url, .. } => ("sse", url.to_string()),
    }
}

impl ServerLine {
    fn row(&self) -> Vec<String> {
        vec![self.name.clone(), self.scope.into(), self.kind.into(), self.state.clone(), self.place.clone()]
    }

    fn json(&self) -> Value {
        json!({ "name": self.name, "scope": self.scope, "kind": self.kind, "place": self.place, "state": self.state, "code": self.code })
    }
}

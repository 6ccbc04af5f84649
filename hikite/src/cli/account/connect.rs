//! `hikite account connect`: requests a link from the running hikite, opens it in the browser, and waits for the
//! result. A one-time code proves to the page that whoever opens the link is at this terminal.

use std::net::SocketAddr;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use hikite_api::{Connection, ConnectionLink, NewConnection};
use hikite_config::Config;
use hikite_core::json::Raw;

use crate::cli::running_server::RunningServer;
use crate::cli::serve::listen_flag;
use crate::cli::{note, print};
use crate::progress;

const POLL_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub(crate) struct AccountConnectArgs {
    /// The provider: `notion`, `github`, … or a remote server
    provider: String,
    /// The name of the account in calls; an existing account is connected again
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Print the address instead of opening it
    #[arg(long)]
    no_browser: bool,
    /// The address of hikite [default: from the config]
    #[arg(long, value_name = "ADDR", env = "HIKITE_LISTEN", value_parser = listen_flag)]
    listen: Option<SocketAddr>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl AccountConnectArgs {
    /// Returns the provider or server to connect to.
    pub(crate) fn to(&self) -> &str {
        &self.provider
    }

    /// Returns `true` if the address is opened in a browser.
    pub(crate) fn opens_browser(&self) -> bool {
        !self.no_browser
    }

    pub(crate) async fn run(self, config: &Config) -> Result<ExitCode> {
        let server = RunningServer::of(config, self.listen)?;
        let connection =
            NewConnection { provider: self.provider.clone(), name: self.name.clone(), terminal: Some(true) };
        let ConnectionLink { id, url, code, .. } =
            server.ask("POST", "/v1/accounts/connect", Some(&Raw::of(&connection))).await?;
        if self.no_browser || !open(&url) {
            note("Open this address in a browser:");
            note(&url);
        } else {
            note("Continue in the browser. If it did not open, use this address:");
            note(&url);
        }
        if let Some(code) = code {
            note(&format!("Enter this code on the page, unless you are logged in there: {code}"));
        }
        let done = progress::with_spinner("waiting for the browser", wait(&server, &id)).await?;
        if done.state != "connected" {
            bail!("Not connected: {}", done.error.unwrap_or_else(|| "the link has expired".into()));
        }
        if self.json {
            print(&Raw::of(&done).as_str());
        } else {
            let name = done.name;
            let is_proven = done.account_state.as_deref() != Some("unverified");
            let problem = done.problem.map(|problem| format!(": {problem}")).unwrap_or_default();
            note(&if is_proven {
                format!("The account `{name}` with `{}` is connected.", self.provider)
            } else {
                format!("The account `{name}` with `{}` is saved, but not verified yet{problem}.", self.provider)
            });
        }
        Ok(ExitCode::SUCCESS)
    }
}

/// Polls until the link was used.
async fn wait(server: &RunningServer, id: &str) -> Result<Connection> {
    loop {
        let at: Connection = server.ask("GET", &format!("/v1/accounts/connect/{id}"), None).await?;
        match &*at.state {
            "connected" | "failed" => return Ok(at),
            _ => tokio::time::sleep(POLL_INTERVAL).await,
        }
    }
}

/// Opens the URL, and returns `true` if a browser could be started.
pub(crate) fn open(url: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = std::process::Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
}

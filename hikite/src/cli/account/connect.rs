//! `hikite account connect`: requests a link from the running hikite, opens it in the browser, and waits for the
//! result. A one-time code proves to the page that whoever opens the link is at this terminal.

use std::net::SocketAddr;
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Result, bail};
use clap::Args;
use hikite_config::Config;
use hikite_core::json::{Object, Raw};

use crate::cli::running_server::RunningServer;
use crate::cli::serve::listen_flag;
use crate::cli::{note, print};
use crate::progress;

const POLL_INTERVAL: Duration = Duration::from_millis(500);

#[derive(Debug, Args)]
pub(crate) struct AccountConnectArgs {
    /// The provider: `notion`, `github`, … or a server of `mcpServers`
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

    pub(crate) async fn run(self, config: &Config) -> Result<ExitCode> {
        let server = RunningServer::of(config, self.listen)?;
        let mut form = Object::default().with("provider", self.provider.as_str()).with("terminal", Raw::of(&true));
        if let Some(name) = &self.name {
            form.set("name", name.as_str());
        }
        let link = server.ask("POST", "/v1/accounts/connect", Some(&form)).await?;
        let (id, url) = (link.text("id").unwrap_or_default(), link.text("url").unwrap_or_default());
        if self.no_browser || !open(&url) {
            note("Open this address in a browser:");
            note(&url);
        } else {
            note("Continue in the browser. If it did not open, use this address:");
            note(&url);
        }
        if let Some(code) = link.text("code") {
            note(&format!("Enter this code on the page, unless you are logged in there: {code}"));
        }
        let done = progress::with_spinner("waiting for the browser", wait(&server, &id)).await?;
        if done.text("state").as_deref() != Some("connected") {
            bail!("Not connected: {}", done.text("error").unwrap_or_else(|| "the link has expired".into()));
        }
        if self.json {
            print(&done.raw().as_str());
        } else {
            let name = done.text("name").unwrap_or_default();
            let is_proven = done.text("accountState").as_deref() != Some("unverified");
            let problem = done.text("problem").map(|problem| format!(": {problem}")).unwrap_or_default();
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
async fn wait(server: &RunningServer, id: &str) -> Result<Object> {
    loop {
        let at = server.ask("GET", &format!("/v1/accounts/connect/{id}"), None).await?;
        match at.text("state").as_deref() {
            Some("connected" | "failed") => return Ok(at),
            _ => tokio::time::sleep(POLL_INTERVAL).await,
        }
    }
}

/// Opens the URL, and returns `true` if a browser could be started.
fn open(url: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = std::process::Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
}

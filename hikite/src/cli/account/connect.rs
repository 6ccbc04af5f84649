//! `hikite account connect`: requests a link from the running hikite, opens it in the browser, and waits for the
//! result. A one-time code proves to the page that whoever opens the link is at this terminal.

use std::net::{Ipv4Addr, SocketAddr};
use std::process::{ExitCode, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, anyhow, bail};
use clap::Args;
use hikite_api::{Connection, ConnectionLink, ErrorAnswer, NewConnection};
use hikite_config::{AuthSection, Config};
use hikite_core::json::Raw;
use hikite_core::secret::Secret;
use hikite_egress::{EgressClient, RequestBody, read};
use http::Request;
use http::header::{AUTHORIZATION, CONTENT_TYPE};
use serde::de::DeserializeOwned;

use crate::cli::serve::listen_flag;
use crate::cli::{note, print};
use crate::{progress, token};

const TIMEOUT: Duration = Duration::from_secs(10);
const POLL_INTERVAL: Duration = Duration::from_millis(500);
const ANSWER_BYTES: usize = 1 << 20;

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
        let connection =
            NewConnection { provider: self.provider.clone(), name: self.name.clone(), terminal: Some(true) };
        let ConnectionLink { id, url, code, .. } =
            server.ask("POST", "/v1/accounts/connect", Some(&connection)).await?;
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
        let done = progress::with_spinner("waiting for the browser", server.wait(&id)).await?;
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

/// Client of the running hikite's REST API.
struct RunningServer {
    client: EgressClient,
    address: SocketAddr,
    token: Option<Secret>,
}

impl RunningServer {
    fn of(config: &Config, listen: Option<SocketAddr>) -> Result<Self> {
        let mut address = listen.unwrap_or(config.server.listen);
        if address.ip().is_unspecified() {
            address.set_ip(Ipv4Addr::LOCALHOST.into());
        }
        let token = match &config.auth {
            AuthSection::Token(Some(token)) => Some(token.clone()),
            AuthSection::Token(None) => Some(token::local_token(&config.data)?),
            AuthSection::None => None,
        };
        Ok(Self { client: EgressClient::new(), address, token })
    }

    async fn wait(&self, id: &str) -> Result<Connection> {
        loop {
            let at: Connection = self.ask("GET", &format!("/v1/accounts/connect/{id}"), None).await?;
            match &*at.state {
                "connected" | "failed" => return Ok(at),
                _ => tokio::time::sleep(POLL_INTERVAL).await,
            }
        }
    }

    async fn ask<T: DeserializeOwned>(&self, method: &str, path: &str, form: Option<&NewConnection>) -> Result<T> {
        let mut request = Request::builder().method(method).uri(format!("http://{}{path}", self.address));
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {}", token.expose()));
        }
        let body = form.map(|form| Raw::of(form).bytes().clone()).unwrap_or_default();
        let request = request.header(CONTENT_TYPE, "application/json").body(RequestBody::new(body))?;
        let answer = tokio::time::timeout(TIMEOUT, self.client.send(request)).await;
        let answer = answer.context("there was no response in time")?.with_context(|| {
            format!(
                "No hikite responds at {}.\nhint: Start one with `hikite serve`, or set its address with \
                 `--listen`.",
                self.address
            )
        })?;
        let is_well = answer.status().is_success();
        let body = read(answer.into_body(), ANSWER_BYTES).await?;
        if is_well {
            return serde_json::from_slice(&body).context("the response of hikite cannot be read");
        }
        let refused: Option<ErrorAnswer> = serde_json::from_slice(&body).ok();
        let (error, hint) = refused.map(|refused| (refused.error, refused.hint)).unzip();
        let hint = hint.flatten().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
        Err(anyhow!("{}{hint}", error.unwrap_or_else(|| "hikite rejected the request".into())))
    }
}

/// Opens the URL, and returns `true` if a browser could be started.
fn open(url: &str) -> bool {
    let program = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let mut command = std::process::Command::new(program);
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().is_ok()
}

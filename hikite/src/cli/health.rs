//! `hikite health`: checks whether a running hikite is up, for containers without a shell.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use clap::Args;
use http::Request;

use super::serve::listen_flag;
use super::{GlobalArgs, print};
use crate::local_client;

const TIMEOUT: Duration = Duration::from_secs(3);

#[derive(Debug, Args)]
pub(crate) struct HealthArgs {
    /// The address it listens on [default: from the config]
    #[arg(long, value_name = "ADDR", env = "HIKITE_LISTEN", value_parser = listen_flag)]
    listen: Option<SocketAddr>,
}

impl HealthArgs {
    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let mut config = common.load()?;
        if let Some(listen) = self.listen {
            config.server.listen = listen;
        }
        let address = config.server.local_url();
        let request = Request::get(format!("{address}/health")).body(http_body_util::Full::default())?;
        let client = local_client::client(&config)?;
        let answer = tokio::time::timeout(TIMEOUT, client.send(request));
        let answer = answer
            .await
            .context("there was no response in time")?
            .with_context(|| format!("{address} does not respond"))?;
        if !answer.status().is_success() {
            bail!("{address} returned {}", answer.status());
        }
        print("ok");
        Ok(ExitCode::SUCCESS)
    }
}

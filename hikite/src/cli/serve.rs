//! `hikite serve`: MCP over HTTP until a signal ends it.

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use hikite_server::Settings;
use tokio::net::TcpListener;

use super::{Common, WrongSetup, program};
use crate::config::{Auth, Config};
use crate::report;
use crate::running::{Overrides, Running, settings};

#[derive(Clone, Debug, Args)]
pub(crate) struct Serve {
    /// The address to listen on [default: 127.0.0.1:7300]
    #[arg(long, value_name = "ADDR", env = "HIKITE_LISTEN")]
    listen: Option<SocketAddr>,
}

impl Serve {
    pub(crate) async fn run(self, common: &Common) -> Result<ExitCode> {
        let config = common.load()?;
        let data = common.data.is_some().then(|| config.data.clone());
        let overrides = Overrides { listen: self.listen, data, stdio: false };
        let config = overrides.apply(config);
        check_exposure(&config)?;
        let settings = settings(&config)?;
        // The port is ours before anything is started behind it.
        let listen = config.server.listen;
        let listener = TcpListener::bind(listen).await.with_context(|| {
            format!(
                "cannot listen on {listen}\nhint: another program may hold the port; name one with `--listen`"
            )
        })?;
        let address = listener.local_addr()?;
        let token = shown_token(&settings);
        let running = Running::start(config, settings, overrides, program()?)?;
        announce(address, token.as_deref());
        hikite_server::serve(listener, Arc::clone(&running.app)).await;
        running.stop().await;
        Ok(ExitCode::SUCCESS)
    }
}

/// Nobody may walk in from the network.
fn check_exposure(config: &Config) -> Result<()> {
    let listen = config.server.listen;
    if listen.ip().is_loopback() {
        return Ok(());
    }
    if matches!(config.auth, Auth::None) {
        return Err(WrongSetup(format!(
            "`auth.mode` is \"none\" and {listen} can be reached by others\n\
             hint: remove `auth.mode`, or listen on 127.0.0.1"
        ))
        .into());
    }
    tracing::warn!("{listen} can be reached by others and speaks plain HTTP: put a TLS proxy in front of it");
    Ok(())
}

/// The token for the snippets.
fn shown_token(settings: &Settings) -> Option<String> {
    match &settings.auth {
        hikite_server::Auth::Token(token) => Some(token.expose().to_owned()),
        hikite_server::Auth::None => None,
    }
}

#[expect(clippy::print_stderr, reason = "what a person who starts the program needs to see")]
fn announce(address: SocketAddr, token: Option<&str>) {
    tracing::info!("listening on http://{address}");
    eprintln!("{}", report::snippets(address, token));
}

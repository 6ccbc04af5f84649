//! `hikite serve`: MCP over HTTP until a signal ends it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use clap::Args;
use hikite_gateway::Surfaces;
use hikite_server::{App, Origins, Settings};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::{Common, WrongSetup, program};
use crate::config::{Auth, Config};
use crate::house::House;
use crate::{reload, report, token};

#[derive(Clone, Debug, Args)]
pub(crate) struct Serve {
    /// The address to listen on [default: 127.0.0.1:7300]
    #[arg(long, value_name = "ADDR", env = "HIKITE_LISTEN")]
    listen: Option<SocketAddr>,
}

/// What flags and environment say over the file, also after a reload.
#[derive(Clone, Debug)]
pub(crate) struct Overrides {
    listen: Option<SocketAddr>,
    data: Option<PathBuf>,
    /// Nobody can connect, so nobody needs a token.
    stdio: bool,
}

impl Overrides {
    pub(crate) fn stdio(data: PathBuf) -> Self {
        Self { listen: None, data: Some(data), stdio: true }
    }

    pub(crate) fn apply(&self, mut config: Config) -> Config {
        if let Some(listen) = self.listen {
            config.server.listen = listen;
        }
        if let Some(data) = &self.data {
            config.data.clone_from(data);
        }
        if self.stdio {
            config.auth = Auth::None;
        }
        config
    }
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
        let house = House::start(&config, program()?)?;
        let stopping = CancellationToken::new();
        let shown = shown_token(&settings);
        let app = App::new(Arc::clone(&house.gateway), Arc::clone(&house.limits), settings, stopping.clone());
        let tasks = TaskTracker::new();
        tasks.spawn(stop_on_signal(stopping.clone())?);
        report::when_known(&house, &stopping);
        tasks.spawn(reload::follow(
            config,
            overrides,
            Arc::clone(&house),
            Arc::clone(&app),
            stopping.clone(),
        ));
        announce(address, shown.as_deref());
        hikite_server::serve(listener, app).await;
        house.stop().await;
        tasks.close();
        tasks.wait().await;
        tracing::info!("stopped");
        Ok(ExitCode::SUCCESS)
    }
}

/// What the server takes from the config.
pub(crate) fn settings(config: &Config) -> Result<Settings> {
    let auth = match &config.auth {
        Auth::None => hikite_server::Auth::None,
        Auth::Token(Some(token)) => hikite_server::Auth::Token(token.clone()),
        Auth::Token(None) => hikite_server::Auth::Token(token::local_token(&config.data)?),
    };
    let mut hosts = config.server.allowed_hosts.clone();
    hosts.retain(|host| !host.is_empty());
    Ok(Settings {
        auth,
        origins: Origins {
            hosts,
            origins: config.server.allowed_origins.clone(),
            reachable: !config.server.listen.ip().is_loopback(),
        },
        surfaces: surfaces(config),
    })
}

pub(crate) fn surfaces(config: &Config) -> Surfaces {
    Surfaces::of(config.server.surfaces.iter().copied())
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

/// The local token, to be shown in the snippets; one from the config is its owner's to know.
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

/// Fires `stopping` on SIGINT or SIGTERM; a second one ends the program at once.
pub(crate) fn stop_on_signal(stopping: CancellationToken) -> Result<impl Future<Output = ()>> {
    let mut term = signal(SignalKind::terminate()).context("signals cannot be heard")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("signals cannot be heard")?;
    Ok(async move {
        let heard = async {
            tokio::select! {
                _ = term.recv() => {}
                _ = interrupt.recv() => {}
            }
        };
        if stopping.run_until_cancelled(heard).await.is_some() {
            tracing::info!("stopping; running requests may finish");
            stopping.cancel();
        }
    })
}

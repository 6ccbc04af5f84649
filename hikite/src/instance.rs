//! A running instance: the gateway, the app in front of it, config reloads and the signals that stop it. `serve` and
//! `stdio` differ only in the transport.

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result};
use hikite_config::{AuthSection, Config, Cors, OauthSection, TlsSection};
use hikite_core::pattern::Pattern;
use hikite_egress::EgressClient;
use hikite_gateway::Surfaces;
use hikite_identity::TokenTerms;
use hikite_server::{App, OauthSettings, Origins, ServerSettings};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::cli::InvalidSetup;
use crate::runtime::Runtime;
use crate::telemetry::TelemetryExporter;
use crate::{reload, report, token};

#[derive(Debug)]
pub(crate) struct Instance {
    pub(crate) app: Arc<App>,
    pub(crate) runtime: Arc<Runtime>,
    pub(crate) stopping: CancellationToken,
    stopped: CancellationToken,
    telemetry: TelemetryExporter,
    tasks: TaskTracker,
}

/// Settings from flags and environment variables that override the config file, also after a reload.
#[derive(Clone, Debug, Default)]
pub(crate) struct ConfigOverrides {
    pub(crate) listen: Option<SocketAddr>,
    pub(crate) public_url: Option<String>,
    pub(crate) node_url: Option<String>,
    pub(crate) data: Option<PathBuf>,
    /// Over stdio nobody else can connect, so no token is required.
    pub(crate) stdio: bool,
}

impl ConfigOverrides {
    pub(crate) fn apply(&self, mut config: Config) -> Config {
        if let Some(listen) = self.listen {
            config.server.listen = listen;
        }
        if self.public_url.is_some() {
            config.server.public_url.clone_from(&self.public_url);
        }
        if self.node_url.is_some() {
            config.server.node_url.clone_from(&self.node_url);
        }
        if let Some(data) = &self.data {
            config.data.clone_from(data);
        }
        if self.stdio {
            config.auth = AuthSection::None;
            config.server.tls = None;
            config.server.node_url = None;
            config.oauth = None;
        }
        config
    }
}

impl Instance {
    /// Starts the instance. `config` already contains the overrides; `settings` were made from it.
    pub(crate) async fn start(
        config: Config,
        settings: ServerSettings,
        overrides: ConfigOverrides,
        program: PathBuf,
    ) -> Result<Self> {
        // From here on SIGHUP no longer terminates the process.
        let hangup = signal(SignalKind::hangup()).context("cannot listen for signals")?;
        let seen = reload::ConfigFileState::of(&config);
        let runtime = Runtime::start(&config, program).await?;
        let stopping = CancellationToken::new();
        let app = App::new(Arc::clone(&runtime.gateway), Arc::clone(&runtime.limits), settings, stopping.clone());
        if let Some(url) = &config.server.node_url {
            let joined = runtime.join(url).await;
            if joined.is_err() {
                // A retry must not run beside what this attempt started.
                runtime.stop().await;
            }
            let (nodes, key) = joined?;
            tracing::info!("the other nodes can reach this node at {url}");
            app.join(nodes, key, runtime.client().clone());
        }
        let telemetry = TelemetryExporter::start(config.telemetry.otlp.as_ref(), &app, runtime.client())?;
        let tasks = TaskTracker::new();
        let stopped = CancellationToken::new();
        let reload = Arc::<Notify>::default();
        let signals = Signals::listen(hangup, Arc::clone(&reload))?;
        tasks.spawn(stop_on_signal(signals, Arc::clone(&app), stopping.clone(), stopped.clone()));
        tasks.spawn(reload::follow(
            (config, seen, reload),
            overrides,
            Arc::clone(&runtime),
            Arc::clone(&app),
            stopping.clone(),
        ));
        report::log_when_listed(&runtime, &stopping);
        Ok(Self { app, runtime, stopping, stopped, telemetry, tasks })
    }

    /// Returns the link that makes its visitor the owner, while there is no owner.
    pub(crate) async fn setup_link(&self, base: &str) -> Result<Option<String>> {
        let Some(identity) = self.runtime.gateway.people().identity() else { return Ok(None) };
        let token = identity.users().make_setup_token(false).await?;
        Ok(token.map(|token| format!("{base}/setup?token={}", token.expose())))
    }

    /// Stops everything after the listener has closed. Fails if audit records are missing.
    pub(crate) async fn stop(self) -> ExitCode {
        self.stopping.cancel();
        let unwritten = self.runtime.stop().await;
        self.telemetry.stop().await;
        self.stopped.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        if unwritten.records > 0 {
            // The audit writer has logged where they are.
            tracing::error!(records = unwritten.records, "stopped with audit records missing");
            return ExitCode::FAILURE;
        }
        tracing::info!("stopped");
        ExitCode::SUCCESS
    }
}

/// Converts the config into the settings of the server.
pub(crate) fn settings(config: &Config) -> Result<ServerSettings> {
    let auth = match &config.auth {
        AuthSection::None => hikite_server::Auth::None,
        AuthSection::Token(Some(token)) => hikite_server::Auth::Token(token.clone()),
        AuthSection::Token(None) => hikite_server::Auth::Token(token::local_token(&config.data)?),
    };
    let pages: &[String] = match &config.server.cors {
        Cors::Only(pages) => pages,
        Cors::Off | Cors::Any => &[],
    };
    let own = [&config.server.public_url, &config.server.node_url];
    let own_hosts = own.into_iter().filter_map(|url| host_of(url.as_deref()?));
    let tls = config.server.tls.as_ref().map(TlsSection::read).transpose().map_err(InvalidSetup)?;
    Ok(ServerSettings {
        auth,
        proxies: config.server.proxies(),
        tls,
        oauth: config.oauth.as_ref().map(|section| Arc::new(oauth(config, section))),
        origins: Origins {
            hosts: config.server.allowed_hosts.iter().cloned().chain(own_hosts).collect(),
            origins: config.server.allowed_origins.iter().chain(pages).cloned().collect(),
            any_origin: config.server.cors == Cors::Any,
            reachable: !config.server.listen.ip().is_loopback() && !config.server.is_loopback_only(),
        },
        surfaces: Surfaces::of(config.server.surfaces.iter().copied()),
        short_names: config.server.short_names.iter().filter_map(|text| Pattern::parse(text).ok()).collect(),
        rate: config.server.rate,
        metrics_token: config.telemetry.metrics_token.clone(),
        document: (!config.server.is_local()).then(|| hikite_core::login::document(&config.server.url())),
    })
}

/// Builds the OAuth settings. The issuer is the public URL, or the local address if there is none.
fn oauth(config: &Config, section: &OauthSection) -> OauthSettings {
    let issuer = config.server.url();
    let client = EgressClient::guarded(config.egress.rules());
    client.set_min_tls(config.egress.min_tls);
    OauthSettings {
        terms: TokenTerms {
            audience: format!("{issuer}/mcp").into(),
            issuer: issuer.into(),
            access: section.access_token_ttl,
            refresh: section.refresh_token_ttl,
        },
        is_local: config.server.is_local(),
        cimd: section.cimd,
        registration: section.registration,
        client,
    }
}

fn host_of(url: &str) -> Option<String> {
    let host = url.split_once("://")?.1.split('/').next()?;
    Some(host.to_ascii_lowercase())
}

/// Signals that stop hikite or reload its config.
struct Signals {
    term: Signal,
    interrupt: Signal,
    hangup: Signal,
    /// Notified when the config should be reloaded.
    reload: Arc<Notify>,
    had_terminal: bool,
}

impl Signals {
    fn listen(hangup: Signal, reload: Arc<Notify>) -> Result<Self> {
        let listen = |kind| signal(kind).context("cannot listen for signals");
        Ok(Self {
            term: listen(SignalKind::terminate())?,
            interrupt: listen(SignalKind::interrupt())?,
            hangup,
            reload,
            had_terminal: has_terminal(),
        })
    }

    /// Waits for a signal to stop. SIGHUP stops only if the controlling terminal is gone; otherwise it triggers a
    /// reload.
    async fn stop(&mut self) {
        loop {
            tokio::select! {
                _ = self.term.recv() => return,
                _ = self.interrupt.recv() => return,
                _ = self.hangup.recv() => {
                    if self.had_terminal && !has_terminal() {
                        return;
                    }
                    self.reload.notify_one();
                }
            }
        }
    }

    /// Waits for a second SIGINT or SIGTERM. SIGHUP does not count: a closing terminal sends it more than once.
    async fn second_signal(&mut self) {
        tokio::select! {
            _ = self.term.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn has_terminal() -> bool {
    std::io::stderr().is_terminal() || std::io::stdin().is_terminal()
}

/// Announces the shutdown to load balancers and other nodes on SIGINT or SIGTERM, then cancels `stopping`. A second
/// signal exits at once; the guards then stop the servers.
async fn stop_on_signal(mut signals: Signals, app: Arc<App>, stopping: CancellationToken, stopped: CancellationToken) {
    if stopping.run_until_cancelled(signals.stop()).await.is_some() {
        let is_graceful = tokio::select! {
            () = app.leave() => true,
            () = signals.second_signal() => false,
        };
        stopping.cancel();
        if !is_graceful {
            tracing::warn!("stopped by a second signal");
            std::process::exit(1);
        }
        tracing::info!("shutting down; running requests may finish");
    }
    if stopped.run_until_cancelled(signals.second_signal()).await.is_some() {
        tracing::warn!("stopped by a second signal");
        std::process::exit(1);
    }
}

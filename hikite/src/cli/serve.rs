//! `hikite serve`: serves MCP over HTTP until a signal stops it.

mod next_steps;
mod start;

use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use clap::Args;
use hikite_config::{Config, ServerSection, listen_hint, node_fault, parse_listen, url_fault};
use tokio::net::TcpListener;

use super::GlobalArgs;
use super::doctor::port;
use crate::exposure;
use crate::instance::ConfigOverrides;

const MOST_THREADS: usize = 1024;

#[derive(Clone, Debug, Args)]
pub(crate) struct Serve {
    /// The address to listen on [default: 127.0.0.1:7300]
    #[arg(long, value_name = "ADDR", env = "HIKITE_LISTEN", value_parser = listen_flag)]
    listen: Option<SocketAddr>,
    /// The https address of the proxy in front; required to listen beyond loopback without TLS
    #[arg(long, value_name = "URL", env = "HIKITE_PUBLIC_URL", value_parser = public_url_flag)]
    public_url: Option<String>,
    /// The address of this node for the other nodes on the same store
    #[arg(long, value_name = "URL", env = "HIKITE_NODE_URL", value_parser = node_url_flag)]
    node_url: Option<String>,
    /// The number of worker threads [default: half the number of processors]
    #[arg(long, value_name = "N", env = "HIKITE_THREADS", value_parser = threads_flag)]
    threads: Option<usize>,
}

impl Serve {
    /// Merges flags given before and after the word `serve`; those after it win.
    pub(crate) fn or(self, before: Self) -> Self {
        Self {
            listen: self.listen.or(before.listen),
            public_url: self.public_url.or(before.public_url),
            node_url: self.node_url.or(before.node_url),
            threads: self.threads.or(before.threads),
        }
    }

    pub(crate) fn threads(&self) -> usize {
        self.threads.unwrap_or_else(default_threads)
    }

    pub(crate) async fn run(self, common: &GlobalArgs) -> Result<ExitCode> {
        let config = common.load()?;
        let data = common.data.is_some().then(|| config.data.clone());
        let (listen, public_url, node_url) = (self.listen, self.public_url, self.node_url);
        let overrides = ConfigOverrides { listen, public_url, node_url, data, stdio: false };
        let config = overrides.apply(config);
        exposure::check(&config)?;
        // The port is bound before anything is started behind it.
        let listen = config.server.listen;
        let listener = TcpListener::bind(listen).await.map_err(|error| cannot_listen(listen, &error))?;
        let address = listener.local_addr()?;
        let config = Config { server: ServerSection { listen: address, ..config.server.clone() }, ..config };
        let scheme = config.server.scheme();
        let base = config.oauth.is_some().then(|| config.server.url());
        let Some(running) = start::start(&config, &overrides, &listener).await? else {
            return Ok(ExitCode::SUCCESS);
        };
        tracing::info!("listening on {scheme}://{address}");
        let setup_link = match &base {
            Some(base) => running.setup_link(base).await?,
            None => None,
        };
        let serve = hikite_server::serve(listener, Arc::clone(&running.app));
        let guide = next_steps::show(common, &config, &running, setup_link.as_deref());
        tokio::join!(serve, running.stopping.run_until_cancelled(guide));
        Ok(running.stop().await)
    }
}

/// Explains why the port cannot be had, and names its owner where the system tells.
fn cannot_listen(listen: SocketAddr, error: &std::io::Error) -> anyhow::Error {
    let owner = match port::listening_process(listen.port()) {
        Some(owner) => format!("`{}` (process {}) uses the port.", owner.name, owner.pid),
        None => "Another program may use the port.".into(),
    };
    anyhow!("cannot listen on {listen}: {error}\nhint: {owner} Choose another address with `--listen`.")
}

pub(crate) fn listen_flag(text: &str) -> Result<SocketAddr, String> {
    parse_listen(text).ok_or_else(listen_hint)
}

/// Returns the default number of threads, half the processors. The gateway shares its machine with servers and
/// clients, and a call that moves between as many threads as processors costs a third more.
pub(crate) fn default_threads() -> usize {
    std::thread::available_parallelism().map_or(1, |processors| (processors.get() / 2).max(1))
}

fn threads_flag(text: &str) -> Result<usize, String> {
    let count = text.parse().ok().filter(|count| (1..=MOST_THREADS).contains(count));
    count.ok_or_else(|| format!("it must be a number from 1 to {MOST_THREADS}"))
}

fn node_url_flag(text: &str) -> Result<String, String> {
    match node_fault(text) {
        Some((what, hint)) => Err(format!("it {what}. {hint}")),
        None => Ok(text.trim_end_matches('/').into()),
    }
}

fn public_url_flag(text: &str) -> Result<String, String> {
    match url_fault(text) {
        Some((what, hint)) => Err(format!("it {what}. {hint}")),
        None => Ok(text.into()),
    }
}

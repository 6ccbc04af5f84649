//! `hikite serve`: serves MCP over HTTP until a signal stops it.

mod greeting;
mod start;

use std::io::IsTerminal;
use std::net::SocketAddr;
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Result, anyhow};
use clap::Args;
use hikite_config::{AuthSection, Config, ServerSection, listen_hint, node_fault, parse_listen, url_fault};
use tokio::net::TcpListener;

use super::{GlobalArgs, note, program};
use crate::instance::{ConfigOverrides, settings};
use crate::{exposure, log, report};

const MOST_THREADS: usize = 1024;
/// Placeholder for the local token where it would be logged.
const LOCAL_TOKEN: &str = "<local token>";

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
        let listener = TcpListener::bind(listen).await.map_err(|error| {
            anyhow!(
                "cannot listen on {listen}: {error}
hint: Another program may use the port. Choose another address with `--listen`."
            )
        })?;
        let address = listener.local_addr()?;
        let config = Config { server: ServerSection { listen: address, ..config.server.clone() }, ..config };
        let settings = settings(&config)?;
        let snippets = report::Snippets {
            url: config.server.url(),
            token: shown_token(&config.auth, &settings.auth, std::io::stderr().is_terminal()),
            program: program()?,
            config: config.file.clone(),
        };
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
        if log::is_calm() {
            let serve = hikite_server::serve(listener, Arc::clone(&running.app));
            let greet = greeting::show(common, &config, &running, setup_link.as_deref());
            tokio::join!(serve, running.stopping.run_until_cancelled(greet));
            return Ok(running.stop().await);
        }
        note(&snippets.text());
        if snippets.token.as_deref() == Some(LOCAL_TOKEN) {
            note("The local token is not written to a log: see `hikite token show`.\n");
        }
        if let Some(link) = setup_link {
            note(&format!("Nobody can log in yet. Open this address within a day to become the owner:\n\n  {link}\n"));
        }
        hikite_server::serve(listener, Arc::clone(&running.app)).await;
        Ok(running.stop().await)
    }
}

/// Returns the token for the snippets. A token of the config is never shown; the local one only on a terminal, not in
/// the log of a service manager.
fn shown_token(auth: &AuthSection, used: &hikite_server::Auth, is_terminal: bool) -> Option<String> {
    match (auth, used) {
        (AuthSection::Token(None), hikite_server::Auth::Token(token)) if is_terminal => Some(token.expose().to_owned()),
        (AuthSection::Token(None), hikite_server::Auth::Token(_)) => Some(LOCAL_TOKEN.into()),
        (AuthSection::Token(Some(_)), _) => Some("<your token>".into()),
        _ => None,
    }
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

#[cfg(test)]
mod tests {
    use hikite_core::secret::Secret;

    use super::*;

    #[test]
    fn the_local_token_is_shown_on_a_terminal_alone() {
        let shown = |auth: &AuthSection, is_terminal| {
            let local = hikite_server::Auth::Token(Secret::hidden("hk_local_0"));
            shown_token(auth, &local, is_terminal)
        };
        assert_eq!(shown(&AuthSection::Token(None), true).as_deref(), Some("hk_local_0"));
        assert_eq!(shown(&AuthSection::Token(None), false).as_deref(), Some(LOCAL_TOKEN));
        for is_terminal in [true, false] {
            let own = AuthSection::Token(Some(Secret::hidden("hk_local_0")));
            assert_eq!(shown(&own, is_terminal).as_deref(), Some("<your token>"));
            assert_eq!(shown(&AuthSection::None, is_terminal), None);
        }
    }
}

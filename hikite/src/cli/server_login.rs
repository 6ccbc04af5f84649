//! Login to an upstream server from a terminal: prints the URL, and receives the browser's redirect on a local port.
//! A hikite that runs on the same store picks up the login.

use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, Result, anyhow};
use hikite_config::Config;
use hikite_core::error::Error;
use hikite_core::login::CALLBACK;
use hikite_core::source::{Source, SourceState};
use hikite_upstream::Upstream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::account::open;
use super::server_session::{self, ServerOrigin};
use super::{note, print};

/// Time limit for a person to log in.
const LOGIN_TIMEOUT: Duration = Duration::from_secs(600);
/// Time limit for one browser request.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
const REQUEST_BYTES: usize = 16 * 1024;

/// Returns `true` if the name is a server of the config file that uses OAuth, or a server of the store.
pub(crate) async fn is_server(config: &Config, name: &str) -> Result<bool> {
    Ok(match ServerOrigin::of(config, name).await? {
        Some(ServerOrigin::File) => {
            config.servers.iter().any(|server| &*server.name == name && server.access.is_some())
        }
        Some(ServerOrigin::Store) => true,
        None => false,
    })
}

/// Logs in to a server and waits until the login is complete.
pub(crate) async fn connect(config: &Config, name: &str, opens_browser: bool) -> Result<ExitCode> {
    let runtime = server_session::start(config, Some(name)).await?;
    let outcome = match runtime.upstream(name) {
        Some(upstream) if upstream.uses_oauth() => log_in(&upstream, name, opens_browser).await,
        Some(_) => Err(anyhow!("`{name}` has no login: its credentials are in its headers, or it is a program.")),
        None => Err(anyhow!("The server `{name}` is not available: it is disabled or cannot be read.")),
    };
    runtime.stop().await;
    outcome.map(|()| ExitCode::SUCCESS)
}

async fn log_in(upstream: &Upstream, name: &str, opens_browser: bool) -> Result<()> {
    upstream.first_listing().await;
    if upstream.listing().is_some() && !matches!(upstream.state(), SourceState::NeedsLogin { .. }) {
        // The list may come from the cache, so the server is queried.
        if upstream.refresh_lists().await.is_ok() {
            note(&format!("`{name}` already accepts this hikite."));
            return Ok(());
        }
    }
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.context("cannot open a local port")?;
    let redirect = format!("http://{}{CALLBACK}", listener.local_addr()?);
    let begun = upstream.begin_login(&redirect).await?;
    note(&format!("Open this address in a browser to log in to `{name}`:"));
    print(&begun.url);
    if opens_browser && std::io::stdout().is_terminal() {
        open(&begun.url);
    }
    let waiting = tokio::time::timeout(LOGIN_TIMEOUT, wait(&listener, upstream));
    waiting.await.context("the login was not completed in time")??;
    match upstream.refresh_lists().await {
        Ok(()) => {
            let tools = upstream.listing().map_or(0, |listing| listing.tools.len());
            note(&format!("Logged in to `{name}`: {tools} tools."));
        }
        Err(error) => {
            note(&format!("Logged in to `{name}`, but its tools cannot be read: {}", error.message));
        }
    }
    Ok(())
}

/// Waits for the redirect of the browser; other requests get a 404.
async fn wait(listener: &TcpListener, upstream: &Upstream) -> Result<(), Error> {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { continue };
        let reading = tokio::time::timeout(REQUEST_TIMEOUT, query(&mut stream)).await;
        let query = reading.ok().flatten().filter(|query| is_callback(upstream, query));
        let Some(query) = query else {
            answer(&mut stream, "404 Not Found", "There is nothing at this address.").await;
            continue;
        };
        let done = upstream.finish_login(&query).await;
        match &done {
            Ok(()) => answer(&mut stream, "200 OK", "Logged in. You can close this page.").await,
            Err(error) => answer(&mut stream, "400 Bad Request", &error.message).await,
        }
        return done;
    }
}

fn is_callback(upstream: &Upstream, query: &str) -> bool {
    let state = query.split('&').find_map(|pair| pair.strip_prefix("state="));
    state.is_some_and(|state| upstream.has_pending_login(state))
}

/// Reads a request for the callback and returns its query.
async fn query(stream: &mut TcpStream) -> Option<String> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        if head.len() > REQUEST_BYTES || stream.read_buf(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let head = String::from_utf8(head).ok()?;
    let target = head.strip_prefix("GET ")?.split(' ').next()?;
    Some(target.strip_prefix(CALLBACK)?.strip_prefix('?')?.to_owned())
}

async fn answer(stream: &mut TcpStream, status: &str, text: &str) {
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\n\
         Cache-Control: no-store\r\nReferrer-Policy: no-referrer\r\nX-Content-Type-Options: nosniff\r\n\
         Connection: close\r\n\r\n",
        text.len()
    );
    let sending = async {
        stream.write_all(head.as_bytes()).await?;
        stream.write_all(text.as_bytes()).await?;
        stream.shutdown().await
    };
    let _ = tokio::time::timeout(REQUEST_TIMEOUT, sending).await;
}

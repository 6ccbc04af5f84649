//! The start of `hikite serve`: a database that is away is waited for, with the port open and `/readyz` saying why.

use std::time::Duration;

use anyhow::{Context, Result};
use hikite_store::{Store, StoreError};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::cli::program;
use crate::config::Config;
use crate::running::{Overrides, Running, settings};

/// Between two attempts to reach the database.
const PAUSE: Duration = Duration::from_secs(1);
/// How often it is said again that it is waited for.
const SAY_AGAIN: Duration = Duration::from_secs(60);

/// Starts everything behind the port. Nothing, if a signal came while the database was waited for.
pub(super) async fn start(
    config: &Config,
    overrides: &Overrides,
    listener: &TcpListener,
) -> Result<Option<Running>> {
    let listen = |kind| signal(kind).context("signals cannot be heard");
    let (mut term, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    loop {
        let start = Running::start(config.clone(), settings(config)?, overrides.clone(), program()?);
        let started = tokio::select! {
            started = start => started,
            _ = term.recv() => return Ok(None),
            _ = interrupt.recv() => return Ok(None),
        };
        let error = match started {
            Ok(running) => return Ok(Some(running)),
            Err(error) => error,
        };
        if !is_store_away(config, &error).await {
            return Err(error);
        }
        let (scheme, address) = (config.server.scheme(), config.server.listen);
        tracing::warn!("listening on {scheme}://{address} and waiting for the store: {error:#}");
        let tls = settings(config)?.tls;
        if !hikite_server::serve_until(listener, tls, wait_for_store(config, &mut term, &mut interrupt))
            .await?
        {
            return Ok(None);
        }
        tracing::info!("the store can be reached; starting");
    }
}

/// A file that cannot be opened is the owner's to put right; a database comes back by itself.
async fn is_store_away(config: &Config, error: &anyhow::Error) -> bool {
    let url = config.store_url();
    if url.path().is_some() || url.is_memory() {
        return false;
    }
    match error.downcast_ref::<StoreError>() {
        Some(error) => error.is_away(),
        // It may have gone in the middle of the start, where errors do not say so.
        None => Store::reach(&url).await.is_err_and(|error| error.is_away()),
    }
}

/// Waits until the database answers, well or badly. `false` if a signal came first.
async fn wait_for_store(config: &Config, term: &mut Signal, interrupt: &mut Signal) -> Result<bool> {
    let answers = async {
        let url = config.store_url();
        let (begun, mut said) = (Instant::now(), Instant::now());
        loop {
            tokio::time::sleep(PAUSE).await;
            match Store::reach(&url).await {
                Err(error) if error.is_away() => {
                    if said.elapsed() >= SAY_AGAIN {
                        said = Instant::now();
                        tracing::warn!(
                            "still waiting for the store after {} s: {error}",
                            begun.elapsed().as_secs()
                        );
                    }
                }
                // What else is wrong is said by the next attempt to start.
                Ok(()) | Err(_) => return,
            }
        }
    };
    tokio::select! {
        () = answers => Ok(true),
        _ = term.recv() => Ok(false),
        _ = interrupt.recv() => Ok(false),
    }
}

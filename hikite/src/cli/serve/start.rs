//! Start-up of `hikite serve`. While the database is unreachable, the port stays open and `/readyz` reports the
//! reason.

use std::time::Duration;

use anyhow::{Context, Result};
use hikite_config::Config;
use hikite_store::{Store, StoreError};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use crate::cli::program;
use crate::instance::{ConfigOverrides, Instance, settings};

/// Pause between attempts to reach the database.
const PAUSE: Duration = Duration::from_secs(1);
/// Interval between log lines while waiting.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// Starts everything behind the port; `None` if a signal arrived while waiting for the database.
pub(super) async fn start(
    config: &Config,
    overrides: &ConfigOverrides,
    listener: &TcpListener,
) -> Result<Option<Instance>> {
    let listen = |kind| signal(kind).context("cannot listen for signals");
    let (mut term, mut interrupt) = (listen(SignalKind::terminate())?, listen(SignalKind::interrupt())?);
    loop {
        let start = Instance::start(config.clone(), settings(config)?, overrides.clone(), program()?);
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
        if !hikite_server::serve_until(listener, tls, wait_for_store(config, &mut term, &mut interrupt)).await? {
            return Ok(None);
        }
        tracing::info!("the store is reachable; starting");
    }
}

/// Returns `true` if the database is unreachable and may come back. A file that cannot be opened must be fixed by an
/// administrator.
async fn is_store_away(config: &Config, error: &anyhow::Error) -> bool {
    let url = config.store_url();
    if url.path().is_some() || url.is_memory() {
        return false;
    }
    match error.downcast_ref::<StoreError>() {
        Some(error) => error.is_transient(),
        // The database may have failed during start-up, where errors do not say so.
        None => Store::check_reachable(&url).await.is_err_and(|error| error.is_transient()),
    }
}

/// Waits until the database answers, even with an error; returns `false` if a signal arrived first.
async fn wait_for_store(config: &Config, term: &mut Signal, interrupt: &mut Signal) -> Result<bool> {
    let answers = async {
        let url = config.store_url();
        let (begun, mut said) = (Instant::now(), Instant::now());
        loop {
            tokio::time::sleep(PAUSE).await;
            match Store::check_reachable(&url).await {
                Err(error) if error.is_transient() => {
                    if said.elapsed() >= LOG_INTERVAL {
                        said = Instant::now();
                        tracing::warn!("still waiting for the store after {} s: {error}", begun.elapsed().as_secs());
                    }
                }
                // The next attempt to start reports any other error.
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

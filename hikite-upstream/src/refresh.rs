//! Keeps an upstream's lists current: fetches them when there are none, when they expire, and when the server announces
//! a change.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hikite_core::error::ErrorKind;
use hikite_core::listing::Listing;
use hikite_core::source::SourceState;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::connect::failing_state;
use crate::connection::retire::RetireReason;
use crate::definition::ConnectionSharing;
use crate::error::{FailureReason, UpstreamError};
use crate::reread_pace::RereadPace;
use crate::slot::AttemptKind;
use crate::upstream::UpstreamInner;
use crate::{capability, fetch, lists, login, ready};

pub(crate) async fn run(upstream: Arc<UpstreamInner>) {
    let closed = upstream.closed.clone();
    closed.run_until_cancelled(run_until_closed(&upstream)).await;
    // Releases everybody who waits for lists that will not come.
    upstream.lists.first_attempt_done.send_replace(true);
}

async fn run_until_closed(upstream: &Arc<UpstreamInner>) {
    let mut backoff = Backoff::default();
    let mut stale = upstream.lists.listing.load().as_ref().is_none_or(|listing| lists::is_old(upstream, listing));
    let mut pace = RereadPace::default();
    loop {
        if stale {
            let changed = refresh(upstream, &mut backoff).await;
            upstream.lists.first_attempt_done.send_replace(true);
            pace.read(Instant::now(), changed, upstream.environment.limits.list_ttl);
        }
        let retry = backoff.pause(Instant::now()).map(|(pause, _)| pause);
        // If cached lists exist, a failing server is not retried until somebody calls it.
        let retry = retry.filter(|_| upstream.lists.listing.load().is_none());
        let lifetime = lists::lifetime_of(upstream, upstream.lists.listing.load().as_deref());
        stale = tokio::select! {
            () = upstream.lists.stale.notified() => {
                tokio::time::sleep(pace.wait(Instant::now())).await;
                true
            }
            () = tokio::time::sleep(retry.unwrap_or_default()), if retry.is_some() => true,
            () = login::wait(upstream) => true,
            () = upstream.restarted.notified() => {
                backoff.succeeded();
                true
            }
            () = tokio::time::sleep(lifetime) => upstream.slots.is_running(),
        };
    }
}

/// Fetches the lists. Returns `true` if they changed.
async fn refresh(upstream: &Arc<UpstreamInner>, backoff: &mut Backoff) -> bool {
    let name = &*upstream.definition.name;
    let started = Instant::now();
    tracing::info!(module = name, "connecting");
    match fetch(upstream).await {
        Ok(listing) => {
            backoff.succeeded();
            *upstream.state.lock() = SourceState::Idle;
            let (tools, ms) = (listing.tools.len(), started.elapsed().as_millis());
            tracing::info!(module = name, tools, ms, "lists received");
            lists::store(upstream, listing)
        }
        Err(error) => {
            tracing::warn!(module = name, "{}", error.log_text());
            let answers = matches!(error.reason, FailureReason::ListsUnreadable);
            *upstream.state.lock() = failing_state(&error.error, answers);
            // Backoff does not help with a missing login.
            if error.error.kind != ErrorKind::AccountRequired {
                let (now, error) = (Instant::now(), error.error);
                let pause = error.retry_after;
                backoff.failed(now, error.message.into());
                if let Some(pause) = pause {
                    backoff.wait(now, pause.min(upstream.environment.limits.list_ttl));
                }
            }
            false
        }
    }
}

/// Fetches the lists at once, for a call that needs fresh ones.
pub(crate) async fn renew(upstream: &Arc<UpstreamInner>) -> Result<(), UpstreamError> {
    let seen = upstream.lists.listing.load_full();
    let _turn = upstream.lists.renewing.lock().await;
    let same = match (&seen, &upstream.lists.listing.load_full()) {
        (Some(seen), Some(now)) => Arc::ptr_eq(seen, now),
        (seen, _) => seen.is_none(),
    };
    // Otherwise a concurrent call has just fetched them.
    if same {
        let listing = fetch(upstream).await?;
        lists::store(upstream, listing);
    }
    Ok(())
}

/// Reads the lists. Uses the shared connection for a server known not to ask questions, else a separate one that
/// declares all capabilities, because lists may depend on them. A stateless server receives them per request, so
/// any connection works.
async fn fetch(upstream: &Arc<UpstreamInner>) -> Result<Listing, UpstreamError> {
    let together = upstream.definition.share != ConnectionSharing::Never;
    if together && upstream.revision.is_stateless() {
        let connection = ready::connection(upstream, &upstream.slots.shared, None).await?;
        if connection.is_stateless() {
            let lists = fetch::read(upstream, &connection).await;
            if !lists.as_ref().is_err_and(|error| lists::invalidate(upstream, &connection, error)) {
                return lists.map_err(fetch::unreadable);
            }
        }
        return fetch::fetch_all(upstream).await;
    }
    if lists_on_shared(upstream) {
        return fetch_first(upstream).await;
    }
    let known = upstream.lists.listing.load_full().filter(|_| !upstream.lists.sends_requests.load(Ordering::Relaxed));
    let Some(known) = known.filter(|_| together) else {
        return fetch::fetch_all(upstream).await;
    };
    let connection = ready::connection(upstream, &upstream.slots.shared, None).await?;
    let shared = fetch::read(upstream, &connection).await?;
    // The lists of a stateless server are complete.
    if shared.has_same_items(&known) || connection.is_stateless() {
        return Ok(shared);
    }
    // Either the server changed, or it offers less to a client without capabilities.
    let all = fetch::fetch_all(upstream).await?;
    if !all.has_items_missing_in(&shared) {
        return Ok(shared);
    }
    upstream.lists.sends_requests.store(true, Ordering::Relaxed);
    capability::retire_declared(upstream);
    Ok(Listing { sends_requests: true, ..shared.with_items_missing_from(&all) })
}

/// Returns `true` if the first lists are read over the process that later serves calls.
fn lists_on_shared(upstream: &UpstreamInner) -> bool {
    let may_stay = match upstream.definition.share {
        ConnectionSharing::Never => false,
        ConnectionSharing::Always => true,
        ConnectionSharing::Auto => !upstream.lists.sends_requests.load(Ordering::Relaxed),
    };
    may_stay && upstream.definition.transport.is_stdio() && upstream.lists.listing.load().is_none()
}

/// Reads the first lists of a stdio server. Its process stays for later calls, unless it asked a question
/// meanwhile: it was told of more capabilities than callers may have.
async fn fetch_first(upstream: &Arc<UpstreamInner>) -> Result<Listing, UpstreamError> {
    let connection = ready::connection_for(upstream, AttemptKind::Lists, &upstream.slots.shared, None).await?;
    let lists = fetch::read(upstream, &connection).await;
    let sends_requests = upstream.lists.sends_requests.load(Ordering::Relaxed);
    if sends_requests && connection.starter_capabilities.get().is_some() {
        connection.retire(RetireReason::CapabilitiesExceeded);
    }
    match lists {
        Ok(listing) => Ok(Listing { sends_requests, ..listing }),
        Err(error) => {
            // The next attempt starts a new process.
            connection.retire(RetireReason::Invalidated);
            Err(fetch::unreadable(error))
        }
    }
}

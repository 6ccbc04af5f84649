//! Keeps an upstream's lists current: fetches them when there are none, when they expire, and when the server announces
//! a change.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::listing::Listing;
use hikite_core::source::SourceState;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::connect::failing_state;
use crate::connection::{Connection, ConnectionPurpose};
use crate::definition::ConnectionSharing;
use crate::error::{FailureReason, UpstreamError};
use crate::list_change::reread_pace::RereadPace;
use crate::list_reader::{ListBudget, now, read_lists};
use crate::retire::RetireReason;
use crate::slot::AttemptKind;
use crate::upstream::UpstreamInner;

/// Bounds for the TTL that a server declares.
const SHORTEST_LIFE: Duration = Duration::from_secs(5);
const LONGEST_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

impl UpstreamInner {
    pub(crate) async fn refresh_lists_loop(self: Arc<Self>) {
        let closed = self.closed.clone();
        closed.run_until_cancelled(self.refresh_lists_until_closed()).await;
        // Releases everybody who waits for lists that will not come.
        self.first_attempt_done.send_replace(true);
    }

    async fn refresh_lists_until_closed(self: &Arc<Self>) {
        let mut backoff = Backoff::default();
        let mut stale = self.listing.load().as_ref().is_none_or(|listing| self.is_old(listing));
        let mut pace = RereadPace::default();
        loop {
            if stale {
                let changed = self.refresh(&mut backoff).await;
                self.first_attempt_done.send_replace(true);
                pace.read(Instant::now(), changed, self.environment.limits.list_ttl);
            }
            let retry = backoff.pause(Instant::now()).map(|(pause, _)| pause);
            // If cached lists exist, a failing server is not retried until somebody calls it.
            let retry = retry.filter(|_| self.listing.load().is_none());
            let lifetime = self.lifetime(self.listing.load().as_deref());
            stale = tokio::select! {
                () = self.stale.notified() => {
                    tokio::time::sleep(pace.wait(Instant::now())).await;
                    true
                }
                () = tokio::time::sleep(retry.unwrap_or_default()), if retry.is_some() => true,
                () = self.wait_for_login() => true,
                () = self.restarted.notified() => {
                    backoff.succeeded();
                    true
                }
                () = tokio::time::sleep(lifetime) => self.is_running(),
            };
        }
    }

    /// Fetches the lists. Returns `true` if they changed.
    async fn refresh(self: &Arc<Self>, backoff: &mut Backoff) -> bool {
        let name = &*self.definition.name;
        let started = Instant::now();
        tracing::info!(module = name, "connecting");
        match self.fetch().await {
            Ok(listing) => {
                backoff.succeeded();
                *self.state.lock() = SourceState::Idle;
                let (tools, ms) = (listing.tools.len(), started.elapsed().as_millis());
                tracing::info!(module = name, tools, ms, "lists received");
                self.store_listing(listing)
            }
            Err(error) => {
                tracing::warn!(module = name, "{}", error.log_text());
                let answers = matches!(error.reason, FailureReason::ListsUnreadable);
                *self.state.lock() = failing_state(&error.error, answers);
                // Backoff does not help with a missing login.
                if error.error.kind != ErrorKind::AccountRequired {
                    let (now, error) = (Instant::now(), error.error);
                    let pause = error.retry_after;
                    backoff.failed(now, error.message.into());
                    if let Some(pause) = pause {
                        backoff.wait(now, pause.min(self.environment.limits.list_ttl));
                    }
                }
                false
            }
        }
    }

    /// Fetches the lists at once, for a call that needs fresh ones.
    pub(crate) async fn renew_lists(self: &Arc<Self>) -> Result<(), UpstreamError> {
        let seen = self.listing.load_full();
        let _turn = self.renewing.lock().await;
        let same = match (&seen, &self.listing.load_full()) {
            (Some(seen), Some(now)) => Arc::ptr_eq(seen, now),
            (seen, _) => seen.is_none(),
        };
        // Otherwise a concurrent call has just fetched them.
        if same {
            let listing = self.fetch().await?;
            self.store_listing(listing);
        }
        Ok(())
    }

    /// Reads the lists. Uses the shared connection for a server known not to ask questions, else a separate one that
    /// declares all capabilities, because lists may depend on them. A stateless server receives them per request, so
    /// any connection works.
    async fn fetch(self: &Arc<Self>) -> Result<Listing, UpstreamError> {
        let together = self.definition.share != ConnectionSharing::Never;
        if together && self.revision.is_stateless() {
            let connection = self.connection(&self.shared, None).await?;
            if connection.is_stateless() {
                let lists = self.read_lists(&connection).await;
                if !lists.as_ref().is_err_and(|error| self.invalidate(&connection, error)) {
                    return lists.map_err(unreadable);
                }
            }
            return self.fetch_all().await;
        }
        if self.lists_on_shared() {
            return self.fetch_first().await;
        }
        let known = self.listing.load_full().filter(|_| !self.sends_requests.load(Ordering::Relaxed));
        let Some(known) = known.filter(|_| together) else {
            return self.fetch_all().await;
        };
        let connection = self.connection(&self.shared, None).await?;
        let shared = self.read_lists(&connection).await?;
        // The lists of a stateless server are complete.
        if shared.has_same_items(&known) || connection.is_stateless() {
            return Ok(shared);
        }
        // Either the server changed, or it offers less to a client without capabilities.
        let all = self.fetch_all().await?;
        if !all.has_items_missing_in(&shared) {
            return Ok(shared);
        }
        self.sends_requests.store(true, Ordering::Relaxed);
        self.retire_declared();
        Ok(Listing { sends_requests: true, ..shared.with_items_missing_from(&all) })
    }

    /// Returns `true` if the first lists are read over the process that later serves calls.
    fn lists_on_shared(&self) -> bool {
        let may_stay = match self.definition.share {
            ConnectionSharing::Never => false,
            ConnectionSharing::Always => true,
            ConnectionSharing::Auto => !self.sends_requests.load(Ordering::Relaxed),
        };
        may_stay && self.definition.transport.is_stdio() && self.listing.load().is_none()
    }

    /// Reads the first lists of a stdio server. Its process stays for later calls, unless it asked a question
    /// meanwhile: it was told of more capabilities than callers may have.
    async fn fetch_first(self: &Arc<Self>) -> Result<Listing, UpstreamError> {
        let connection = self.connection_for(AttemptKind::Lists, &self.shared, None).await?;
        let lists = self.read_lists(&connection).await;
        let sends_requests = self.sends_requests.load(Ordering::Relaxed);
        if sends_requests && connection.starter_capabilities.get().is_some() {
            connection.retire(RetireReason::CapabilitiesExceeded);
        }
        match lists {
            Ok(listing) => Ok(Listing { sends_requests, ..listing }),
            Err(error) => {
                // The next attempt starts a new process.
                connection.retire(RetireReason::Invalidated);
                Err(unreadable(error))
            }
        }
    }

    /// Compares the lists of the first shared process with the cached ones, which were read with all capabilities. If
    /// some are missing, reads them once more with all capabilities, because the cache may be outdated.
    pub(crate) async fn compare_lists(self: &Arc<Self>, connection: &Connection) {
        let shared = matches!(connection.purpose, ConnectionPurpose::Shared)
            && self.definition.transport.is_stdio()
            && !connection.is_stateless();
        let Some(known) = self.listing.load_full().filter(|_| shared) else { return };
        if self.compared.swap(true, Ordering::Relaxed) || self.sends_requests.load(Ordering::Relaxed) {
            return;
        }
        let Ok(offer) = self.read_lists(connection).await else { return };
        if !known.has_items_missing_in(&offer) {
            return;
        }
        match Box::pin(self.fetch_all()).await {
            Ok(all) if !all.has_items_missing_in(&offer) => {
                self.store_listing(offer);
            }
            Ok(_) | Err(_) => self.record_server_asks(),
        }
    }

    /// Reads the lists over a separate connection that declares all capabilities.
    async fn fetch_all(self: &Arc<Self>) -> Result<Listing, UpstreamError> {
        let connection = self.open(ConnectionPurpose::Lists, None).await?;
        let lists = self.read_lists(&connection).await;
        connection.close(Error::new(ErrorKind::UpstreamUnavailable, "The lists were already read."));
        let mut listing = lists.map_err(unreadable)?;
        listing.sends_requests = self.sends_requests.load(Ordering::Relaxed);
        Ok(listing)
    }

    pub(crate) async fn read_lists(&self, connection: &Connection) -> Result<Listing, UpstreamError> {
        let limit = self.environment.limits.start_timeout;
        let _hold = connection.hold();
        let budget = ListBudget::of(&self.environment.limits);
        tokio::time::timeout(limit, read_lists(connection, budget))
            .await
            .unwrap_or_else(|_| Err(self.too_slow().into()))
    }

    pub(crate) fn is_old(&self, listing: &Listing) -> bool {
        now().saturating_sub(listing.fetched_at) > self.lifetime(Some(listing)).as_secs()
    }

    /// Returns how long a listing stays fresh: the server's TTL within bounds, else the configured one.
    fn lifetime(&self, listing: Option<&Listing>) -> Duration {
        lifetime(listing.and_then(|listing| listing.ttl_ms), self.environment.limits.list_ttl)
    }
}

/// Returns the error of a running server whose lists could not be read, for whatever reason.
fn unreadable(error: UpstreamError) -> UpstreamError {
    UpstreamError::new(FailureReason::ListsUnreadable, error.error)
}

fn lifetime(ttl_ms: Option<u64>, otherwise: Duration) -> Duration {
    match ttl_ms.filter(|ms| *ms > 0) {
        Some(ms) => Duration::from_millis(ms).clamp(SHORTEST_LIFE, LONGEST_LIFE),
        None => otherwise,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_says_how_long_its_lists_live_within_reason() {
        let otherwise = Duration::from_secs(600);
        assert_eq!(lifetime(None, otherwise), otherwise);
        assert_eq!(lifetime(Some(0), otherwise), otherwise);
        assert_eq!(lifetime(Some(1), otherwise), SHORTEST_LIFE);
        assert_eq!(lifetime(Some(60_000), otherwise), Duration::from_secs(60));
        assert_eq!(lifetime(Some(u64::MAX), otherwise), LONGEST_LIFE);
    }
}

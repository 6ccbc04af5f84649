//! Current lists of an upstream: replaced as a whole, cached across restarts, with the listings of single sessions.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hikite_core::caller::SessionId;
use hikite_core::listing::{Listing, SanitizedItem};
use hikite_core::source::SourceEvent;

use crate::annotation::Annotations;
use crate::capability;
use crate::connection::Connection;
use crate::connection::retire::RetireReason;
use crate::error::UpstreamError;
use crate::list_reader::now;
use crate::revision;
use crate::upstream::UpstreamInner;

/// Bounds for the TTL that a server declares.
const SHORTEST_LIFE: Duration = Duration::from_secs(5);
const LONGEST_LIFE: Duration = Duration::from_secs(24 * 60 * 60);

/// Replaces the current listing, here and in the cache. Returns `true` if its content changed.
pub(crate) fn store(upstream: &UpstreamInner, mut listing: Listing) -> bool {
    let listing_lock = upstream.lists.replacing.lock();
    listing.sends_requests |= upstream.lists.sends_requests.load(Ordering::Relaxed);
    if !upstream.revision.is_known() {
        listing.revision = None;
    }
    let before = upstream.lists.listing.load_full();
    let changed = before.as_ref().is_none_or(|before| !before.has_same_items(&listing));
    let news = |before: &Listing| {
        is_old(upstream, before)
            || before.sends_requests != listing.sends_requests
            || before.revision != listing.revision
            || before.ttl_ms != listing.ttl_ms
            || before.sanitized != listing.sanitized
    };
    if before.as_ref().is_none_or(|before| before.sanitized != listing.sanitized) {
        warn_sanitized(upstream, &listing.sanitized);
    }
    if changed || before.is_some_and(|before| news(&before)) {
        upstream.environment.cache.store(&upstream.definition.hash, &listing);
    }
    if changed {
        upstream.lists.annotations.store(Arc::new(Annotations::of(Some(&listing))));
    }
    let listing = Arc::new(listing);
    upstream.lists.listing.store(Some(Arc::clone(&listing)));
    drop(listing_lock);
    if changed {
        drop_redundant(upstream, &listing);
        (upstream.listener)(SourceEvent::ListChanged);
    }
    changed
}

fn warn_sanitized(upstream: &UpstreamInner, sanitized: &[SanitizedItem]) {
    for SanitizedItem { kind, name, removed, left_out } in sanitized {
        let module = &*upstream.definition.name;
        if *left_out {
            tracing::warn!(module, kind, name, removed, "skipped because its name contains invisible characters");
        } else {
            tracing::warn!(module, kind, name, removed, "invisible characters were removed");
        }
    }
}

/// Records that the server asks questions: sessions that can answer get their own connections from now on, also
/// after a restart.
pub(crate) fn record_server_asks(upstream: &UpstreamInner) {
    if upstream.lists.sends_requests.swap(true, Ordering::Relaxed) {
        return;
    }
    capability::retire_declared(upstream);
    if let Some(listing) = upstream.lists.listing.load_full() {
        store(upstream, Listing { sends_requests: true, ..(*listing).clone() });
    }
}

/// Invalidates the connection if the error shows that the server changed its protocol revision, and returns `true`
/// if it does. The next connection performs a new handshake.
pub(crate) fn invalidate(upstream: &UpstreamInner, connection: &Arc<Connection>, error: &UpstreamError) -> bool {
    if !revision::is_revision_change(error) {
        return false;
    }
    // The first of several failing calls is enough: the next connection may already be open.
    if connection.retire(RetireReason::Invalidated) {
        tracing::info!(
            module = &*upstream.definition.name,
            "it may use another protocol revision now: {}",
            error.log_text()
        );
        forget_revision(upstream);
        upstream.lists.stale.notify_one();
    }
    true
}

/// Forgets the cached revision, so that the next handshake probes for it.
pub(crate) fn forget_revision(upstream: &UpstreamInner) {
    if !upstream.revision.forget() {
        return;
    }
    if let Some(listing) = upstream.lists.listing.load_full() {
        store(upstream, (*listing).clone());
    }
}

/// Returns the listing of one session, where it differs from the common one.
pub(crate) fn of_session(upstream: &UpstreamInner, session: SessionId) -> Option<Arc<Listing>> {
    let owned = upstream.slots.owned.lock().get(&session).cloned();
    let connection = match owned {
        Some(slot) => slot.live()?,
        None => upstream.slots.shared.live().filter(|shared| shared.calling_sessions.lock().contains_key(&session))?,
    };
    connection.listing_state.own()
}

/// Announces the session listing of a connection that has become live.
pub(crate) fn announce(upstream: &UpstreamInner, connection: &Connection) {
    if connection.listing_state.own().is_some() {
        (upstream.listener)(SourceEvent::SessionListChanged { sessions: connection.sessions() });
    }
}

/// Drops session listings that equal the new common listing.
pub(crate) fn drop_redundant(upstream: &UpstreamInner, common: &Listing) {
    for connection in upstream.slots.all().iter().filter_map(|slot| slot.open_connection()) {
        if connection.listing_state.own().is_some_and(|own| own.has_same_items(common)) {
            connection.listing_state.own.store(None);
        }
    }
}

pub(crate) fn is_old(upstream: &UpstreamInner, listing: &Listing) -> bool {
    now().saturating_sub(listing.fetched_at) > lifetime_of(upstream, Some(listing)).as_secs()
}

/// Returns how long a listing stays fresh: the server's TTL within bounds, else the configured one.
pub(crate) fn lifetime_of(upstream: &UpstreamInner, listing: Option<&Listing>) -> Duration {
    lifetime(listing.and_then(|listing| listing.ttl_ms), upstream.environment.limits.list_ttl)
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

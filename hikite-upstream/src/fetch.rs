//! Reads the lists of a server over a given connection, or over a separate one that declares all capabilities.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::listing::Listing;

use crate::connect;
use crate::connection::{Connection, ConnectionPurpose};
use crate::error::{FailureReason, UpstreamError};
use crate::list_reader::{ListBudget, read_lists};
use crate::lists;
use crate::upstream::UpstreamInner;

/// Compares the lists of the first shared process with the cached ones, which were read with all capabilities. If
/// some are missing, reads them once more with all capabilities, because the cache may be outdated.
pub(crate) async fn compare(upstream: &Arc<UpstreamInner>, connection: &Connection) {
    let shared = matches!(connection.purpose, ConnectionPurpose::Shared)
        && upstream.definition.transport.is_stdio()
        && !connection.is_stateless();
    let Some(known) = upstream.lists.listing.load_full().filter(|_| shared) else { return };
    if upstream.lists.compared.swap(true, Ordering::Relaxed) || upstream.lists.sends_requests.load(Ordering::Relaxed) {
        return;
    }
    let Ok(offer) = read(upstream, connection).await else { return };
    if !known.has_items_missing_in(&offer) {
        return;
    }
    match Box::pin(fetch_all(upstream)).await {
        Ok(all) if !all.has_items_missing_in(&offer) => {
            lists::store(upstream, offer);
        }
        Ok(_) | Err(_) => lists::record_server_asks(upstream),
    }
}

/// Reads the lists over a separate connection that declares all capabilities.
pub(crate) async fn fetch_all(upstream: &Arc<UpstreamInner>) -> Result<Listing, UpstreamError> {
    let connection = connect::open(upstream, ConnectionPurpose::Lists, None).await?;
    let lists = read(upstream, &connection).await;
    connection.close(Error::new(ErrorKind::UpstreamUnavailable, "The lists were already read."));
    let mut listing = lists.map_err(unreadable)?;
    listing.sends_requests = upstream.lists.sends_requests.load(Ordering::Relaxed);
    Ok(listing)
}

pub(crate) async fn read(upstream: &UpstreamInner, connection: &Connection) -> Result<Listing, UpstreamError> {
    let limit = upstream.environment.limits.start_timeout;
    let _hold = connection.retirement.hold();
    let budget = ListBudget::of(&upstream.environment.limits);
    tokio::time::timeout(limit, read_lists(connection, budget))
        .await
        .unwrap_or_else(|_| Err(upstream.too_slow().into()))
}

/// Returns the error of a running server whose lists could not be read, for whatever reason.
pub(crate) fn unreadable(error: UpstreamError) -> UpstreamError {
    UpstreamError::new(FailureReason::ListsUnreadable, error.error)
}

//! Lists that change while a server runs. They are read on the connection that announced the change. A list read over a
//! connection that all sessions share replaces the common listing; a list that only one session sees is stored with its
//! connection and ends with it.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use hikite_core::listing::{ListItem, ListKind, Listing};
use hikite_core::source::SourceEvent;
use tokio::time::Instant;

use crate::connection::listing::KINDS;
use crate::connection::{Connection, ConnectionPurpose};
use crate::definition::ConnectionSharing;
use crate::slot::UpstreamSlot;
use crate::upstream::UpstreamInner;
use crate::{fetch, lists};

/// Rereads the lists of a connection as long as the server announces changes, at a limited rate.
pub(crate) async fn reread_announced(upstream: Arc<UpstreamInner>, connection: Arc<Connection>) {
    let listing_state = &connection.listing_state;
    let longest = upstream.environment.limits.list_ttl;
    loop {
        let wait = listing_state.pace.lock().wait(Instant::now());
        tokio::select! {
            () = connection.closed.cancelled() => return,
            () = tokio::time::sleep(wait) => {}
        }
        // Announced during the handshake: no request can be sent yet.
        if connection.initialize_result().is_none() {
            continue;
        }
        let pending_kinds = listing_state.pending_kinds.swap(0, Ordering::AcqRel);
        if pending_kinds == 0 {
            // A swap, so that an announcement from here on starts a new task.
            listing_state.is_rereading.swap(false, Ordering::AcqRel);
            let late = listing_state.pending_kinds.load(Ordering::Acquire) != 0;
            if late && !listing_state.is_rereading.swap(true, Ordering::AcqRel) {
                continue;
            }
            return;
        }
        let is_new = reread(&upstream, &connection, pending_kinds).await;
        listing_state.pace.lock().read(Instant::now(), is_new, longest);
    }
}

/// Rereads the lists. Returns `true` if they changed.
async fn reread(upstream: &Arc<UpstreamInner>, connection: &Arc<Connection>, pending_kinds: u8) -> bool {
    let listing = match fetch::read(upstream, connection).await {
        Ok(listing) => listing,
        Err(error) => {
            tracing::debug!(
                module = &*upstream.definition.name,
                error = error.log_text(),
                "failed to read the lists of a server"
            );
            if connection.is_stateless() {
                lists::invalidate(upstream, connection, &error);
            }
            return false;
        }
    };
    let applies_to_all = applies_to_all(upstream, connection);
    let is_new = if applies_to_all {
        let is_new = lists::store(upstream, listing);
        if is_new {
            upstream.lists.changed_while_running.store(true, Ordering::Relaxed);
        }
        is_new
    } else {
        offer(upstream, connection, listing)
    };
    let named = KINDS.iter().filter(|(.., bit)| pending_kinds & bit != 0);
    let kinds: Vec<ListKind> = named.map(|(_, kind, _)| *kind).collect();
    // The announcement is relayed even so: a tool may have come and gone.
    if !is_new && !kinds.is_empty() {
        let sessions = (!applies_to_all).then(|| connection.sessions());
        (upstream.listener)(SourceEvent::ListAnnounced { kinds, sessions });
    }
    is_new
}

/// Returns `true` if the lists of this connection apply to all sessions.
fn applies_to_all(upstream: &UpstreamInner, connection: &Connection) -> bool {
    let for_all = upstream.definition.share == ConnectionSharing::Always
        || !upstream.lists.sends_requests.load(Ordering::Relaxed);
    matches!(connection.purpose, ConnectionPurpose::Shared) && (for_all || connection.is_stateless())
}

/// Stores the listing of a connection if it differs from the common one. Returns `true` if it changed.
fn offer(upstream: &Arc<UpstreamInner>, connection: &Arc<Connection>, listing: Listing) -> bool {
    let common = upstream.lists.listing.load_full();
    let own = match common {
        Some(common) if common.has_same_items(&listing) => None,
        Some(common) => share_with_common(upstream, connection, listing, &common),
        None => Some(Arc::new(listing)),
    };
    let before = connection.listing_state.own.swap(own.clone());
    let is_same = match (&before, &own) {
        (Some(before), Some(own)) => Arc::ptr_eq(before, own) || before.has_same_items(own),
        (before, own) => before.is_none() && own.is_none(),
    };
    if is_same {
        return false;
    }
    if own.is_some() && !connection.listing_state.is_watched.swap(true, Ordering::Relaxed) {
        let (inner, connection) = (Arc::downgrade(upstream), Arc::clone(connection));
        upstream.tasks.spawn(async move {
            connection.closed.cancelled().await;
            connection.listing_state.own.store(None);
            if let Some(inner) = inner.upgrade() {
                (inner.listener)(SourceEvent::SessionListChanged { sessions: connection.sessions() });
            }
        });
    }
    (upstream.listener)(SourceEvent::SessionListChanged { sessions: connection.sessions() });
    // The change may apply to everybody; checking a remote server costs no process.
    if !upstream.definition.transport.is_stdio() {
        upstream.lists.stale.notify_one();
    }
    true
}

/// Shares equal items with the common listing and copies the others out of their buffer. Returns `None` if the
/// sessions of this caller exceed the list budget of one server.
fn share_with_common(
    upstream: &UpstreamInner,
    connection: &Connection,
    mut listing: Listing,
    common: &Listing,
) -> Option<Arc<Listing>> {
    let mut hasher = DefaultHasher::new();
    let mut bytes = 0;
    for kind in ListKind::ALL {
        let known: HashMap<&str, &ListItem> = common.of(kind).iter().map(|item| (&*item.name, item)).collect();
        for item in listing.of_mut(kind) {
            match known.get(&*item.name).filter(|known| known.raw == item.raw) {
                Some(known) => *item = ListItem::clone(known),
                None => {
                    *item = ListItem { name: Arc::clone(&item.name), raw: item.raw.copied() };
                    bytes += item.raw.bytes().len();
                    item.raw.bytes().hash(&mut hasher);
                }
            }
            item.name.hash(&mut hasher);
        }
    }
    if bytes + session_listing_bytes(upstream, connection, common) > upstream.environment.limits.list_bytes {
        tracing::warn!(
            module = &*upstream.definition.name,
            "the own lists of one caller's sessions are too large (`limits.list_bytes`); this session gets the \
             shared list"
        );
        return None;
    }
    Some(intern_listing(upstream, hasher.finish(), listing))
}

/// Returns the bytes that other sessions of the same caller use beyond the common listing.
fn session_listing_bytes(upstream: &UpstreamInner, connection: &Connection, common: &Listing) -> usize {
    let ConnectionPurpose::Owned(session) = &connection.purpose else { return 0 };
    let slots: Vec<_> = upstream.slots.owned.lock().values().cloned().collect();
    let is_theirs = |slot: &Arc<UpstreamSlot>| match &slot.purpose {
        ConnectionPurpose::Owned(other) => other.id != session.id && other.caller.subject == session.caller.subject,
        ConnectionPurpose::Shared | ConnectionPurpose::Lists => false,
    };
    let lists = slots.iter().filter(|slot| is_theirs(slot)).filter_map(|slot| slot.live()?.listing_state.own());
    let mut seen: Vec<Arc<Listing>> = Vec::new();
    for list in lists {
        if !seen.iter().any(|known| Arc::ptr_eq(known, &list)) {
            seen.push(list);
        }
    }
    seen.iter().map(|list| bytes_beyond(list, common)).sum()
}

fn intern_listing(upstream: &UpstreamInner, hash: u64, listing: Listing) -> Arc<Listing> {
    let mut lists = upstream.lists.session_listings.lock();
    if let Some(known) = lists.get(&hash).and_then(Weak::upgrade).filter(|known| known.has_same_items(&listing)) {
        return known;
    }
    lists.retain(|_, list| list.strong_count() > 0);
    let listing = Arc::new(listing);
    lists.insert(hash, Arc::downgrade(&listing));
    listing
}

fn bytes_beyond(own: &Listing, common: &Listing) -> usize {
    let beside = |kind: ListKind| {
        let known: HashMap<&str, &ListItem> = common.of(kind).iter().map(|item| (&*item.name, item)).collect();
        let differs = move |item: &&ListItem| known.get(&*item.name).is_none_or(|known| known.raw != item.raw);
        own.of(kind).iter().filter(differs).map(|item| item.raw.bytes().len()).sum::<usize>()
    };
    ListKind::ALL.into_iter().map(beside).sum()
}

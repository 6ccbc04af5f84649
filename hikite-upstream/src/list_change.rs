//! Lists that change while a server runs. They are read on the connection that announced the change. A list read over a
//! connection that all sessions share replaces the common listing; a list that only one session sees is stored with its
//! connection and ends with it.

pub(crate) mod reread_pace;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use hikite_core::caller::SessionId;
use hikite_core::listing::{ListItem, ListKind, Listing};
use hikite_core::source::SourceEvent;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::connection::{Connection, ConnectionNotice, ConnectionPurpose};
use crate::definition::ConnectionSharing;
use crate::slot::UpstreamSlot;
use crate::upstream::UpstreamInner;
use reread_pace::RereadPace;

/// Listing state of one connection.
#[derive(Debug, Default)]
pub(crate) struct ConnectionListing {
    /// Lists to reread: one bit per announced kind, and one for any other reason.
    pending_kinds: AtomicU8,
    /// Set while a task is reading them.
    is_rereading: AtomicBool,
    pace: Mutex<RereadPace>,
    /// Listing of this connection, where it differs from the common one.
    own: ArcSwapOption<Listing>,
    /// Set while a task waits for the end of the connection, to drop `own`.
    is_watched: AtomicBool,
}

/// Session listings in use, so that equal ones share memory.
pub(crate) type SessionListings = Mutex<HashMap<u64, Weak<Listing>>>;

const OTHER_REASON: u8 = 1 << 7;

/// Lists that a server may announce as changed.
const KINDS: [(&str, ListKind, u8); 3] = [
    ("notifications/tools/list_changed", ListKind::Tools, 1),
    ("notifications/resources/list_changed", ListKind::Resources, 1 << 1),
    ("notifications/prompts/list_changed", ListKind::Prompts, 1 << 2),
];

impl ConnectionListing {
    pub(crate) fn own(&self) -> Option<Arc<Listing>> {
        self.own.load_full()
    }
}

impl Connection {
    /// Handles a `list_changed` notification. At most one reread runs at a time.
    pub(crate) fn on_list_changed(self: &Arc<Self>, method: &str) {
        let bit = KINDS.iter().find(|(known, ..)| *known == method).map_or(OTHER_REASON, |(.., bit)| *bit);
        self.schedule_reread(bit);
    }

    /// Rereads the lists because they may have changed.
    pub(crate) fn reread_lists(self: &Arc<Self>) {
        self.schedule_reread(OTHER_REASON);
    }

    fn schedule_reread(self: &Arc<Self>, bit: u8) {
        self.listing_state.pending_kinds.fetch_or(bit, Ordering::AcqRel);
        if !self.listing_state.is_rereading.swap(true, Ordering::AcqRel) {
            (self.notices)(ConnectionNotice::ListChanged(Arc::clone(self)));
        }
    }

    /// Returns the sessions that use this connection.
    fn sessions(&self) -> Vec<SessionId> {
        match &self.purpose {
            ConnectionPurpose::Owned(session) => vec![session.id],
            ConnectionPurpose::Shared | ConnectionPurpose::Lists => {
                self.calling_sessions.lock().keys().copied().collect()
            }
        }
    }
}

impl UpstreamInner {
    /// Returns the listing of one session, where it differs from the common one.
    pub(crate) fn session_listing(&self, session: SessionId) -> Option<Arc<Listing>> {
        let owned = self.owned.lock().get(&session).cloned();
        let connection = match owned {
            Some(slot) => slot.live()?,
            None => self.shared.live().filter(|shared| shared.calling_sessions.lock().contains_key(&session))?,
        };
        connection.listing_state.own()
    }

    /// Announces the session listing of a connection that has become live.
    pub(crate) fn announce_session_listing(&self, connection: &Connection) {
        if connection.listing_state.own().is_some() {
            (self.listener)(SourceEvent::SessionListChanged { sessions: connection.sessions() });
        }
    }

    /// Rereads the lists of a connection as long as the server announces changes, at a limited rate.
    pub(crate) async fn reread_announced_lists(self: Arc<Self>, connection: Arc<Connection>) {
        let listing_state = &connection.listing_state;
        let longest = self.environment.limits.list_ttl;
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
            let is_new = self.reread(&connection, pending_kinds).await;
            listing_state.pace.lock().read(Instant::now(), is_new, longest);
        }
    }

    /// Rereads the lists. Returns `true` if they changed.
    async fn reread(self: &Arc<Self>, connection: &Arc<Connection>, pending_kinds: u8) -> bool {
        let listing = match self.read_lists(connection).await {
            Ok(listing) => listing,
            Err(error) => {
                tracing::debug!(
                    module = &*self.definition.name,
                    error = error.log_text(),
                    "failed to read the lists of a server"
                );
                if connection.is_stateless() {
                    self.invalidate(connection, &error);
                }
                return false;
            }
        };
        let applies_to_all = self.applies_to_all(connection);
        let is_new = if applies_to_all {
            let is_new = self.store_listing(listing);
            if is_new {
                self.changed_while_running.store(true, Ordering::Relaxed);
            }
            is_new
        } else {
            self.offer(connection, listing)
        };
        let named = KINDS.iter().filter(|(.., bit)| pending_kinds & bit != 0);
        let kinds: Vec<ListKind> = named.map(|(_, kind, _)| *kind).collect();
        // The announcement is relayed even so: a tool may have come and gone.
        if !is_new && !kinds.is_empty() {
            let sessions = (!applies_to_all).then(|| connection.sessions());
            (self.listener)(SourceEvent::ListAnnounced { kinds, sessions });
        }
        is_new
    }

    /// Returns `true` if the lists of this connection apply to all sessions.
    fn applies_to_all(&self, connection: &Connection) -> bool {
        let for_all =
            self.definition.share == ConnectionSharing::Always || !self.sends_requests.load(Ordering::Relaxed);
        matches!(connection.purpose, ConnectionPurpose::Shared) && (for_all || connection.is_stateless())
    }

    /// Stores the listing of a connection if it differs from the common one. Returns `true` if it changed.
    fn offer(self: &Arc<Self>, connection: &Arc<Connection>, listing: Listing) -> bool {
        let common = self.listing.load_full();
        let own = match common {
            Some(common) if common.has_same_items(&listing) => None,
            Some(common) => self.share_with_common(connection, listing, &common),
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
            let (inner, connection) = (Arc::downgrade(self), Arc::clone(connection));
            self.tasks.spawn(async move {
                connection.closed.cancelled().await;
                connection.listing_state.own.store(None);
                if let Some(inner) = inner.upgrade() {
                    (inner.listener)(SourceEvent::SessionListChanged { sessions: connection.sessions() });
                }
            });
        }
        (self.listener)(SourceEvent::SessionListChanged { sessions: connection.sessions() });
        // The change may apply to everybody; checking a remote server costs no process.
        if !self.definition.transport.is_stdio() {
            self.stale.notify_one();
        }
        true
    }

    /// Shares equal items with the common listing and copies the others out of their buffer. Returns `None` if the
    /// sessions of this caller exceed the list budget of one server.
    fn share_with_common(
        &self,
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
        if bytes + self.session_listing_bytes(connection, common) > self.environment.limits.list_bytes {
            tracing::warn!(
                module = &*self.definition.name,
                "the own lists of one caller's sessions are too large (`limits.list_bytes`); this session gets the \
                 shared list"
            );
            return None;
        }
        Some(self.intern_listing(hasher.finish(), listing))
    }

    /// Returns the bytes that other sessions of the same caller use beyond the common listing.
    fn session_listing_bytes(&self, connection: &Connection, common: &Listing) -> usize {
        let ConnectionPurpose::Owned(session) = &connection.purpose else { return 0 };
        let slots: Vec<_> = self.owned.lock().values().cloned().collect();
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

    fn intern_listing(&self, hash: u64, listing: Listing) -> Arc<Listing> {
        let mut lists = self.session_listings.lock();
        if let Some(known) = lists.get(&hash).and_then(Weak::upgrade).filter(|known| known.has_same_items(&listing)) {
            return known;
        }
        lists.retain(|_, list| list.strong_count() > 0);
        let listing = Arc::new(listing);
        lists.insert(hash, Arc::downgrade(&listing));
        listing
    }

    /// Drops session listings that equal the new common listing.
    pub(crate) fn drop_redundant_listings(&self, common: &Listing) {
        let slots: Vec<_> = self.owned.lock().values().cloned().chain([Arc::clone(&self.shared)]).collect();
        for connection in slots.iter().filter_map(|slot| slot.open_connection()) {
            if connection.listing_state.own().is_some_and(|own| own.has_same_items(common)) {
                connection.listing_state.own.store(None);
            }
        }
    }
}

fn bytes_beyond(own: &Listing, common: &Listing) -> usize {
    let beside = |kind: ListKind| {
        let known: HashMap<&str, &ListItem> = common.of(kind).iter().map(|item| (&*item.name, item)).collect();
        let differs = move |item: &&ListItem| known.get(&*item.name).is_none_or(|known| known.raw != item.raw);
        own.of(kind).iter().filter(differs).map(|item| item.raw.bytes().len()).sum::<usize>()
    };
    ListKind::ALL.into_iter().map(beside).sum()
}

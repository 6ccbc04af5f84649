//! Lists that change while a server runs. They are read on the connection that announced the change. A list read over a
//! connection that all sessions share replaces the common listing; a list that only one session sees is stored with its
//! connection and ends with it.

pub(crate) mod pace;

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use hikite_core::caller::SessionId;
use hikite_core::listing::{Item, ListKind, Listing};
use hikite_core::source::Event;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::connection::{Connection, Notice, Purpose};
use crate::definition::Share;
use crate::slot::Slot;
use crate::upstream::Inner;
use pace::Pace;

/// Listing state of one connection.
#[derive(Debug, Default)]
pub(crate) struct Offered {
    /// Lists to reread: one bit per announced kind, and one for any other reason.
    said: AtomicU8,
    /// Set while a task is reading them.
    is_followed: AtomicBool,
    pace: Mutex<Pace>,
    /// Listing of this connection, where it differs from the common one.
    own: ArcSwapOption<Listing>,
    /// Set while a task waits for the end of the connection, to drop `own`.
    is_watched: AtomicBool,
}

/// Session listings in use, so that equal ones share memory.
pub(crate) type OwnLists = Mutex<HashMap<u64, Weak<Listing>>>;

const OTHER_REASON: u8 = 1 << 7;

/// Lists that a server may announce as changed.
const KINDS: [(&str, ListKind, u8); 3] = [
    ("notifications/tools/list_changed", ListKind::Tools, 1),
    ("notifications/resources/list_changed", ListKind::Resources, 1 << 1),
    ("notifications/prompts/list_changed", ListKind::Prompts, 1 << 2),
];

impl Offered {
    pub(crate) fn own(&self) -> Option<Arc<Listing>> {
        self.own.load_full()
    }
}

impl Connection {
    /// Handles a `list_changed` notification. At most one reread runs at a time.
    pub(crate) fn announced(self: &Arc<Self>, method: &str) {
        let bit = KINDS.iter().find(|(known, ..)| *known == method).map_or(OTHER_REASON, |(.., bit)| *bit);
        self.list_again(bit);
    }

    /// Rereads the lists because they may have changed.
    pub(crate) fn doubt_lists(self: &Arc<Self>) {
        self.list_again(OTHER_REASON);
    }

    fn list_again(self: &Arc<Self>, bit: u8) {
        self.offered.said.fetch_or(bit, Ordering::AcqRel);
        if !self.offered.is_followed.swap(true, Ordering::AcqRel) {
            (self.notices)(Notice::ListChanged(Arc::clone(self)));
        }
    }

    /// Returns the sessions that use this connection.
    fn sessions(&self) -> Vec<SessionId> {
        match &self.purpose {
            Purpose::Owned(session) => vec![session.id],
            Purpose::Shared | Purpose::Lists => self.users.lock().iter().copied().collect(),
        }
    }
}

impl Inner {
    /// Returns the listing of one session, where it differs from the common one.
    pub(crate) fn own_listing(&self, session: SessionId) -> Option<Arc<Listing>> {
        let owned = self.owned.lock().get(&session).cloned();
        let connection = match owned {
            Some(slot) => slot.live()?,
            None => self.shared.live().filter(|shared| shared.users.lock().contains(&session))?,
        };
        connection.offered.own()
    }

    /// Announces the session listing of a connection that has become live.
    pub(crate) fn tell_own(&self, connection: &Connection) {
        if connection.offered.own().is_some() {
            (self.listener)(Event::OwnListChanged { sessions: connection.sessions() });
        }
    }

    /// Rereads the lists of a connection as long as the server announces changes, at a limited rate.
    pub(crate) async fn follow_lists(self: Arc<Self>, connection: Arc<Connection>) {
        let offered = &connection.offered;
        let longest = self.environment.limits.list_ttl;
        loop {
            let wait = offered.pace.lock().wait(Instant::now());
            tokio::select! {
                () = connection.closed.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
            // Announced during the handshake: no request can be sent yet.
            if connection.welcome().is_none() {
                continue;
            }
            let said = offered.said.swap(0, Ordering::AcqRel);
            if said == 0 {
                // A swap, so that an announcement from here on starts a new task.
                offered.is_followed.swap(false, Ordering::AcqRel);
                let late = offered.said.load(Ordering::Acquire) != 0;
                if late && !offered.is_followed.swap(true, Ordering::AcqRel) {
                    continue;
                }
                return;
            }
            let is_new = self.read_again(&connection, said).await;
            offered.pace.lock().read(Instant::now(), is_new, longest);
        }
    }

    /// Rereads the lists. Returns `true` if they changed.
    async fn read_again(self: &Arc<Self>, connection: &Arc<Connection>, said: u8) -> bool {
        let listing = match self.read_lists(connection).await {
            Ok(listing) => listing,
            Err(error) => {
                tracing::debug!(
                    module = &*self.definition.name,
                    error = error.guarded(),
                    "lists were not read"
                );
                if connection.is_stateless() {
                    self.doubt(connection, &error);
                }
                return false;
            }
        };
        let is_everybodys = self.is_everybodys(connection);
        let is_new = if is_everybodys {
            let is_new = self.keep(listing);
            if is_new {
                self.changed_while_running.store(true, Ordering::Relaxed);
            }
            is_new
        } else {
            self.offer(connection, listing)
        };
        let named = KINDS.iter().filter(|(.., bit)| said & bit != 0);
        let kinds: Vec<ListKind> = named.map(|(_, kind, _)| *kind).collect();
        // The announcement is relayed even so: a tool may have come and gone.
        if !is_new && !kinds.is_empty() {
            let sessions = (!is_everybodys).then(|| connection.sessions());
            (self.listener)(Event::ListAnnounced { kinds, sessions });
        }
        is_new
    }

    /// Returns `true` if the lists of this connection apply to all sessions.
    fn is_everybodys(&self, connection: &Connection) -> bool {
        let for_all = self.definition.share == Share::Always || !self.asks_back.load(Ordering::Relaxed);
        matches!(connection.purpose, Purpose::Shared) && (for_all || connection.is_stateless())
    }

    /// Stores the listing of a connection if it differs from the common one. Returns `true` if it changed.
    fn offer(self: &Arc<Self>, connection: &Arc<Connection>, listing: Listing) -> bool {
        let common = self.listing.load_full();
        let own = match common {
            Some(common) if common.same_offer(&listing) => None,
            Some(common) => self.leaning(connection, listing, &common),
            None => Some(Arc::new(listing)),
        };
        let before = connection.offered.own.swap(own.clone());
        let is_same = match (&before, &own) {
            (Some(before), Some(own)) => Arc::ptr_eq(before, own) || before.same_offer(own),
            (before, own) => before.is_none() && own.is_none(),
        };
        if is_same {
            return false;
        }
        if own.is_some() && !connection.offered.is_watched.swap(true, Ordering::Relaxed) {
            let (inner, connection) = (Arc::downgrade(self), Arc::clone(connection));
            self.tasks.spawn(async move {
                connection.closed.cancelled().await;
                connection.offered.own.store(None);
                if let Some(inner) = inner.upgrade() {
                    (inner.listener)(Event::OwnListChanged { sessions: connection.sessions() });
                }
            });
        }
        (self.listener)(Event::OwnListChanged { sessions: connection.sessions() });
        // The change may apply to everybody; checking a remote server costs no process.
        if !self.definition.transport.is_stdio() {
            self.stale.notify_one();
        }
        true
    }

    /// Shares equal items with the common listing and copies the others out of their buffer. Returns `None` if the
    /// sessions of this caller exceed the list budget of one server.
    fn leaning(
        &self,
        connection: &Connection,
        mut listing: Listing,
        common: &Listing,
    ) -> Option<Arc<Listing>> {
        let mut hasher = DefaultHasher::new();
        let mut bytes = 0;
        for kind in ListKind::ALL {
            let known: HashMap<&str, &Item> =
                common.of(kind).iter().map(|item| (&*item.name, item)).collect();
            for item in listing.of_mut(kind) {
                match known.get(&*item.name).filter(|known| known.raw == item.raw) {
                    Some(known) => *item = Item::clone(known),
                    None => {
                        *item = Item { name: Arc::clone(&item.name), raw: item.raw.copied() };
                        bytes += item.raw.bytes().len();
                        item.raw.bytes().hash(&mut hasher);
                    }
                }
                item.name.hash(&mut hasher);
            }
        }
        if bytes + self.own_bytes(connection, common) > self.environment.limits.list_bytes {
            tracing::warn!(
                module = &*self.definition.name,
                "sessions of one caller are offered too much of their own (`limits.list_bytes`); this one sees the shared list"
            );
            return None;
        }
        Some(self.kept_once(hasher.finish(), listing))
    }

    /// Returns the bytes that other sessions of the same caller use beyond the common listing.
    fn own_bytes(&self, connection: &Connection, common: &Listing) -> usize {
        let Purpose::Owned(session) = &connection.purpose else { return 0 };
        let slots: Vec<_> = self.owned.lock().values().cloned().collect();
        let is_theirs = |slot: &Arc<Slot>| match &slot.purpose {
            Purpose::Owned(other) => other.id != session.id && other.caller.subject == session.caller.subject,
            Purpose::Shared | Purpose::Lists => false,
        };
        let lists = slots.iter().filter(|slot| is_theirs(slot)).filter_map(|slot| slot.live()?.offered.own());
        let mut seen: Vec<Arc<Listing>> = Vec::new();
        for list in lists {
            if !seen.iter().any(|known| Arc::ptr_eq(known, &list)) {
                seen.push(list);
            }
        }
        seen.iter().map(|list| bytes_beside(list, common)).sum()
    }

    fn kept_once(&self, hash: u64, listing: Listing) -> Arc<Listing> {
        let mut lists = self.own_lists.lock();
        if let Some(known) =
            lists.get(&hash).and_then(Weak::upgrade).filter(|known| known.same_offer(&listing))
        {
            return known;
        }
        lists.retain(|_, list| list.strong_count() > 0);
        let listing = Arc::new(listing);
        lists.insert(hash, Arc::downgrade(&listing));
        listing
    }

    /// Drops session listings that equal the new common listing.
    pub(crate) fn forget_common(&self, common: &Listing) {
        let slots: Vec<_> = self.owned.lock().values().cloned().chain([Arc::clone(&self.shared)]).collect();
        for connection in slots.iter().filter_map(|slot| slot.standing()) {
            if connection.offered.own().is_some_and(|own| own.same_offer(common)) {
                connection.offered.own.store(None);
            }
        }
    }
}

fn bytes_beside(own: &Listing, common: &Listing) -> usize {
    let beside = |kind: ListKind| {
        let known: HashMap<&str, &Item> = common.of(kind).iter().map(|item| (&*item.name, item)).collect();
        let differs = move |item: &&Item| known.get(&*item.name).is_none_or(|known| known.raw != item.raw);
        own.of(kind).iter().filter(differs).map(|item| item.raw.bytes().len()).sum::<usize>()
    };
    ListKind::ALL.into_iter().map(beside).sum()
}

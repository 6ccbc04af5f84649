//! Lists that change while a server runs. They are read where the change was said: on the connection of that session.
//! What is read over a connection that all sessions share counts for everybody; what only one session is offered is kept
//! beside its connection, and goes with it.

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

/// What a connection knows of the lists behind it.
#[derive(Debug, Default)]
pub(crate) struct Offered {
    /// Lists that are to be read again: a bit for each kind that the server named, and one for any other reason.
    said: AtomicU8,
    /// Whether somebody is about to read them.
    is_followed: AtomicBool,
    pace: Mutex<Pace>,
    /// What is offered here and is not what everybody is offered.
    own: ArcSwapOption<Listing>,
    /// Whether somebody waits for the end of the connection, with which `own` ends.
    is_watched: AtomicBool,
}

/// Lists of single sessions that are in use, so that equal ones are kept once.
pub(crate) type OwnLists = Mutex<HashMap<u64, Weak<Listing>>>;

const OTHER_REASON: u8 = 1 << 7;

/// The lists a server may say to have changed.
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
    /// The server says that a list changed. However often it does, one reading is under way at most.
    pub(crate) fn announced(self: &Arc<Self>, method: &str) {
        let bit = KINDS.iter().find(|(known, ..)| *known == method).map_or(OTHER_REASON, |(.., bit)| *bit);
        self.list_again(bit);
    }

    /// The lists may have changed, for all that is known.
    pub(crate) fn doubt_lists(self: &Arc<Self>) {
        self.list_again(OTHER_REASON);
    }

    fn list_again(self: &Arc<Self>, bit: u8) {
        self.offered.said.fetch_or(bit, Ordering::AcqRel);
        if !self.offered.is_followed.swap(true, Ordering::AcqRel) {
            (self.notices)(Notice::ListChanged(Arc::clone(self)));
        }
    }

    /// The sessions whose calls it carries.
    fn sessions(&self) -> Vec<SessionId> {
        match &self.purpose {
            Purpose::Owned(session) => vec![session.id],
            Purpose::Shared | Purpose::Lists => self.users.lock().iter().copied().collect(),
        }
    }
}

impl Inner {
    /// What one session is offered, where that differs from the rest.
    pub(crate) fn own_listing(&self, session: SessionId) -> Option<Arc<Listing>> {
        let owned = self.owned.lock().get(&session).cloned();
        let connection = match owned {
            Some(slot) => slot.live()?,
            None => self.shared.live().filter(|shared| shared.users.lock().contains(&session))?,
        };
        connection.offered.own()
    }

    /// A connection took its place: what it already offers is seen from now on.
    pub(crate) fn tell_own(&self, connection: &Connection) {
        if connection.offered.own().is_some() {
            (self.listener)(Event::OwnListChanged { sessions: connection.sessions() });
        }
    }

    /// Reads the lists behind a connection as long as its server says that they change, at a bounded pace.
    pub(crate) async fn follow_lists(self: Arc<Self>, connection: Arc<Connection>) {
        let offered = &connection.offered;
        let longest = self.environment.limits.list_ttl;
        loop {
            let wait = offered.pace.lock().wait(Instant::now());
            tokio::select! {
                () = connection.closed.cancelled() => return,
                () = tokio::time::sleep(wait) => {}
            }
            // Said while it was being opened: there is nobody to ask yet.
            if connection.welcome().is_none() {
                continue;
            }
            let said = offered.said.swap(0, Ordering::AcqRel);
            if said == 0 {
                // Read and written at once: what is said from here on finds that nobody follows.
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

    /// Whether what was read is something new.
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
        // What it said was true when it said it: a tool may have come and gone.
        if !is_new && !kinds.is_empty() {
            let sessions = (!is_everybodys).then(|| connection.sessions());
            (self.listener)(Event::ListAnnounced { kinds, sessions });
        }
        is_new
    }

    /// Whether what is offered over a connection is what everybody is shown.
    fn is_everybodys(&self, connection: &Connection) -> bool {
        let for_all = self.definition.share == Share::Always || !self.asks_back.load(Ordering::Relaxed);
        matches!(connection.purpose, Purpose::Shared) && (for_all || connection.is_stateless())
    }

    /// Remembers what a connection offers, if that is not what everybody is offered; whether it is something new.
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
        // It may be news for everybody; to look costs no process where the server is elsewhere.
        if !self.definition.transport.is_stdio() {
            self.stale.notify_one();
        }
        true
    }

    /// The listing with its own items apart from the buffer they came in, and the rest lent by the common one. `None`
    /// if the sessions of this caller are offered more than one server may offer.
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

    /// Bytes of what other sessions of the same caller are offered beside the common listing.
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

    /// There is another common listing: who is offered just that is offered nothing of its own.
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

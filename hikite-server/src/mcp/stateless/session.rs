//! Pooled sessions for stateless requests, because sources are built on sessions. A session carries one call at a time,
//! so messages of a server belong to that call. It is reused by later requests of the same caller with the same
//! capabilities, and with it the upstream connections of that session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hikite_core::caller::{Caller, ClientCapabilities, Session, SessionId};
use hikite_core::error::Error;
use hikite_core::limits::Limits;
use hikite_core::log_level::LogLevel;
use hikite_core::share::{Allowance, ShareHolder};
use hikite_gateway::share::{SharedSlot, SharedSlots, SlotKind, SlotUsage};
use hikite_gateway::{Delivery, Inbox, SessionRegistration, Surfaces};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::app::App;

#[derive(Debug)]
pub(crate) struct StatelessSessions {
    free: Mutex<HashMap<SessionKey, Vec<StatelessSession>>>,
    /// All sessions, free or in use. Consulted when one is opened, not when one is reused.
    places: SharedSlots<Arc<SlotState>>,
}

/// The slot of a pooled session.
#[derive(Debug)]
struct SlotState {
    key: SessionKey,
    id: SessionId,
    opened: Instant,
    /// Milliseconds after `opened` at which the session became free; `IN_USE` while it is leased.
    free_since: AtomicU64,
    /// Set when the session has lost its slot; it is closed once it is free.
    is_evicted: AtomicBool,
}

const IN_USE: u64 = u64::MAX;

const KIND: SlotKind = SlotKind {
    resource: "stateless_sessions",
    limit: "sessions",
    things: "requests running or waiting for their client",
};

impl SlotState {
    fn idle_since(&self) -> Option<Instant> {
        let since = self.free_since.load(Ordering::Relaxed);
        (since != IN_USE).then(|| self.opened + Duration::from_millis(since))
    }
}

/// The pool key: sessions are shared by requests with the same caller and capabilities.
pub(crate) type SessionKey = (Caller, ClientCapabilities);

#[derive(Debug)]
struct StatelessSession {
    session: Arc<Session>,
    /// The log level that was last sent to the sources.
    level: Option<LogLevel>,
    last_used: Instant,
    /// Set if a server may be running a task for this session, which needs its connections longer.
    has_tasks: bool,
    /// Leaves the gateway on drop, so that sources release the session.
    _joined: SessionRegistration,
    slot: Arc<SlotState>,
    _place: SharedSlot<Arc<SlotState>>,
}

/// Maximum free sessions per key; the rest is closed after a burst, together with its upstream connections.
const FREE_MAX: usize = 8;

/// A session in use; returned to the pool on drop.
#[derive(Debug)]
pub(crate) struct StatelessLease {
    pub(crate) session: Arc<Session>,
    app: Arc<App>,
    pooled: Option<StatelessSession>,
    /// Set when the server has finished the call. If not, a late message of the server could be attributed to the next
    /// call, so the session is discarded.
    answered: bool,
}

/// An inbox that drops all messages: a stateless client reads nothing between its requests.
struct DiscardInbox;

impl Inbox for DiscardInbox {
    fn deliver(&self, _: Delivery) {}
}

impl StatelessSessions {
    pub(crate) fn new(limits: &Limits) -> Self {
        let allowance = Allowance::of(limits.sessions, limits.caller_share);
        Self { free: Mutex::default(), places: SharedSlots::new(KIND, allowance) }
    }

    pub(crate) fn usage(&self) -> SlotUsage {
        self.places.usage()
    }

    /// Leases a session, the most recently used first, so that consecutive calls share upstream connections.
    pub(crate) fn lease(app: &Arc<App>, key: SessionKey, surfaces: Surfaces) -> Result<StatelessLease, Error> {
        let free = app.stateless_sessions.free.lock().get_mut(&key).and_then(Vec::pop);
        let pooled = match free {
            Some(pooled) => pooled,
            None => Self::open(app, key, surfaces)?,
        };
        pooled.slot.free_since.store(IN_USE, Ordering::Relaxed);
        let session = Arc::clone(&pooled.session);
        Ok(StatelessLease { session, app: Arc::clone(app), pooled: Some(pooled), answered: false })
    }

    /// Returns the session whose lists a client sees: that of its next call, if there is one.
    pub(crate) fn next_session(&self, key: &SessionKey) -> Option<Arc<Session>> {
        let free = self.free.lock();
        free.get(key).and_then(|stateless_sessions| stateless_sessions.last()).map(|pooled| Arc::clone(&pooled.session))
    }

    fn open(app: &Arc<App>, key: SessionKey, surfaces: Surfaces) -> Result<StatelessSession, Error> {
        let (id, opened) = (app.next_session(), Instant::now());
        let (free_since, is_evicted) = (AtomicU64::new(IN_USE), AtomicBool::new(false));
        let slot = Arc::new(SlotState { key: key.clone(), id, opened, free_since, is_evicted });
        let holder = ShareHolder::from(&key.0);
        let (place, out) =
            app.stateless_sessions.places.take(&holder, Arc::clone(&slot), |slot, _| slot.idle_since())?;
        if let Some(out) = out {
            app.stateless_sessions.evict(&out);
        }
        let (caller, client_capabilities) = key;
        let session = Arc::new(Session { id, caller, client_capabilities });
        let inbox: Weak<dyn Inbox> = Weak::<DiscardInbox>::new();
        let joined = app.gateway.sessions().join(Arc::clone(&session), surfaces, inbox);
        let (level, has_tasks) = (None, false);
        Ok(StatelessSession { session, level, last_used: opened, has_tasks, _joined: joined, slot, _place: place })
    }

    /// Closes a session that has lost its slot, or marks it to be closed once it is free.
    fn evict(&self, slot: &SlotState) {
        slot.is_evicted.store(true, Ordering::Relaxed);
        let closed = {
            let mut free = self.free.lock();
            let stateless_sessions = free.get_mut(&slot.key);
            let closed = stateless_sessions.and_then(|stateless_sessions| {
                let at = stateless_sessions.iter().position(|pooled| pooled.slot.id == slot.id)?;
                Some(stateless_sessions.remove(at))
            });
            if free.get(&slot.key).is_some_and(Vec::is_empty) {
                free.remove(&slot.key);
            }
            closed
        };
        // Dropped outside the lock, because all sources are notified.
        drop(closed);
    }

    /// Closes the sessions that were last used before `before`.
    pub(crate) fn expire(&self, before: Instant) {
        let mut closed = Vec::new();
        self.free.lock().retain(|_, stateless_sessions| {
            closed.extend(stateless_sessions.extract_if(.., |pooled| pooled.last_used < before));
            !stateless_sessions.is_empty()
        });
        // Dropped outside the lock, because all sources are notified.
        drop(closed);
    }

    pub(crate) fn clear(&self) {
        let closed = std::mem::take(&mut *self.free.lock());
        drop(closed);
    }
}

impl StatelessLease {
    /// Marks the call as finished by the server, so that the session can be reused.
    pub(crate) fn answered(&mut self) {
        self.answered = true;
    }

    /// Marks the session as having a task.
    pub(crate) fn has_task(&mut self) {
        if let Some(pooled) = &mut self.pooled {
            pooled.has_tasks = true;
        }
    }

    /// Returns `true` if this log level must be sent to the sources.
    pub(crate) fn changes_level(&mut self, level: Option<LogLevel>) -> bool {
        let Some(pooled) = self.pooled.as_mut().filter(|_| level.is_some()) else { return false };
        let changes = pooled.level != level;
        pooled.level = level;
        changes
    }
}

impl Drop for StatelessLease {
    fn drop(&mut self) {
        let Some(mut pooled) = self.pooled.take() else { return };
        if !self.answered || self.app.stopping.is_cancelled() || pooled.slot.is_evicted.load(Ordering::Relaxed) {
            return;
        }
        pooled.last_used = Instant::now();
        let since = pooled.last_used.duration_since(pooled.slot.opened).as_millis();
        pooled.slot.free_since.store(u64::try_from(since).unwrap_or(IN_USE - 1), Ordering::Relaxed);
        let key = (pooled.session.caller.clone(), pooled.session.client_capabilities.clone());
        let over = {
            let mut stateless_sessions = self.app.stateless_sessions.free.lock();
            let free = stateless_sessions.entry(key).or_default();
            free.push(pooled);
            let oldest = free.iter().position(|pooled| !pooled.has_tasks).filter(|_| free.len() > FREE_MAX);
            oldest.map(|oldest| free.remove(oldest))
        };
        // Dropped outside the lock, because all sources are notified.
        drop(over);
    }
}

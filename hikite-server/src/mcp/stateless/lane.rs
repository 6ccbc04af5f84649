//! Pooled sessions for stateless requests, because sources are built on sessions. A session carries one call at a time,
//! so messages of a server belong to that call. It is reused by later requests of the same caller with the same
//! capabilities, and with it the upstream connections of that session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use hikite_core::caller::{Abilities, Caller, Session, SessionId};
use hikite_core::error::Error;
use hikite_core::level::Level;
use hikite_core::limits::Limits;
use hikite_core::share::{Allowance, ShareHolder};
use hikite_gateway::share::{Place, PlaceKind, Places, Usage};
use hikite_gateway::{Delivery, Inbox, Joined, Surfaces};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::app::App;

#[derive(Debug)]
pub(crate) struct Lanes {
    free: Mutex<HashMap<Likeness, Vec<Lane>>>,
    /// All sessions, free or in use. Consulted when one is opened, not when one is reused.
    places: Places<Arc<Mark>>,
}

/// The slot of a pooled session.
#[derive(Debug)]
struct Mark {
    likeness: Likeness,
    id: SessionId,
    opened: Instant,
    /// Milliseconds after `opened` at which the session became free; `IN_USE` while it is leased.
    free_since: AtomicU64,
    /// Set when the session has lost its slot; it is closed once it is free.
    is_evicted: AtomicBool,
}

const IN_USE: u64 = u64::MAX;

const KIND: PlaceKind = PlaceKind {
    resource: "stateless_sessions",
    limit: "sessions",
    things: "requests running, or waiting for their client",
};

impl Mark {
    fn idle_since(&self) -> Option<Instant> {
        let since = self.free_since.load(Ordering::Relaxed);
        (since != IN_USE).then(|| self.opened + Duration::from_millis(since))
    }
}

/// The pool key: sessions are shared by requests with the same caller and capabilities.
pub(crate) type Likeness = (Caller, Abilities);

#[derive(Debug)]
struct Lane {
    session: Arc<Session>,
    /// The log level that was last sent to the sources.
    level: Option<Level>,
    last_used: Instant,
    /// Set if a server may be running a task for this session, which needs its connections longer.
    has_tasks: bool,
    /// Leaves the gateway on drop, so that sources release the session.
    _joined: Joined,
    mark: Arc<Mark>,
    _place: Place<Arc<Mark>>,
}

/// Maximum free sessions per key; the rest is closed after a burst, together with its upstream connections.
const FREE: usize = 8;

/// A session in use; returned to the pool on drop.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) session: Arc<Session>,
    app: Arc<App>,
    lane: Option<Lane>,
    /// Set when the server has finished the call. If not, a late message of the server could be attributed to the next
    /// call, so the session is discarded.
    answered: bool,
}

/// An inbox that drops all messages: a stateless client reads nothing between its requests.
struct Nobody;

impl Inbox for Nobody {
    fn deliver(&self, _: Delivery) {}
}

impl Lanes {
    pub(crate) fn new(limits: &Limits) -> Self {
        let allowance = Allowance::of(limits.sessions, limits.caller_share);
        Self { free: Mutex::default(), places: Places::new(KIND, allowance) }
    }

    pub(crate) fn usage(&self) -> Usage {
        self.places.usage()
    }

    /// Leases a session, the most recently used first, so that consecutive calls share upstream connections.
    pub(crate) fn lease(app: &Arc<App>, likeness: Likeness, surfaces: Surfaces) -> Result<Lease, Error> {
        let free = app.lanes.free.lock().get_mut(&likeness).and_then(Vec::pop);
        let lane = match free {
            Some(lane) => lane,
            None => Self::open(app, likeness, surfaces)?,
        };
        lane.mark.free_since.store(IN_USE, Ordering::Relaxed);
        let session = Arc::clone(&lane.session);
        Ok(Lease { session, app: Arc::clone(app), lane: Some(lane), answered: false })
    }

    /// Returns the session whose lists a client sees: that of its next call, if there is one.
    pub(crate) fn next_session(&self, likeness: &Likeness) -> Option<Arc<Session>> {
        let free = self.free.lock();
        free.get(likeness).and_then(|lanes| lanes.last()).map(|lane| Arc::clone(&lane.session))
    }

    fn open(app: &Arc<App>, likeness: Likeness, surfaces: Surfaces) -> Result<Lane, Error> {
        let (id, opened) = (app.next_session(), Instant::now());
        let (free_since, is_evicted) = (AtomicU64::new(IN_USE), AtomicBool::new(false));
        let mark = Arc::new(Mark { likeness: likeness.clone(), id, opened, free_since, is_evicted });
        let holder = ShareHolder::from(&likeness.0);
        let (place, out) = app.lanes.places.take(&holder, Arc::clone(&mark), |mark, _| mark.idle_since())?;
        if let Some(out) = out {
            app.lanes.evict(&out);
        }
        let (caller, abilities) = likeness;
        let session = Arc::new(Session { id, caller, abilities });
        let nobody: Weak<dyn Inbox> = Weak::<Nobody>::new();
        let joined = app.gateway.join(Arc::clone(&session), surfaces, nobody);
        let (level, has_tasks) = (None, false);
        Ok(Lane { session, level, last_used: opened, has_tasks, _joined: joined, mark, _place: place })
    }

    /// Closes a session that has lost its slot, or marks it to be closed once it is free.
    fn evict(&self, mark: &Mark) {
        mark.is_evicted.store(true, Ordering::Relaxed);
        let gone = {
            let mut free = self.free.lock();
            let lanes = free.get_mut(&mark.likeness);
            let gone = lanes.and_then(|lanes| {
                let at = lanes.iter().position(|lane| lane.mark.id == mark.id)?;
                Some(lanes.remove(at))
            });
            if free.get(&mark.likeness).is_some_and(Vec::is_empty) {
                free.remove(&mark.likeness);
            }
            gone
        };
        // Dropped outside the lock, because all sources are notified.
        drop(gone);
    }

    /// Closes the sessions that were last used before `before`.
    pub(crate) fn expire(&self, before: Instant) {
        let mut gone = Vec::new();
        self.free.lock().retain(|_, lanes| {
            gone.extend(lanes.extract_if(.., |lane| lane.last_used < before));
            !lanes.is_empty()
        });
        // Dropped outside the lock, because all sources are notified.
        drop(gone);
    }

    pub(crate) fn clear(&self) {
        let gone = std::mem::take(&mut *self.free.lock());
        drop(gone);
    }
}

impl Lease {
    /// Marks the call as finished by the server, so that the session can be reused.
    pub(crate) fn answered(&mut self) {
        self.answered = true;
    }

    /// Marks the session as having a task.
    pub(crate) fn has_task(&mut self) {
        if let Some(lane) = &mut self.lane {
            lane.has_tasks = true;
        }
    }

    /// Returns `true` if this log level must be sent to the sources.
    pub(crate) fn changes_level(&mut self, level: Option<Level>) -> bool {
        let Some(lane) = self.lane.as_mut().filter(|_| level.is_some()) else { return false };
        let changes = lane.level != level;
        lane.level = level;
        changes
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let Some(mut lane) = self.lane.take() else { return };
        if !self.answered || self.app.stopping.is_cancelled() || lane.mark.is_evicted.load(Ordering::Relaxed)
        {
            return;
        }
        lane.last_used = Instant::now();
        let since = lane.last_used.duration_since(lane.mark.opened).as_millis();
        lane.mark.free_since.store(u64::try_from(since).unwrap_or(IN_USE - 1), Ordering::Relaxed);
        let likeness = (lane.session.caller.clone(), lane.session.abilities.clone());
        let over = {
            let mut lanes = self.app.lanes.free.lock();
            let free = lanes.entry(likeness).or_default();
            free.push(lane);
            let oldest = free.iter().position(|lane| !lane.has_tasks).filter(|_| free.len() > FREE);
            oldest.map(|oldest| free.remove(oldest))
        };
        // Dropped outside the lock, because all sources are notified.
        drop(over);
    }
}

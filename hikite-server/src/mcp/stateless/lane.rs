//! Who stands behind stateless requests, for the sources, which think in sessions: a lane carries one call at a
//! time, so that what a server sends belongs to that call and no other. Lanes are used again by later requests
//! of the same caller with the same abilities, and with them the connections that servers keep for a session.

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
    /// Lanes there are, free or in use. Asked when one is opened, not when one is used again.
    places: Places<Arc<Mark>>,
}

/// A lane as the table of places sees it.
#[derive(Debug)]
struct Mark {
    likeness: Likeness,
    id: SessionId,
    opened: Instant,
    /// Milliseconds after `opened` since which it is free; `IN_USE` if it is not.
    free_since: AtomicU64,
    /// It has lost its place: when it is free again, it goes.
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

/// What callers of one lane have in common.
pub(crate) type Likeness = (Caller, Abilities);

#[derive(Debug)]
struct Lane {
    session: Arc<Session>,
    /// The log level that the sources were last told.
    level: Option<Level>,
    last_used: Instant,
    /// A server may be at a task of this lane: its connections are needed longer.
    has_tasks: bool,
    /// Its end tells the sources to let go.
    _joined: Joined,
    mark: Arc<Mark>,
    _place: Place<Arc<Mark>>,
}

/// Free lanes that are kept of one kind; after a rush the rest goes, and with it what servers keep for them.
const FREE: usize = 8;

/// A lane in use; it is free again when this is dropped.
#[derive(Debug)]
pub(crate) struct Lease {
    pub(crate) session: Arc<Session>,
    app: Arc<App>,
    lane: Option<Lane>,
    /// Whether the server is done with the call. Else it may still ask for it, and the next call on the lane would
    /// be taken for the one that is meant.
    answered: bool,
}

/// Nobody listens between the requests of a client without a session.
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

    /// The lane used last is taken first: calls that follow one another meet the same connections.
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

    /// The session whose lists a client of this kind sees: that of its next call, as far as that is known.
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

    /// Lets go of a lane that has lost its place: at once if it is free, else when it is.
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
        // Outside the lock: its end is told to every source.
        drop(gone);
    }

    /// Lets go of lanes that have not been used since `before`.
    pub(crate) fn expire(&self, before: Instant) {
        let mut gone = Vec::new();
        self.free.lock().retain(|_, lanes| {
            gone.extend(lanes.extract_if(.., |lane| lane.last_used < before));
            !lanes.is_empty()
        });
        // Outside the lock: their end is told to every source.
        drop(gone);
    }

    pub(crate) fn clear(&self) {
        let gone = std::mem::take(&mut *self.free.lock());
        drop(gone);
    }
}

impl Lease {
    /// The server has answered the call: the lane is free for the next.
    pub(crate) fn answered(&mut self) {
        self.answered = true;
    }

    /// The call became a task.
    pub(crate) fn has_task(&mut self) {
        if let Some(lane) = &mut self.lane {
            lane.has_tasks = true;
        }
    }

    /// Whether the sources have to be told this level.
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
        // Outside the lock: its end is told to every source.
        drop(over);
    }
}

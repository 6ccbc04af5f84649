//! Who stands behind stateless requests, for the sources, which think in sessions: a lane carries one call at a
//! time, so that what a server sends belongs to that call and no other. Lanes are used again by later requests
//! of the same caller with the same abilities, and with them the connections that servers keep for a session.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};

use hikite_core::caller::{Abilities, Caller, Session};
use hikite_core::error::{Error, Kind};
use hikite_core::level::Level;
use hikite_gateway::{Delivery, Inbox, Joined, Surfaces};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::app::App;

#[derive(Debug, Default)]
pub(crate) struct Lanes {
    free: Mutex<HashMap<Likeness, Vec<Lane>>>,
    /// Lanes there are, free or in use.
    count: Arc<AtomicUsize>,
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
    _counted: Counted,
}

/// One more lane, as long as it lives.
#[derive(Debug)]
struct Counted(Arc<AtomicUsize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
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
    /// The lane used last is taken first: calls that follow one another meet the same connections.
    pub(crate) fn lease(app: &Arc<App>, likeness: Likeness, surfaces: Surfaces) -> Result<Lease, Error> {
        let free = app.lanes.free.lock().get_mut(&likeness).and_then(Vec::pop);
        let lane = match free {
            Some(lane) => lane,
            None => Self::open(app, likeness, surfaces)?,
        };
        let session = Arc::clone(&lane.session);
        Ok(Lease { session, app: Arc::clone(app), lane: Some(lane), answered: false })
    }

    fn open(app: &Arc<App>, (caller, abilities): Likeness, surfaces: Surfaces) -> Result<Lane, Error> {
        if app.lanes.count.load(Ordering::Relaxed) >= app.limits.sessions && !app.lanes.make_room() {
            return Err(Error::new(Kind::Overloaded, "too many requests are running").hint("try again later"));
        }
        app.lanes.count.fetch_add(1, Ordering::Relaxed);
        let counted = Counted(Arc::clone(&app.lanes.count));
        let session = Arc::new(Session { id: app.next_session(), caller, abilities });
        let nobody: Weak<dyn Inbox> = Weak::<Nobody>::new();
        let joined = app.gateway.join(Arc::clone(&session), surfaces, nobody);
        let last_used = Instant::now();
        Ok(Lane { session, level: None, last_used, has_tasks: false, _joined: joined, _counted: counted })
    }

    /// Lets go of some free lane; whether there was one.
    fn make_room(&self) -> bool {
        let gone = self.free.lock().values_mut().find_map(Vec::pop);
        gone.is_some()
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
        if !self.answered || self.app.stopping.is_cancelled() {
            return;
        }
        lane.last_used = Instant::now();
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

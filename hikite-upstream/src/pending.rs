//! The requests we have sent on one connection and not yet seen answered.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hikite_core::caller::SessionId;
use hikite_core::error::Error;
use hikite_core::json::Raw;
use hikite_core::source::CallContext;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The upstream's answer: its result, or its error object.
pub(crate) type Answer = Result<Raw, Raw>;
/// An answer, or why none can be taken.
pub(crate) type Outcome = Result<Answer, Error>;

#[derive(Debug, Default)]
pub(crate) struct Pending {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// Set together with the check that nothing waits; read under the same lock.
    closed: AtomicBool,
    /// Requests whose caller no longer waits, while the server may still be at them.
    abandoned: Mutex<Abandoned>,
}

#[derive(Debug, Default)]
struct Abandoned {
    by_id: HashMap<u64, SessionId>,
    /// More were abandoned than are kept: from then on nothing can be told apart.
    lost_count: bool,
}

/// Abandoned requests that are kept.
const ABANDONED: usize = 1024;

#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Outcome>,
    context: Option<CallContext>,
    counts: bool,
    /// Whether the server has the request and wants to hear that nobody waits for its answer any more.
    cancellable: bool,
    /// Fires when the request is answered or given up; its questions end with it.
    over: CancellationToken,
    _fires: DropGuard,
}

/// A call that is running, as far as what the server sends meanwhile concerns it.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) context: CallContext,
    pub(crate) over: CancellationToken,
}

impl Waiting {
    fn call(&self) -> Option<Call> {
        Some(Call { context: self.context.clone()?, over: self.over.clone() })
    }
}

impl Pending {
    /// Makes room for one more request: its id, and where its answer will be. `None` once closed.
    /// One that does not count may wait while the connection is idle.
    pub(crate) fn open(
        &self,
        context: Option<CallContext>,
        counts: bool,
    ) -> Option<(u64, oneshot::Receiver<Outcome>)> {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        if self.closed.load(Ordering::Relaxed) {
            return None;
        }
        let over = CancellationToken::new();
        let fires = over.clone().drop_guard();
        let cancellable = false;
        waiting.insert(id, Waiting { answer: sender, context, counts, cancellable, over, _fires: fires });
        Some((id, answer))
    }

    /// The request is on its way: if it is given up, its server hears of it.
    pub(crate) fn cancellable(&self, id: u64) {
        if let Some(waiting) = self.waiting.lock().get_mut(&id) {
            waiting.cancellable = true;
        }
    }

    pub(crate) fn settle(&self, id: u64, answer: Answer) -> bool {
        self.end(id, Ok(answer))
    }

    /// The answer came and cannot be taken.
    pub(crate) fn fail(&self, id: u64, error: Error) {
        self.end(id, Err(error));
    }

    fn end(&self, id: u64, outcome: Outcome) -> bool {
        let waiting = self.waiting.lock().remove(&id);
        if waiting.is_none() {
            self.abandoned.lock().by_id.remove(&id);
        }
        waiting.is_some_and(|waiting| waiting.answer.send(outcome).is_ok())
    }

    pub(crate) fn call(&self, id: u64) -> Option<Call> {
        self.waiting.lock().get(&id)?.call()
    }

    /// The newest call of the only session that has calls running; `None` when there is none or several, or
    /// when the server may still be at work for somebody who no longer waits.
    pub(crate) fn sole_caller(&self) -> Option<Call> {
        let waiting = self.waiting.lock();
        let calls = waiting.iter().filter_map(|(id, w)| Some((*id, w, w.context.as_ref()?.session.id)));
        let sessions: HashSet<SessionId> = calls.clone().map(|(_, _, session)| session).collect();
        if sessions.len() != 1 || sessions.iter().any(|session| self.works_for_others(*session)) {
            return None;
        }
        let several = calls.clone().nth(1).is_some();
        let newest = calls.max_by_key(|(id, ..)| *id).and_then(|(_, waiting, _)| waiting.call())?;
        // Of several calls it may be another that asks; the end of the newest is then no end of the question.
        Some(if several { Call { over: CancellationToken::new(), ..newest } } else { newest })
    }

    /// Whether a call that another session gave up may still be running.
    pub(crate) fn works_for_others(&self, session: SessionId) -> bool {
        let abandoned = self.abandoned.lock();
        abandoned.lost_count || abandoned.by_id.values().any(|other| *other != session)
    }

    /// The only request that waits, if there is just one that counts.
    pub(crate) fn sole_request(&self) -> Option<u64> {
        let waiting = self.waiting.lock();
        let mut counting = waiting.iter().filter(|(_, waiting)| waiting.counts).map(|(id, _)| *id);
        counting.next().filter(|_| counting.next().is_none())
    }

    /// Whether this is a request of ours that does not count.
    pub(crate) fn is_background(&self, id: u64) -> bool {
        self.waiting.lock().get(&id).is_some_and(|waiting| !waiting.counts)
    }

    /// Whether nothing waits that counts.
    pub(crate) fn is_empty(&self) -> bool {
        !self.waiting.lock().values().any(|waiting| waiting.counts)
    }

    /// Whether a call of somebody waits.
    pub(crate) fn has_calls(&self) -> bool {
        self.waiting.lock().values().any(|waiting| waiting.context.is_some())
    }

    /// Takes no more requests, if none waits that counts.
    pub(crate) fn close_if_empty(&self) -> bool {
        let waiting = self.waiting.lock();
        let empty = !waiting.values().any(|waiting| waiting.counts);
        if empty {
            self.closed.store(true, Ordering::Relaxed);
        }
        empty
    }

    /// Takes out a request that is over; whether it was still there.
    pub(crate) fn forget(&self, id: u64) -> bool {
        self.waiting.lock().remove(&id).is_some()
    }

    /// Takes out a request that nobody waits for any more; whether it was still unanswered.
    pub(crate) fn abandon(&self, id: u64) -> bool {
        let Some(waiting) = self.waiting.lock().remove(&id) else { return false };
        if let Some(context) = waiting.context {
            let mut abandoned = self.abandoned.lock();
            abandoned.lost_count |= abandoned.by_id.len() >= ABANDONED;
            abandoned.by_id.insert(id, context.session.id);
        }
        true
    }

    /// Takes no more requests, and drops every waiting one, which sees its answer's sender gone. Returns those whose
    /// server wants to hear of it.
    pub(crate) fn fail_all(&self) -> Vec<u64> {
        let mut waiting = self.waiting.lock();
        self.closed.store(true, Ordering::Relaxed);
        let mut dropped: Vec<_> = waiting.drain().collect();
        drop(waiting);
        dropped.retain(|(_, waiting)| waiting.cancellable);
        dropped.into_iter().map(|(id, _)| id).collect()
    }
}

//! Requests sent on one connection that have no response yet.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hikite_core::caller::SessionId;
use hikite_core::error::Error;
use hikite_core::json::Raw;
use hikite_core::source::{CallContext, CallOrigin};
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::error::UpstreamError;

/// Response of the upstream: its result or its error object.
pub(crate) type UpstreamResponse = Result<Raw, Raw>;
/// Response, or the reason why there is none.
pub(crate) type RequestOutcome = Result<UpstreamResponse, UpstreamError>;

/// A pending request: its id and the receiver of its response.
#[derive(Debug)]
pub(crate) struct PendingRequest {
    pub(crate) id: u64,
    /// Origin of the call that the request belongs to.
    pub(crate) origin: CallOrigin,
    pub(crate) answer: oneshot::Receiver<RequestOutcome>,
}

#[derive(Debug, Default)]
pub(crate) struct PendingRequests {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, PendingEntry>>,
    /// Set together with the check that no request is pending, under the same lock.
    closed: AtomicBool,
    /// Requests whose caller no longer waits, while the server may still be working on them.
    abandoned: Mutex<AbandonedRequests>,
}

#[derive(Debug, Default)]
struct AbandonedRequests {
    by_id: HashMap<u64, SessionId>,
    /// Set when `ABANDONED` was exceeded: abandoned requests can no longer be told apart.
    overflowed: bool,
}

/// Maximum number of abandoned requests to remember.
const ABANDONED: usize = 1024;

#[derive(Debug)]
struct PendingEntry {
    answer: oneshot::Sender<RequestOutcome>,
    context: Option<CallContext>,
    is_counted: bool,
    /// Set once the server has the request and must be notified of its cancellation.
    cancellable: bool,
    /// Cancelled when the request is answered or abandoned; its questions end with it.
    finished: CancellationToken,
    _finish_guard: DropGuard,
}

/// A running call, for routing messages that the server sends meanwhile.
#[derive(Clone, Debug)]
pub(crate) struct ActiveCall {
    pub(crate) context: CallContext,
    pub(crate) finished: CancellationToken,
}

impl PendingEntry {
    fn call(&self) -> Option<ActiveCall> {
        Some(ActiveCall { context: self.context.clone()?, finished: self.finished.clone() })
    }
}

impl PendingRequests {
    /// Registers a request and returns its id and the receiver of its response, or `None` once closed. A request that
    /// does not count may be pending while the connection is idle.
    pub(crate) fn open(
        &self,
        context: Option<CallContext>,
        is_counted: bool,
    ) -> Option<(u64, oneshot::Receiver<RequestOutcome>)> {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        if self.closed.load(Ordering::Relaxed) {
            return None;
        }
        let finished = CancellationToken::new();
        let finish_guard = finished.clone().drop_guard();
        let cancellable = false;
        waiting.insert(
            id,
            PendingEntry { answer: sender, context, is_counted, cancellable, finished, _finish_guard: finish_guard },
        );
        Some((id, answer))
    }

    /// Marks a request as sent: its cancellation must be sent to the server.
    pub(crate) fn cancellable(&self, id: u64) {
        if let Some(waiting) = self.waiting.lock().get_mut(&id) {
            waiting.cancellable = true;
        }
    }

    pub(crate) fn resolve(&self, id: u64, answer: UpstreamResponse) -> bool {
        self.end(id, Ok(answer))
    }

    /// Fails a request whose response cannot be used.
    pub(crate) fn fail(&self, id: u64, error: Error) {
        self.end(id, Err(error.into()));
    }

    fn end(&self, id: u64, outcome: RequestOutcome) -> bool {
        let waiting = self.waiting.lock().remove(&id);
        if waiting.is_none() {
            self.abandoned.lock().by_id.remove(&id);
        }
        waiting.is_some_and(|waiting| waiting.answer.send(outcome).is_ok())
    }

    pub(crate) fn call(&self, id: u64) -> Option<ActiveCall> {
        self.waiting.lock().get(&id)?.call()
    }

    /// Returns the newest call of the only session with running calls. Returns `None` if there are several sessions, or
    /// if the server may still be working on an abandoned call of another session.
    pub(crate) fn sole_caller(&self) -> Option<ActiveCall> {
        let waiting = self.waiting.lock();
        let calls = waiting.iter().filter_map(|(id, w)| Some((*id, w, w.context.as_ref()?.session.id)));
        let sessions: HashSet<SessionId> = calls.clone().map(|(_, _, session)| session).collect();
        if sessions.len() != 1 || sessions.iter().any(|session| self.has_abandoned_calls_of_others(*session)) {
            return None;
        }
        let several = calls.clone().nth(1).is_some();
        let newest = calls.max_by_key(|(id, ..)| *id).and_then(|(_, waiting, _)| waiting.call())?;
        // Another of these calls may be the one that asks, so the end of the newest does not end the question.
        Some(if several { ActiveCall { finished: CancellationToken::new(), ..newest } } else { newest })
    }

    /// Returns `true` if an abandoned call of another session may still be running.
    pub(crate) fn has_abandoned_calls_of_others(&self, session: SessionId) -> bool {
        let abandoned = self.abandoned.lock();
        abandoned.overflowed || abandoned.by_id.values().any(|other| *other != session)
    }

    /// Returns the only counted request, if there is exactly one.
    pub(crate) fn sole_request(&self) -> Option<u64> {
        let waiting = self.waiting.lock();
        let mut counting = waiting.iter().filter(|(_, waiting)| waiting.is_counted).map(|(id, _)| *id);
        counting.next().filter(|_| counting.next().is_none())
    }

    /// Returns `true` for a pending request that does not count.
    pub(crate) fn is_background(&self, id: u64) -> bool {
        self.waiting.lock().get(&id).is_some_and(|waiting| !waiting.is_counted)
    }

    /// Returns `true` if no counted request is pending.
    pub(crate) fn is_empty(&self) -> bool {
        !self.waiting.lock().values().any(|waiting| waiting.is_counted)
    }

    /// Returns `true` if a call of a client is pending.
    pub(crate) fn has_calls(&self) -> bool {
        self.waiting.lock().values().any(|waiting| waiting.context.is_some())
    }

    /// Closes the table if no counted request is pending.
    pub(crate) fn close_if_empty(&self) -> bool {
        let waiting = self.waiting.lock();
        let empty = !waiting.values().any(|waiting| waiting.is_counted);
        if empty {
            self.closed.store(true, Ordering::Relaxed);
        }
        empty
    }

    /// Removes a finished request. Returns `true` if it was still pending.
    pub(crate) fn forget(&self, id: u64) -> bool {
        self.waiting.lock().remove(&id).is_some()
    }

    /// Removes a request that nobody waits for. Returns `true` if it was unanswered.
    pub(crate) fn abandon(&self, id: u64) -> bool {
        let Some(waiting) = self.waiting.lock().remove(&id) else { return false };
        if let Some(context) = waiting.context {
            let mut abandoned = self.abandoned.lock();
            abandoned.overflowed |= abandoned.by_id.len() >= ABANDONED;
            abandoned.by_id.insert(id, context.session.id);
        }
        true
    }

    /// Closes the table and drops all pending requests, whose receivers then fail. Returns the ids that must be
    /// cancelled at the server.
    pub(crate) fn fail_all(&self) -> Vec<u64> {
        let mut waiting = self.waiting.lock();
        self.closed.store(true, Ordering::Relaxed);
        let mut dropped: Vec<_> = waiting.drain().collect();
        drop(waiting);
        dropped.retain(|(_, waiting)| waiting.cancellable);
        dropped.into_iter().map(|(id, _)| id).collect()
    }
}

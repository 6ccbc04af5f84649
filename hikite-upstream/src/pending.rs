//! The requests we have sent on one connection and not yet seen answered.

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hikite_core::caller::SessionId;
use hikite_core::json::Raw;
use hikite_core::source::CallContext;
use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The upstream's answer: its result, or its error object.
pub(crate) type Answer = Result<Raw, Raw>;

#[derive(Debug, Default)]
pub(crate) struct Pending {
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, Waiting>>,
    /// Set together with the check that nothing waits; read under the same lock.
    closed: AtomicBool,
}

#[derive(Debug)]
struct Waiting {
    answer: oneshot::Sender<Answer>,
    context: Option<CallContext>,
}

impl Pending {
    /// Makes room for one more request: its id, and where its answer will be. `None` once closed.
    pub(crate) fn open(&self, context: Option<CallContext>) -> Option<(u64, oneshot::Receiver<Answer>)> {
        let id = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let (sender, answer) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        if self.closed.load(Ordering::Relaxed) {
            return None;
        }
        waiting.insert(id, Waiting { answer: sender, context });
        Some((id, answer))
    }

    pub(crate) fn settle(&self, id: u64, answer: Answer) -> bool {
        let waiting = self.waiting.lock().remove(&id);
        waiting.is_some_and(|waiting| waiting.answer.send(answer).is_ok())
    }

    pub(crate) fn context(&self, id: u64) -> Option<CallContext> {
        self.waiting.lock().get(&id)?.context.clone()
    }

    pub(crate) fn len(&self) -> usize {
        self.waiting.lock().len()
    }

    /// The newest call of the only session that has calls running; `None` when there is none or several.
    pub(crate) fn sole_caller(&self) -> Option<CallContext> {
        let waiting = self.waiting.lock();
        let calls = waiting.iter().filter_map(|(id, w)| Some((*id, w.context.as_ref()?)));
        let sessions: HashSet<SessionId> = calls.clone().map(|(_, context)| context.session.id).collect();
        if sessions.len() != 1 {
            return None;
        }
        calls.max_by_key(|(id, _)| *id).map(|(_, context)| context.clone())
    }

    /// The only request that waits, if there is just one.
    pub(crate) fn sole_request(&self) -> Option<u64> {
        let waiting = self.waiting.lock();
        (waiting.len() == 1).then(|| waiting.keys().next().copied()).flatten()
    }

    /// Takes no more requests, if none waits.
    pub(crate) fn close_if_empty(&self) -> bool {
        let waiting = self.waiting.lock();
        if waiting.is_empty() {
            self.closed.store(true, Ordering::Relaxed);
        }
        waiting.is_empty()
    }

    /// Whether the request was still unanswered.
    pub(crate) fn forget(&self, id: u64) -> bool {
        self.waiting.lock().remove(&id).is_some()
    }

    /// Drops every waiting request; each sees its answer's sender gone.
    pub(crate) fn fail_all(&self) {
        self.waiting.lock().clear();
    }
}

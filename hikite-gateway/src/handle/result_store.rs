//! The result store. When it is full, the oldest result of the caller that holds the most is dropped, so that nobody
//! loses a result to somebody else's flood; expired results are dropped first.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::{Caller, SessionId};
use hikite_core::compact::Shape;
use hikite_core::hex::hex;
use hikite_core::json::{Raw, weight};
use hikite_core::limits::Limits;
use parking_lot::Mutex;
use tokio::time::Instant;

/// Estimated overhead of an entry.
const OVERHEAD: usize = 512;
/// Bytes of an id: the process prefix and enough random bytes to be unguessable.
const ID_BYTES: usize = 16;
/// Hex digits of an id that identify the process.
pub(super) const PROCESS_CHARS: usize = 8;

/// A stored result.
#[derive(Debug)]
pub(crate) struct StoredResult {
    pub(crate) value: Raw,
    /// Shape from which its compact form was made.
    pub(crate) shape: Option<Shape>,
}

#[derive(Debug)]
pub(crate) struct ResultStore {
    count: usize,
    bytes: usize,
    age: Duration,
    process: String,
    entries: Mutex<StoredEntries>,
}

#[derive(Debug, Default)]
struct StoredEntries {
    by_id: HashMap<Arc<str>, StoredEntry>,
    /// Ordered by age, oldest first; some may be dropped already.
    order: VecDeque<Arc<str>>,
    bytes: usize,
    /// Number and bytes of results per subject.
    by_subject: HashMap<Arc<str>, (usize, usize)>,
}

#[derive(Debug)]
struct StoredEntry {
    stored: Arc<StoredResult>,
    subject: Arc<str>,
    project: Option<Arc<str>>,
    token: Option<Arc<str>>,
    session: Option<SessionId>,
    since: Instant,
}

impl ResultStore {
    pub(crate) fn new(limits: &Limits, process: &str) -> Self {
        Self {
            process: process.get(..PROCESS_CHARS).unwrap_or_default().to_owned(),
            count: limits.results,
            bytes: limits.result_bytes,
            age: limits.result_age,
            entries: Mutex::default(),
        }
    }

    /// Stores a result. Returns its id, or `None` if it exceeds the capacity.
    pub(crate) fn store_result(
        &self,
        value: &Raw,
        shape: Option<&Shape>,
        caller: &Caller,
        session: Option<SessionId>,
    ) -> Option<Arc<str>> {
        let stored = StoredResult { value: value.copied(), shape: shape.cloned() };
        let size = stored.bytes();
        if self.count == 0 || size > self.bytes {
            return None;
        }
        let mut random = [0; ID_BYTES];
        getrandom::fill(&mut random).ok()?;
        let id: Arc<str> = format!("{}{}", self.process, &hex(&random)[self.process.len()..]).into();
        let entry = StoredEntry {
            stored: Arc::new(stored),
            subject: Arc::clone(&caller.subject),
            project: caller.project.clone(),
            token: caller.token.clone(),
            session,
            since: Instant::now(),
        };
        let mut entries = self.entries.lock();
        entries.drop_older_than(self.age);
        loop {
            let by_count = entries.by_id.len() >= self.count;
            if !by_count && entries.bytes + size <= self.bytes || !entries.drop_of_heaviest(by_count) {
                break;
            }
        }
        entries.bytes += size;
        let held = entries.by_subject.entry(Arc::clone(&entry.subject)).or_default();
        (held.0, held.1) = (held.0 + 1, held.1 + size);
        entries.order.push_back(Arc::clone(&id));
        entries.by_id.insert(Arc::clone(&id), entry);
        Some(id)
    }

    /// Returns a stored result, for its owner only.
    pub(crate) fn find(&self, id: &str, caller: &Caller) -> Option<Arc<StoredResult>> {
        let mut entries = self.entries.lock();
        entries.drop_older_than(self.age);
        let entry = entries.by_id.get(id).filter(|entry| entry.is_of(caller))?;
        Some(Arc::clone(&entry.stored))
    }

    /// Drops the results of a session that has ended.
    pub(crate) fn release(&self, session: SessionId) {
        let mut entries = self.entries.lock();
        if entries.by_id.is_empty() {
            return;
        }
        let gone: Vec<Arc<str>> = entries
            .by_id
            .iter()
            .filter(|(_, entry)| entry.session == Some(session))
            .map(|(id, _)| Arc::clone(id))
            .collect();
        for id in &gone {
            entries.drop_one(id);
        }
        if !gone.is_empty() {
            let StoredEntries { order, by_id, .. } = &mut *entries;
            order.retain(|id| by_id.contains_key(id));
        }
    }

    #[cfg(test)]
    pub(super) fn holds(&self) -> (usize, usize) {
        let entries = self.entries.lock();
        (entries.by_id.len(), entries.bytes)
    }
}

impl StoredEntry {
    fn is_of(&self, caller: &Caller) -> bool {
        (&self.subject, &self.project, &self.token) == (&caller.subject, &caller.project, &caller.token)
    }

    fn size(&self) -> usize {
        self.stored.bytes()
    }
}

impl StoredResult {
    /// Returns the size including the shaped value.
    fn bytes(&self) -> usize {
        let shape = match &self.shape {
            Some(Shape::Prepared(made)) => weight(made),
            _ => 0,
        };
        self.value.bytes().len() + OVERHEAD + shape
    }
}

impl StoredEntries {
    fn drop_older_than(&mut self, age: Duration) {
        let now = Instant::now();
        while let Some(id) = self.order.front() {
            let is_young = |entry: &StoredEntry| now.duration_since(entry.since) < age;
            if self.by_id.get(id).is_some_and(is_young) {
                return;
            }
            self.drop_oldest();
        }
    }

    /// Returns `true` if there was one.
    fn drop_oldest(&mut self) -> bool {
        let Some(id) = self.order.pop_front() else { return false };
        self.drop_one(&id);
        true
    }

    /// Drops the oldest result of the subject with the most, by number or by size. Returns `true` if there was one.
    fn drop_of_heaviest(&mut self, by_count: bool) -> bool {
        let most = |(_, held): &(&Arc<str>, &(usize, usize))| if by_count { held.0 } else { held.1 };
        let Some(heaviest) = self.by_subject.iter().max_by_key(most).map(|(subject, _)| Arc::clone(subject)) else {
            return self.drop_oldest();
        };
        let is_of = |id: &Arc<str>| self.by_id.get(id).is_some_and(|entry| entry.subject == heaviest);
        let Some(id) = self.order.iter().position(is_of).and_then(|at| self.order.remove(at)) else {
            return self.drop_oldest();
        };
        self.drop_one(&id);
        true
    }

    fn drop_one(&mut self, id: &str) {
        let Some(entry) = self.by_id.remove(id) else { return };
        let size = entry.size();
        self.bytes -= size;
        if let Some(held) = self.by_subject.get_mut(&entry.subject) {
            (held.0, held.1) = (held.0 - 1, held.1.saturating_sub(size));
            if held.0 == 0 {
                self.by_subject.remove(&entry.subject);
            }
        }
    }
}

//! The numbered messages of one event stream. The latest are retained so that a client can resume a broken stream;
//! unread ones wait. One reader at a time: a new reader replaces the previous one.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::Notify;

#[derive(Debug)]
pub(crate) struct Journal {
    state: Mutex<JournalState>,
    /// Notifies of any change of the state.
    changed: Notify,
    bounds: JournalBounds,
}

/// Limits on the retained messages.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JournalBounds {
    pub(crate) messages: usize,
    pub(crate) bytes: usize,
}

#[derive(Debug, Default)]
struct JournalState {
    retained: VecDeque<Bytes>,
    bytes: usize,
    /// Number of the first retained message.
    first: u64,
    /// Number of the first unread message.
    unread: u64,
    /// Number of readers so far; only the newest one reads.
    readers: u64,
    has_reader: bool,
    ended: bool,
}

impl JournalState {
    fn next(&self) -> u64 {
        self.first + self.retained.len() as u64
    }

    fn add(&mut self, message: Bytes, bounds: JournalBounds) {
        self.bytes += message.len();
        self.retained.push_back(message);
        self.trim(bounds);
    }

    /// Drops read messages, the oldest first, until the limits are met.
    fn trim(&mut self, bounds: JournalBounds) {
        while self.first < self.unread && (self.retained.len() > bounds.messages || self.bytes > bounds.bytes) {
            let Some(message) = self.retained.pop_front() else { return };
            self.bytes -= message.len();
            self.first += 1;
        }
    }
}

impl Journal {
    pub(crate) fn new(bounds: JournalBounds) -> Arc<Self> {
        Arc::new(Self { state: Mutex::default(), changed: Notify::new(), bounds })
    }

    /// Adds a message, dropping read ones if necessary. Returns `false` if the journal is full of unread messages.
    pub(crate) fn push(&self, message: Bytes) -> bool {
        let mut state = self.state.lock();
        let is_over = state.retained.len() >= self.bounds.messages || state.bytes >= self.bounds.bytes;
        if state.ended || is_over && state.first >= state.unread {
            return false;
        }
        state.add(message, self.bounds);
        drop(state);
        self.changed.notify_waiters();
        true
    }

    /// Adds the last message, which is never refused.
    pub(crate) fn finish(&self, message: Bytes) {
        let mut state = self.state.lock();
        if !state.ended {
            state.add(message, self.bounds);
        }
        drop(state);
        self.end();
    }

    pub(crate) fn bytes(&self) -> usize {
        self.state.lock().bytes
    }

    /// Marks the journal as complete.
    pub(crate) fn end(&self) {
        self.state.lock().ended = true;
        self.changed.notify_waiters();
    }

    /// Returns `true` if there is a reader.
    pub(crate) fn has_reader(&self) -> bool {
        self.state.lock().has_reader
    }

    /// Starts reading at a message, or at the first unread one.
    pub(crate) fn read(self: &Arc<Self>, from: Option<u64>) -> JournalReader {
        let mut state = self.state.lock();
        state.readers += 1;
        state.has_reader = true;
        // A number beyond the end belongs to a stream of another node.
        let next = from.filter(|from| *from <= state.next()).unwrap_or(state.unread);
        let reader = JournalReader { journal: Arc::clone(self), number: state.readers, next };
        drop(state);
        self.changed.notify_waiters();
        reader
    }

    /// Returns the unread messages and marks them as read, for delivery by another transport.
    pub(crate) fn take_unread(&self) -> Vec<Bytes> {
        let mut state = self.state.lock();
        let read = usize::try_from(state.unread.saturating_sub(state.first)).unwrap_or(usize::MAX);
        state.unread = state.next();
        state.retained.iter().skip(read).cloned().collect()
    }

    /// Waits until there has been no reader for this long.
    pub(crate) async fn abandoned(&self, idle_limit: Duration) {
        loop {
            self.until(|state| !state.has_reader).await;
            if tokio::time::timeout(idle_limit, self.until(|state| state.has_reader)).await.is_err() {
                return;
            }
        }
    }

    async fn until(&self, holds: impl Fn(&JournalState) -> bool) {
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            changed.as_mut().enable();
            if holds(&self.state.lock()) {
                return;
            }
            changed.await;
        }
    }
}

/// Reads a journal until it ends or another reader replaces this one.
#[derive(Debug)]
pub(crate) struct JournalReader {
    journal: Arc<Journal>,
    number: u64,
    next: u64,
}

impl JournalReader {
    /// Returns the next message and its number.
    pub(crate) async fn next(&mut self) -> Option<(u64, Bytes)> {
        let (number, next) = (self.number, self.next);
        self.journal.until(|state| state.readers != number || state.ended || state.next() > next).await;
        let mut state = self.journal.state.lock();
        if state.readers != number {
            return None;
        }
        let at = self.next.max(state.first);
        let message = usize::try_from(at - state.first).ok().and_then(|place| state.retained.get(place).cloned());
        if message.is_some() {
            self.next = at + 1;
            state.unread = state.unread.max(at + 1);
            state.trim(self.journal.bounds);
        }
        message.map(|message| (at, message))
    }
}

impl Drop for JournalReader {
    fn drop(&mut self) {
        let mut state = self.journal.state.lock();
        if state.readers == self.number {
            state.has_reader = false;
            drop(state);
            self.journal.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(messages: usize) -> Arc<Journal> {
        Journal::new(JournalBounds { messages, bytes: 1000 })
    }

    async fn read(reader: &mut JournalReader, count: usize) -> Vec<u64> {
        let mut numbers = Vec::new();
        for _ in 0..count {
            numbers.extend(reader.next().await.map(|(number, _)| number));
        }
        numbers
    }

    #[tokio::test]
    async fn a_broken_stream_is_taken_up_where_it_broke() {
        let journal = journal(10);
        for _ in 0..4 {
            journal.push(Bytes::from_static(b"m"));
        }
        let mut first = journal.read(None);
        assert_eq!(read(&mut first, 3).await, [0, 1, 2]);
        drop(first);
        let mut second = journal.read(Some(1));
        assert_eq!(read(&mut second, 3).await, [1, 2, 3]);
        let mut third = journal.read(None);
        assert!(second.next().await.is_none(), "another has taken over");
        journal.push(Bytes::from_static(b"m"));
        journal.end();
        assert_eq!(read(&mut third, 2).await, [4]);
        assert!(!journal.push(Bytes::from_static(b"late")));
    }

    #[tokio::test]
    async fn what_was_read_gives_way_and_what_was_not_stays() {
        let journal = journal(3);
        let taken = (0..5).map(|_| journal.push(Bytes::from_static(b"m"))).filter(|taken| *taken).count();
        assert_eq!(taken, 3);
        assert_eq!(read(&mut journal.read(None), 2).await, [0, 1]);
        assert!(journal.push(Bytes::from_static(b"m")) && journal.push(Bytes::from_static(b"m")));
        assert_eq!(read(&mut journal.read(Some(0)), 3).await, [2, 3, 4], "numbers go on");
        journal.push(vec![0; 2000].into());
        let mut reader = journal.read(None);
        assert_eq!(journal.state.lock().retained.len(), 1, "the others were read");
        assert_eq!(read(&mut reader, 1).await, [5], "an unread message stays, however large");
        assert_eq!(journal.bytes(), 0, "once read, it is too large to be kept");
        assert!(journal.push(vec![0; 2000].into()));
        assert!(!journal.push(Bytes::from_static(b"m")), "what nobody has read is more than may be kept");
        assert_eq!(read(&mut reader, 1).await, [6]);
        for _ in 0..9 {
            journal.push(Bytes::from_static(b"m"));
        }
        journal.finish(Bytes::from_static(b"answer"));
        assert_eq!(read(&mut reader, 9).await, [7, 8, 9, 10], "there is room for the answer");
    }

    #[tokio::test(start_paused = true)]
    async fn a_stream_is_abandoned_only_after_nobody_read_it_for_a_while() {
        let journal = journal(3);
        let reader = journal.read(None);
        let idle_limit = Duration::from_secs(5);
        let tasks = tokio_util::task::TaskTracker::new();
        let abandoned = Arc::clone(&journal);
        let waiting = tasks.spawn(async move { abandoned.abandoned(idle_limit).await });
        tokio::time::sleep(idle_limit * 2).await;
        drop(reader);
        tokio::time::sleep(idle_limit / 2).await;
        let again = journal.read(None);
        tokio::time::sleep(idle_limit * 2).await;
        assert!(!waiting.is_finished());
        drop(again);
        tokio::time::sleep(idle_limit * 2).await;
        assert!(waiting.is_finished());
    }
}

//! Streams of requests that can be taken up again. The request runs in a task of its own and writes into a
//! journal; the client's stream reads it. A stream that breaks and is not taken up in time ends its request.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use axum::response::Response;
use bytes::Bytes;
use hikite_core::source::BoxFuture;
use hikite_wire::revision::Revision;
use parking_lot::Mutex;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::mcp::journal::Journal;
use crate::mcp::open_stream::OpenStreams;
use crate::mcp::session::Session;
use crate::mcp::stream;
use crate::refusal::refusal;

/// The number of the session's own stream.
const OWN: u64 = 0;

#[derive(Debug, Default)]
pub(crate) struct Streams {
    by_number: Mutex<HashMap<u64, Arc<Journal>>>,
    last: AtomicU64,
}

/// Bytes of all streams that are kept after their end, for clients that lost the last of it.
const KEPT: usize = 64 * 1024 * 1024;
/// What a stream costs beside its messages.
const COST: usize = 1024;

/// Counts a stream among those that are kept.
struct Kept<'a> {
    all: &'a AtomicUsize,
    bytes: usize,
    before: usize,
}

impl<'a> Kept<'a> {
    fn new(all: &'a AtomicUsize, bytes: usize) -> Self {
        let bytes = bytes + COST;
        Self { all, bytes, before: all.fetch_add(bytes, Ordering::Relaxed) }
    }
}

impl Drop for Kept<'_> {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

impl Streams {
    fn add(&self, journal: &Arc<Journal>) -> u64 {
        let number = self.last.fetch_add(1, Ordering::Relaxed) + 1;
        self.by_number.lock().insert(number, Arc::clone(journal));
        number
    }

    /// Numbers that this client was never given, for a session that began elsewhere.
    pub(crate) fn begin_at(&self, number: u64) {
        self.last.store(number, Ordering::Relaxed);
    }

    pub(crate) fn clear(&self) {
        for (_, journal) in self.by_number.lock().drain() {
            journal.end();
        }
    }
}

impl Session {
    /// Whether the streams of its requests can be taken up again.
    pub(crate) fn resumes(&self) -> bool {
        self.revision >= Revision::V2025_11_25 && !self.app.limits.resume.is_zero()
    }

    /// The session's own stream, from the place an event id names.
    pub(crate) fn own_stream(&self, from: Option<u64>) -> Response {
        // Of whoever opened the session, so that the same stream taken up elsewhere is the same caller's.
        let place = match OpenStreams::take(&self.app, &self.core.caller) {
            Ok(place) => place,
            Err(error) => return refusal(error),
        };
        let reader = self.outbox.open(from);
        stream::of_journal(OWN, reader, place.ending.clone(), place)
    }

    /// The stream of a request: what comes while it runs, then its answer. It begins with a message, whose id is
    /// where a client goes on; an empty event before it would say no more, and not every client reads it.
    pub(crate) fn stream_of(
        self: &Arc<Self>,
        first: Bytes,
        messages: mpsc::Receiver<Bytes>,
        answer: BoxFuture<'static, Bytes>,
    ) -> Response {
        let journal = Journal::new(self.app.bounds());
        let number = self.streams.add(&journal);
        journal.push(first);
        let reader = journal.read(None);
        self.app.tasks.spawn(Arc::clone(self).write(number, journal, messages, answer));
        stream::of_journal(number, reader, CancellationToken::new(), ())
    }

    /// A stream that broke, after the event with this id; `None` if there is no such stream.
    pub(crate) fn take_up(&self, event: &str) -> Option<Response> {
        let (number, place) = event.split_once('-')?;
        let (number, place) = (number.parse().ok()?, place.parse().ok()?);
        if number == OWN {
            return Some(self.own_stream(Some(place)));
        }
        let reader = self.streams.by_number.lock().get(&number)?.read(Some(place));
        Some(stream::of_journal(number, reader, CancellationToken::new(), ()))
    }

    async fn write(
        self: Arc<Self>,
        number: u64,
        journal: Arc<Journal>,
        mut messages: mpsc::Receiver<Bytes>,
        answer: BoxFuture<'static, Bytes>,
    ) {
        let resume = self.app.limits.resume;
        let running = async {
            let mut answer = answer;
            let answer = loop {
                tokio::select! {
                    biased;
                    Some(message) = messages.recv() => drop(journal.push(message)),
                    answer = &mut answer => break answer,
                }
            };
            // What was sent before the answer arrives before it.
            while let Ok(message) = messages.try_recv() {
                journal.push(message);
            }
            journal.finish(answer);
        };
        // The stream is gone before its request is, so that nobody takes up what is about to end.
        let given_up = async {
            journal.abandoned(resume).await;
            self.streams.by_number.lock().remove(&number);
        };
        tokio::select! {
            () = running => {
                // It may have broken just before its end; where little enough is kept, so is this.
                let kept = Kept::new(&self.app.kept_bytes, journal.bytes());
                if kept.before < KEPT {
                    let unread = journal.abandoned(resume);
                    self.app.stopping.run_until_cancelled(unread).await;
                }
            }
            () = given_up => journal.end(),
        }
        self.streams.by_number.lock().remove(&number);
    }
}

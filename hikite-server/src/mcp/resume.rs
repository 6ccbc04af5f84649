//! Resumable streams of requests. The request runs in its own task and writes to a journal, which the client's stream
//! reads. A request whose stream breaks and is not resumed in time is cancelled.

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

use crate::error_response::error_response;
use crate::mcp::journal::Journal;
use crate::mcp::open_stream::OpenStreams;
use crate::mcp::session::ClientSession;
use crate::mcp::stream;

/// Number of the session's own stream.
const SESSION_STREAM: u64 = 0;

#[derive(Debug, Default)]
pub(crate) struct Streams {
    by_number: Mutex<HashMap<u64, Arc<Journal>>>,
    last: AtomicU64,
}

/// Total bytes of ended streams that are retained for resumption.
const RETAINED_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Overhead of a stream beside its messages.
const STREAM_OVERHEAD_BYTES: usize = 1024;

/// Accounts for the bytes of a retained stream.
struct RetainedBytes<'a> {
    all: &'a AtomicUsize,
    bytes: usize,
    before: usize,
}

impl<'a> RetainedBytes<'a> {
    fn new(all: &'a AtomicUsize, bytes: usize) -> Self {
        let bytes = bytes + STREAM_OVERHEAD_BYTES;
        Self { all, bytes, before: all.fetch_add(bytes, Ordering::Relaxed) }
    }
}

impl Drop for RetainedBytes<'_> {
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

    /// Sets the first stream number of a session from another node, so that numbers are not reused.
    pub(crate) fn begin_at(&self, number: u64) {
        self.last.store(number, Ordering::Relaxed);
    }

    pub(crate) fn clear(&self) {
        for (_, journal) in self.by_number.lock().drain() {
            journal.end();
        }
    }
}

impl ClientSession {
    /// Returns `true` if request streams can be resumed.
    pub(crate) fn resumes(&self) -> bool {
        self.revision >= Revision::V2025_11_25 && !self.app.limits.resume.is_zero()
    }

    /// Opens the session's own stream, from the position that an event id names.
    pub(crate) fn own_stream(&self, from: Option<u64>) -> Response {
        // The slot belongs to the caller who opened the session, so that a resumed stream counts for the same caller.
        let place = match OpenStreams::take(&self.app, &self.core.caller) {
            Ok(place) => place,
            Err(error) => return error_response(error),
        };
        let reader = self.outbox.open(from);
        stream::of_journal(SESSION_STREAM, reader, place.ending.clone(), place)
    }

    /// Opens the stream of a request: messages while it runs, then its response. It begins with a message, whose id is
    /// the point of resumption; an empty event before it would add nothing, and not every client accepts one.
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

    /// Resumes a broken stream after the event with this id; `None` if there is no such stream.
    pub(crate) fn resume_stream(&self, event: &str) -> Option<Response> {
        let (number, place) = event.split_once('-')?;
        let (number, place) = (number.parse().ok()?, place.parse().ok()?);
        if number == SESSION_STREAM {
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
            // Messages sent before the response are delivered before it.
            while let Ok(message) = messages.try_recv() {
                journal.push(message);
            }
            journal.finish(answer);
        };
        // The stream is removed before its request ends, so that nobody resumes it in between.
        let abandoned = async {
            journal.abandoned(resume).await;
            self.streams.by_number.lock().remove(&number);
        };
        tokio::select! {
            () = running => {
                // The stream may have broken just before its end, so it is retained if the total allows.
                let retained = RetainedBytes::new(&self.app.retained_bytes, journal.bytes());
                if retained.before < RETAINED_BYTES_MAX {
                    let unread = journal.abandoned(resume);
                    self.app.stopping.run_until_cancelled(unread).await;
                }
            }
            () = abandoned => journal.end(),
        }
        self.streams.by_number.lock().remove(&number);
    }
}

//! The messages that a session sends outside of request streams: to its pipe, or to a journal that the client reads
//! with a stream of its own. Without a stream, messages wait up to a limit.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::mcp::journal::{Journal, JournalBounds, JournalReader};

#[derive(Debug)]
pub(crate) struct Outbox {
    journal: Arc<Journal>,
    pipe: Mutex<Option<mpsc::Sender<Bytes>>>,
}

impl Outbox {
    pub(crate) fn new(bounds: JournalBounds) -> Self {
        Self { journal: Journal::new(bounds), pipe: Mutex::default() }
    }

    /// Sends a message, or stores it for a later stream. Returns `true` if it was accepted.
    pub(crate) fn send(&self, message: Bytes) -> bool {
        match &*self.pipe.lock() {
            Some(pipe) => {
                let sent = pipe.try_send(message).is_ok();
                if !sent {
                    tracing::debug!("dropped a message to a client that does not read");
                }
                sent
            }
            None => self.journal.push(message),
        }
    }

    /// Opens a stream at a message, or at the first unread one; the previous stream ends.
    pub(crate) fn open(&self, from: Option<u64>) -> JournalReader {
        self.journal.read(from)
    }

    /// Sends to `pipe` from now on, starting with the stored messages.
    pub(crate) fn attach(&self, pipe: mpsc::Sender<Bytes>) {
        let mut attached = self.pipe.lock();
        for message in self.journal.take_unread() {
            let _ = pipe.try_send(message);
        }
        *attached = Some(pipe);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.journal.has_reader()
    }

    /// Ends the open stream, if any.
    pub(crate) fn close(&self) {
        *self.pipe.lock() = None;
        self.journal.end();
    }
}

//! What a session is sent outside its own requests' streams: into the pipe it came by, or into a journal that
//! the client reads with a stream of its own. While it reads none, messages wait, up to a limit.

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;

use crate::mcp::journal::{Bounds, Journal, Reader};

#[derive(Debug)]
pub(crate) struct Outbox {
    journal: Arc<Journal>,
    pipe: Mutex<Option<mpsc::Sender<Bytes>>>,
}

impl Outbox {
    pub(crate) fn new(bounds: Bounds) -> Self {
        Self { journal: Journal::new(bounds), pipe: Mutex::default() }
    }

    /// Whether the message was taken: sent, or kept for a stream that may open.
    pub(crate) fn send(&self, message: Bytes) -> bool {
        match &*self.pipe.lock() {
            Some(pipe) => {
                let sent = pipe.try_send(message).is_ok();
                if !sent {
                    tracing::debug!("a message to a client that does not read was dropped");
                }
                sent
            }
            None => self.journal.push(message),
        }
    }

    /// Opens a stream, from a message on or with what was not read yet; the one before it ends.
    pub(crate) fn open(&self, from: Option<u64>) -> Reader {
        self.journal.read(from)
    }

    /// Sends into `pipe` from now on, what has waited first.
    pub(crate) fn attach(&self, pipe: mpsc::Sender<Bytes>) {
        let mut attached = self.pipe.lock();
        for message in self.journal.take_unread() {
            let _ = pipe.try_send(message);
        }
        *attached = Some(pipe);
    }

    pub(crate) fn is_open(&self) -> bool {
        self.journal.is_read()
    }

    /// Ends the open stream, if any.
    pub(crate) fn close(&self) {
        *self.pipe.lock() = None;
        self.journal.end();
    }
}

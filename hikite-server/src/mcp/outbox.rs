//! What a session is sent outside its own requests' streams. While the client has no stream open, messages
//! wait, up to a limit; the oldest give way.

use std::collections::VecDeque;

use bytes::Bytes;
use parking_lot::Mutex;
use tokio::sync::mpsc;

#[derive(Debug)]
pub(crate) struct Outbox {
    state: Mutex<State>,
    capacity: usize,
}

#[derive(Debug, Default)]
struct State {
    stream: Option<mpsc::Sender<Bytes>>,
    waiting: VecDeque<Bytes>,
}

impl Outbox {
    pub(crate) fn new(capacity: usize) -> Self {
        Self { state: Mutex::default(), capacity }
    }

    /// Whether the message was taken: sent, or kept for a stream that may open.
    pub(crate) fn send(&self, message: Bytes) -> bool {
        let mut state = self.state.lock();
        let unsent = match &state.stream {
            Some(stream) => match stream.try_send(message) {
                Ok(()) => return true,
                Err(mpsc::error::TrySendError::Full(_)) => {
                    tracing::debug!("a message to a client that does not read was dropped");
                    return false;
                }
                Err(mpsc::error::TrySendError::Closed(message)) => message,
            },
            None => message,
        };
        state.stream = None;
        if state.waiting.len() >= self.capacity {
            state.waiting.pop_front();
        }
        state.waiting.push_back(unsent);
        true
    }

    /// Opens a stream; the one before it, if any, ends.
    pub(crate) fn open(&self) -> mpsc::Receiver<Bytes> {
        let (sender, receiver) = mpsc::channel(self.capacity.max(1));
        self.attach(sender);
        receiver
    }

    /// Sends through `stream` from now on, what has waited first.
    pub(crate) fn attach(&self, stream: mpsc::Sender<Bytes>) {
        let mut state = self.state.lock();
        for message in state.waiting.drain(..) {
            let _ = stream.try_send(message);
        }
        state.stream = Some(stream);
    }

    /// Whether somebody listens.
    pub(crate) fn is_open(&self) -> bool {
        self.state.lock().stream.as_ref().is_some_and(|stream| !stream.is_closed())
    }

    /// Ends the open stream.
    pub(crate) fn close(&self) {
        self.state.lock().stream = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_wait_for_a_stream_and_the_oldest_give_way() {
        let outbox = Outbox::new(2);
        for text in ["a", "b", "c"] {
            outbox.send(Bytes::from(text));
        }
        let mut stream = outbox.open();
        assert_eq!(stream.try_recv().expect("b"), "b");
        assert_eq!(stream.try_recv().expect("c"), "c");
        drop(stream);
        outbox.send(Bytes::from("d"));
        assert_eq!(outbox.open().try_recv().expect("d"), "d");
    }
}

//! The place of one connection: empty, or held by a live one. Whoever needs it while it is empty waits for the
//! one attempt under way, and a failed attempt is not repeated before its pause is over.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use hikite_core::error::{Error, Kind};
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::connection::{Connection, Purpose};

#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) purpose: Purpose,
    live: ArcSwapOption<Connection>,
    opening: tokio::sync::Mutex<()>,
    backoff: Mutex<Backoff>,
}

impl Slot {
    pub(crate) fn new(purpose: Purpose) -> Self {
        Self {
            purpose,
            live: ArcSwapOption::empty(),
            opening: tokio::sync::Mutex::default(),
            backoff: Mutex::default(),
        }
    }

    pub(crate) fn live(&self) -> Option<Arc<Connection>> {
        self.live.load_full().filter(|connection| connection.is_open())
    }

    /// The live connection, or the one that `open` makes.
    pub(crate) async fn get<F>(&self, name: &str, open: impl FnOnce() -> F) -> Result<Arc<Connection>, Error>
    where
        F: Future<Output = Result<Arc<Connection>, Error>>,
    {
        let _turn = self.opening.lock().await;
        if let Some(connection) = self.live() {
            return Ok(connection);
        }
        if let Some((rest, reason)) = self.backoff.lock().pause(Instant::now()) {
            let seconds = rest.as_secs() + 1;
            return Err(Error::new(Kind::UpstreamUnavailable, reason.to_owned())
                .hint(format!("`{name}` is tried again in {seconds} s")));
        }
        match open().await {
            Ok(connection) => {
                self.backoff.lock().succeeded();
                if let Some(before) = self.live.swap(Some(Arc::clone(&connection))) {
                    connection.succeed(&before);
                }
                Ok(connection)
            }
            Err(error) => {
                self.backoff.lock().failed(Instant::now(), error.message.to_string());
                Err(error)
            }
        }
    }

    pub(crate) fn stop_if_idle(&self, before: Instant) -> bool {
        self.live().is_some_and(|connection| connection.close_if_idle(before))
    }

    /// Ends the connection that stands here.
    pub(crate) fn discard(&self, reason: Error) {
        if let Some(connection) = self.live.load_full() {
            connection.close(reason);
        }
    }
}

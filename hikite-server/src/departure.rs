//! Whoever may stay no more leaves at once: when users, tokens or grants change, sessions and open streams of those who
//! were locked out, removed or lost their token are ended, not at their next message.

use std::sync::Arc;

use hikite_core::caller::Caller;
use hikite_gateway::People;
use parking_lot::Mutex;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::app::App;

/// Streams that belong to no session, each with its caller and what ends it.
#[derive(Debug, Default)]
pub(crate) struct OpenStreams(Mutex<Vec<(Caller, CancellationToken)>>);

impl OpenStreams {
    /// Fires when we stop or the caller may stay no more. Whoever holds the guard keeps the stream in the list.
    pub(crate) fn add(
        &self,
        caller: &Caller,
        stopping: &CancellationToken,
    ) -> (CancellationToken, DropGuard) {
        let ending = stopping.child_token();
        let mut open = self.0.lock();
        if open.len() == open.capacity() {
            open.retain(|(_, ending)| !ending.is_cancelled());
        }
        open.push((caller.clone(), ending.clone()));
        (ending.clone(), ending.drop_guard())
    }

    fn end_gone(&self, people: &People) {
        self.0.lock().retain(|(caller, ending)| {
            if !people.still_knows(caller) {
                ending.cancel();
            }
            !ending.is_cancelled()
        });
    }
}

/// Follows what changes about people, until we stop.
pub(crate) async fn follow(app: Arc<App>) {
    let mut changes = app.gateway.people().changes();
    while let Some(Ok(())) = app.stopping.run_until_cancelled(changes.changed()).await {
        changes.mark_unchanged();
        app.sessions.end_gone(app.gateway.people());
        app.open_streams.end_gone(app.gateway.people());
    }
}

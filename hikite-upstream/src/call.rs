//! One call on its way: over which connection it goes, in which dialect, and what happens when the connection
//! turns out to be the wrong one.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hikite_core::error::Error;
use hikite_core::json::Raw;
use hikite_core::source::{CallContext, Invocation, Method};
use hikite_wire::stateless::MISSING_CAPABILITY;

use crate::connection::{Connection, NOT_SENT, Purpose};
use crate::definition::Share;
use crate::era::{self, ERA_LOST};
use crate::http::{DECLINED, NO_ANSWER, SESSION_LOST};
use crate::rounds;
use crate::slot::Slot;
use crate::stdio::DIED;
use crate::upstream::Inner;

impl Inner {
    pub(crate) async fn call(
        self: &Arc<Self>,
        invocation: Invocation,
        context: CallContext,
    ) -> Result<Raw, Error> {
        if invocation.method == Method::SetLevel {
            self.set_level(&invocation.params, &context.session);
            return Ok(Raw::empty_object());
        }
        let _counted = Counted::new(&self.calls);
        if is_of_task(invocation.method)
            && let Some(connection) = self.places.of(&invocation.params)
        {
            match Box::pin(self.send(&connection, invocation.clone(), context.clone())).await {
                Err(error) if ran_nothing(&error) => {}
                answer => return answer.map_err(plain),
            }
        }
        let (slot, connection) = self.ready(&context).await?;
        let error = match self.send(&connection, invocation.clone(), context.clone()).await {
            Ok(answer) => return Ok(answer),
            Err(error) => error,
        };
        if connection.is_stateless() || error.name == Some(ERA_LOST) {
            self.doubt(&slot, &connection, &error);
        }
        // Refused before anything ran: another connection may take it.
        if ran_nothing(&error) {
            // Only the request that was itself refused is sent again, so the others get no such name.
            slot.discard_if(&connection, Error { name: None, ..error });
        } else if !self.may_be_asked(&connection, &context, &error) {
            return Err(plain(error));
        }
        let (_, connection) = self.ready(&context).await?;
        Box::pin(self.send(&connection, invocation, context)).await.map_err(plain)
    }

    /// The slot of a session's calls with a live connection in it.
    async fn ready(self: &Arc<Self>, context: &CallContext) -> Result<(Arc<Slot>, Arc<Connection>), Error> {
        let mut slot = self.slot_for(&context.session);
        if slot.live().is_none() {
            self.connection(&slot, Some(context)).await?;
            // The start may have shown that the server offers more to a client it may ask, or that it has no
            // sessions and all share one connection.
            let first = std::mem::replace(&mut slot, self.slot_for(&context.session));
            if matches!((&first.purpose, &slot.purpose), (Purpose::Owned(_), Purpose::Shared)) {
                self.drop_owned(context.session.id);
            }
        }
        let connection = self.connection(&slot, Some(context)).await?;
        Ok((slot, connection))
    }

    async fn send(
        self: &Arc<Self>,
        connection: &Arc<Connection>,
        invocation: Invocation,
        context: CallContext,
    ) -> Result<Raw, Error> {
        // Boxed, so that it takes no room in a call to a server with sessions.
        if connection.is_stateless() {
            return Box::pin(self.send_stateless(connection, invocation, context)).await;
        }
        let Invocation { method, mut params } = invocation;
        if context.takes_rounds && method != Method::UpdateTask {
            rounds::strip_for_sessions(&mut params);
        }
        let unasked = matches!(connection.purpose, Purpose::Shared) && context.session.abilities.any();
        let answer = match method {
            Method::Subscribe => connection.subscribe(params, context).await,
            Method::Unsubscribe => connection.unsubscribe(params, context).await,
            Method::CallTool if connection.runs_tasks() || params.get("task").is_some() => {
                Box::pin(self.call_with_task(connection, params, context)).await
            }
            _ if is_of_task(method) => {
                Box::pin(self.task_with_sessions(connection, method, params, context)).await
            }
            _ => connection.request(method.name(), Some(params), Some(context)).await,
        };
        if unasked && answer.as_ref().is_ok_and(misses_ability) {
            self.note_asks_back();
        }
        answer
    }

    /// Whether a call was refused because its server may ask nothing on the shared connection, while its client
    /// could answer: it gets a connection of its own.
    fn may_be_asked(&self, connection: &Connection, context: &CallContext, error: &Error) -> bool {
        let unasked = matches!(connection.purpose, Purpose::Shared) && context.session.abilities.any();
        let refused = unasked && era::upstream_code(error) == Some(MISSING_CAPABILITY);
        if refused && !connection.is_stateless() {
            self.note_asks_back();
            return self.definition.share == Share::Auto;
        }
        false
    }

    /// A failure may show that the server is no longer what it was: then it is greeted anew. Whether it does.
    pub(crate) fn doubt(&self, slot: &Slot, connection: &Arc<Connection>, error: &Error) -> bool {
        if !era::casts_doubt(error) {
            return false;
        }
        tracing::info!(module = &*self.definition.name, "it speaks another revision by now: {error}");
        self.forget_era();
        slot.discard_if(connection, Error { name: None, ..error.clone() });
        self.stale.notify_one();
        true
    }

    /// The next greeting finds out the revision.
    pub(crate) fn forget_era(&self) {
        if !self.era.forget() {
            return;
        }
        if let Some(listing) = self.listing.load_full() {
            self.keep((*listing).clone());
        }
    }
}

/// One more call, as long as it lives.
struct Counted<'a>(&'a AtomicUsize);

impl<'a> Counted<'a> {
    fn new(calls: &'a AtomicUsize) -> Self {
        calls.fetch_add(1, Ordering::Relaxed);
        Self(calls)
    }
}

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What is asked of a task goes where the task runs.
fn is_of_task(method: Method) -> bool {
    matches!(method, Method::GetTask | Method::UpdateTask | Method::CancelTask)
}

/// Whether a request was refused before anything ran.
fn ran_nothing(error: &Error) -> bool {
    matches!(error.name, Some(SESSION_LOST | NOT_SENT | ERA_LOST))
}

/// Without the names that mean something only in here.
pub(crate) fn plain(error: Error) -> Error {
    match error.name {
        Some(ERA_LOST | DECLINED | NO_ANSWER | DIED) => Error { name: None, ..error },
        _ => error,
    }
}

/// Whether a tool failed because its server may not ask us anything: the words of the public SDKs.
fn misses_ability(result: &Raw) -> bool {
    let Some(object) = result.object() else { return false };
    if object.get("isError").is_none_or(|flag| flag.as_str() != "true") {
        return false;
    }
    let text = result.as_str().to_lowercase();
    text.contains("does not support")
        && ["sampling", "elicitation", "roots"].iter().any(|word| text.contains(word))
}

//! Chooses the connection of a session's calls, and opens it if there is none.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, SourceMethod};

use crate::connection::{Connection, ConnectionPurpose, listing};
use crate::count_guard::CountGuard;
use crate::definition::ConnectionSharing;
use crate::error::UpstreamError;
use crate::slot::{AttemptKind, UpstreamSlot};
use crate::upstream::UpstreamInner;
use crate::{connect, fetch, lists, set_level};

/// Interval between progress notifications to a client that waits for a server start.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

pub(crate) async fn ready_for(
    upstream: &Arc<UpstreamInner>,
    method: SourceMethod,
    context: &CallContext,
) -> Result<Arc<Connection>, UpstreamError> {
    let mut slot = slot_for(upstream, method, context);
    if slot.live().is_none() {
        let started = Box::pin(report_start(upstream, context, connection(upstream, &slot, Some(context)))).await;
        // Another call of the session may have learned first that it shares its connection.
        if started.is_err() && !slot.is_superseded() {
            return started;
        }
        // The start may have shown that the server needs to ask its clients, or that it is stateless and all
        // sessions share one connection.
        let first = std::mem::replace(&mut slot, slot_for(upstream, method, context));
        if matches!((&first.purpose, &slot.purpose), (ConnectionPurpose::Owned(_), ConnectionPurpose::Shared)) {
            upstream.slots.drop_owned(context.session.id);
        }
    }
    connection(upstream, &slot, Some(context)).await
}

/// Returns the slot for the session's calls.
pub(crate) fn slot_for(
    upstream: &Arc<UpstreamInner>,
    method: SourceMethod,
    context: &CallContext,
) -> Arc<UpstreamSlot> {
    let session = &context.session;
    let is_remote = !upstream.definition.transport.is_stdio();
    let own = match upstream.definition.share {
        ConnectionSharing::Always => false,
        ConnectionSharing::Never => true,
        // A stateless connection carries no server requests, so one serves all sessions.
        ConnectionSharing::Auto
            if upstream.revision.is_stateless() && !(may_request_input(method) && upstream.wants_session(context)) =>
        {
            false
        }
        ConnectionSharing::Auto => {
            session.client_capabilities.any() && (is_remote || upstream.lists.sends_requests.load(Ordering::Relaxed))
        }
    };
    if !own {
        return Arc::clone(&upstream.slots.shared);
    }
    let mut owned = upstream.slots.owned.lock();
    if let Some(slot) = owned.get(&session.id) {
        return Arc::clone(slot);
    }
    // A process per session is optional here, so it must not displace others.
    let optional = upstream.definition.share == ConnectionSharing::Auto && !is_remote;
    let reservation = optional.then(|| upstream.environment.spawner.capacity.reserve()).flatten();
    if optional && reservation.is_none() {
        return Arc::clone(&upstream.slots.shared);
    }
    let slot = Arc::new(UpstreamSlot::new(ConnectionPurpose::Owned(Arc::clone(session)), reservation));
    owned.insert(session.id, Arc::clone(&slot));
    slot
}

/// Returns the slot's connection. Opens it in a separate task, so that a caller who gives up does not abort the
/// start for others.
pub(crate) async fn connection(
    upstream: &Arc<UpstreamInner>,
    slot: &Arc<UpstreamSlot>,
    caller: Option<&CallContext>,
) -> Result<Arc<Connection>, UpstreamError> {
    connection_for(upstream, AttemptKind::Call, slot, caller).await
}

pub(crate) async fn connection_for(
    upstream: &Arc<UpstreamInner>,
    attempt: AttemptKind,
    slot: &Arc<UpstreamSlot>,
    caller: Option<&CallContext>,
) -> Result<Arc<Connection>, UpstreamError> {
    if let Some(connection) = slot.live() {
        return Ok(connection);
    }
    let _wanted = caller.map(|_| CountGuard::new(&upstream.waiting_requests));
    let (inner, slot, caller) = (Arc::clone(upstream), Arc::clone(slot), caller.cloned());
    let opening = upstream.tasks.spawn(async move {
        let open = || open(&inner, slot.purpose.clone(), caller);
        let opened = slot.get(&inner.definition.name, attempt, open).await;
        if let Ok(connection) = &opened {
            lists::announce(&inner, connection);
        }
        opened
    });
    opening.await.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "The start was interrupted.").into()))
}

/// Waits for `start` and reports its state to the client as progress. Progress extends the call's deadline, so it
/// is sent repeatedly only while the start is queued behind others; once the server is starting, the start timeout
/// applies.
async fn report_start<T>(upstream: &UpstreamInner, context: &CallContext, start: impl Future<Output = T>) -> T {
    let mut start = pin!(start);
    let (mut reports, mut starts) = (0_u32, false);
    loop {
        if let Ok(started) = tokio::time::timeout(PROGRESS_INTERVAL, &mut start).await {
            return started;
        }
        let queued = upstream.queued.load(Ordering::Relaxed) > 0;
        if !queued && std::mem::replace(&mut starts, true) {
            continue;
        }
        reports += 1;
        let how = if queued { "is waiting to start" } else { "is starting" };
        let message = format!("`{}` {how}.", upstream.definition.name);
        // Small steps, so that progress from the server itself is always greater.
        let step = Raw::of(&(f64::from(reports) / 1000.0));
        context.back.progress(Object::default().with("progress", step).with("message", message.as_str()));
    }
}

/// Opens a connection for calls.
async fn open(
    upstream: &Arc<UpstreamInner>,
    purpose: ConnectionPurpose,
    caller: Option<CallContext>,
) -> Result<Arc<Connection>, UpstreamError> {
    let connection = connect::open(upstream, purpose, caller).await?;
    fetch::compare(upstream, &connection).await;
    set_level::send(upstream, &connection).await;
    if matches!(connection.purpose, ConnectionPurpose::Shared)
        && upstream.lists.changed_while_running.swap(false, Ordering::Relaxed)
    {
        listing::reread(&connection);
    }
    if upstream.lists.listing.load().as_ref().is_some_and(|listing| lists::is_old(upstream, listing)) {
        upstream.lists.stale.notify_one();
    }
    Ok(connection)
}

/// Returns `true` for methods whose server may ask questions.
fn may_request_input(method: SourceMethod) -> bool {
    matches!(method, SourceMethod::CallTool | SourceMethod::GetPrompt | SourceMethod::ReadResource)
}

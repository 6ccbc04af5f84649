//! Opens a connection to an upstream over its transport, in the revision that the server speaks.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::listing::Listing;
use hikite_core::source::{CallContext, SourceState};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::authorized_client::AuthorizedClient;
use crate::connection::{Connection, ConnectionPurpose, handshake, inbound};
use crate::count_guard::CountGuard;
use crate::definition::UpstreamTransport;
use crate::error::{FailureReason, UpstreamError};
use crate::http::HttpSender;
use crate::outbound::Outbound;
use crate::process::ProcessLaunch;
use crate::revision::{self, HandshakeMode};
use crate::spawner::StartPermit;
use crate::transport::TransportContext;
use crate::upstream::UpstreamInner;
use crate::{capability, lists, sse, stdio};

/// A start that takes longer continues but releases its permit for others: it may hang or be downloading.
const START_PERMIT_TIME: Duration = Duration::from_secs(10);
/// Timeout for the exit of a process that is being replaced.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Opens and initializes a connection. The server can ask the session of the call it is opened for even before that
/// call is sent.
pub(crate) async fn open(
    upstream: &Arc<UpstreamInner>,
    purpose: ConnectionPurpose,
    caller: Option<CallContext>,
) -> Result<Arc<Connection>, UpstreamError> {
    *upstream.state.lock() = SourceState::Starting;
    let opened = open_as_defined(upstream, purpose, caller).await;
    let opened = opened.map_err(UpstreamError::into_connect_error);
    *upstream.state.lock() = match &opened {
        Ok(_) => SourceState::Idle,
        Err(error) => failing_state(&error.error, false),
    };
    let connection = opened?;
    connection.touch();
    if let Some(authorization) = &upstream.authorization {
        authorization.opened();
    }
    record_revision(upstream, &connection);
    Ok(connection)
}

/// Caches the revision. If the version of a server with sessions changed, the next handshake probes again.
fn record_revision(upstream: &UpstreamInner, connection: &Connection) {
    let (Some(initialize_result), known) = (connection.initialize_result(), upstream.lists.listing.load_full()) else {
        return;
    };
    let version = known.as_ref().and_then(|known| known.version());
    if version.is_some() && version != initialize_result.info.text("version") && !connection.is_stateless() {
        return lists::forget_revision(upstream);
    }
    // Servers that support both revisions are used statelessly by all other sessions.
    if upstream.revision.may_support_sessions() && matches!(connection.purpose, ConnectionPurpose::Owned(_)) {
        return;
    }
    upstream.revision.record_revision(connection.is_stateless());
    let revision = Some(initialize_result.protocol_version.clone());
    if let Some(known) = known.filter(|known| known.revision != revision) {
        lists::store(upstream, Listing { revision, ..(*known).clone() });
    }
}

async fn open_as_defined(
    upstream: &Arc<UpstreamInner>,
    purpose: ConnectionPurpose,
    caller: Option<CallContext>,
) -> Result<Arc<Connection>, UpstreamError> {
    let transport = &upstream.definition.transport;
    let open = async |transport: &UpstreamTransport, handshake_mode: HandshakeMode| {
        // Boxed because it is awaited in several branches.
        Box::pin(open_over(upstream, transport, handshake_mode, purpose.clone(), caller.clone())).await
    };
    let handshake_mode = match transport {
        UpstreamTransport::Sse { .. } => HandshakeMode::SessionsOnly,
        UpstreamTransport::Stdio { .. } | UpstreamTransport::Http { .. } => upstream.revision.handshake_mode(),
    };
    let wants_session = caller.as_ref().is_some_and(|caller| upstream.wants_session(caller));
    if wants_session && matches!(purpose, ConnectionPurpose::Owned(_)) {
        match open(transport, HandshakeMode::SessionsOnly).await {
            Ok(connection) if connection.has_session() => return Ok(connection),
            Ok(connection) => {
                connection.close(Error::new(ErrorKind::UpstreamUnavailable, "The server does not support sessions."));
            }
            Err(error) if revision::refuses_sessions(&error) => {}
            Err(error) => return Err(error),
        }
        upstream.revision.mark_stateless_only();
    }
    match (transport, open(transport, handshake_mode).await) {
        // Some servers exit if the first message is not `initialize`.
        (UpstreamTransport::Stdio { .. }, Err(UpstreamError { reason: FailureReason::ExitedEarly, .. }))
            if matches!(handshake_mode, HandshakeMode::Probe | HandshakeMode::Stateless) =>
        {
            // If it exits again, that was not the reason, and it is not started twice each time.
            upstream.revision.record_revision(false);
            open(transport, HandshakeMode::SessionsOnly).await
        }
        // Some servers ignore everything after an unknown first message. A slow one gets its full start timeout
        // now, and may still turn out to be stateless.
        (UpstreamTransport::Stdio { .. }, Err(UpstreamError { reason: FailureReason::HandshakeSilent, .. })) => {
            upstream.revision.record_revision(false);
            open(transport, HandshakeMode::Sessions).await
        }
        // A slow server that supports both revisions: the next process gets `server/discover` only.
        (UpstreamTransport::Stdio { .. }, Err(UpstreamError { reason: FailureReason::HandshakeAmbiguous, .. })) => {
            upstream.revision.record_revision(true);
            open(transport, HandshakeMode::StatelessOnly).await
        }
        // A server of 2024-11-05 refuses the POST; its event stream is at the same URL.
        (
            UpstreamTransport::Http { url, headers },
            Err(error @ UpstreamError { reason: FailureReason::TransportRefused, .. }),
        ) => {
            let legacy = UpstreamTransport::Sse { url: url.clone(), headers: headers.clone() };
            open(&legacy, HandshakeMode::SessionsOnly).await.map_err(|_| error)
        }
        (_, opened) => opened,
    }
}

async fn open_over(
    upstream: &Arc<UpstreamInner>,
    transport: &UpstreamTransport,
    handshake_mode: HandshakeMode,
    purpose: ConnectionPurpose,
    caller: Option<CallContext>,
) -> Result<Arc<Connection>, UpstreamError> {
    let notices = Arc::clone(&upstream.notices);
    let name = Arc::clone(&upstream.definition.name);
    let (closed, levels) = (upstream.closed.child_token(), Arc::clone(&upstream.levels));
    let number = upstream.connections.fetch_add(1, Ordering::Relaxed) + 1;
    let connection = Connection::new(name, number, purpose, notices, upstream.tasks.clone(), closed, levels);
    upstream.slots.track(&connection);
    match connection.purpose {
        ConnectionPurpose::Owned(_) => *connection.latest_call.lock() = caller,
        ConnectionPurpose::Shared => capability::declare(upstream, &connection, caller.as_ref()),
        ConnectionPurpose::Lists => {}
    }
    // Ends the start if this future is dropped.
    let unfinished = connection.closed.clone().drop_guard();
    let opened = tokio::select! {
        biased;
        // The transport may fail before the handshake begins, and the upstream may be closing.
        () = connection.closed.cancelled() => Err(connection.close_reason()),
        opened = attach_and_handshake(upstream, &connection, transport, handshake_mode) => opened,
    };
    match opened {
        Ok(()) => {
            unfinished.disarm();
            Ok(connection)
        }
        Err(error) => {
            connection.close(error.clone());
            if matches!(error.reason, FailureReason::HandshakeSilent | FailureReason::HandshakeAmbiguous) {
                // Two processes at once might conflict.
                let _ = tokio::time::timeout(EXIT_TIMEOUT, connection.process_exited.cancelled()).await;
            }
            Err(error)
        }
    }
}

/// Attaches the transport and performs the handshake. The start timeout excludes the time in the start queue.
async fn attach_and_handshake(
    upstream: &UpstreamInner,
    connection: &Arc<Connection>,
    transport: &UpstreamTransport,
    handshake_mode: HandshakeMode,
) -> Result<(), UpstreamError> {
    let start_timeout = upstream.environment.limits.start_timeout;
    let (start_permit, process_slot) = match transport {
        UpstreamTransport::Stdio { .. } => await_start_permit(upstream, connection)
            .await
            .map(|(start_permit, process_slot)| (Some(start_permit), Some(process_slot)))?,
        UpstreamTransport::Http { .. } | UpstreamTransport::Sse { .. } => (None, None),
    };
    let handshake = async {
        attach(upstream, connection, transport, process_slot).await?;
        handshake::perform(connection, handshake_mode, start_timeout).await
    };
    let handshake = with_start_permit(start_permit, handshake);
    tokio::time::timeout(start_timeout, handshake).await.unwrap_or_else(|_| Err(upstream.too_slow().into()))
}

/// Waits for a start permit and a process slot.
async fn await_start_permit(
    upstream: &UpstreamInner,
    connection: &Arc<Connection>,
) -> Result<(StartPermit, OwnedSemaphorePermit), Error> {
    if let Some(cooldown) = upstream.crashes.cooldown(Instant::now()) {
        let reason = format!("`{}` keeps exiting soon after it starts.", upstream.definition.name);
        let error = Error::new(ErrorKind::UpstreamUnavailable, reason).after(cooldown);
        return Err(error.hint(format!("The next start is in {} s.", cooldown.as_secs() + 1)));
    }
    let _queued = CountGuard::new(&upstream.queued);
    let start_permit = upstream.environment.spawner.start_limiter.take(&upstream.waiting_requests).await;
    let process_slot = upstream.environment.spawner.capacity.process_slot(connection).await?;
    Ok((start_permit, process_slot))
}

async fn attach(
    upstream: &UpstreamInner,
    connection: &Arc<Connection>,
    transport: &UpstreamTransport,
    process_slot: Option<OwnedSemaphorePermit>,
) -> Result<(), UpstreamError> {
    let environment = &upstream.environment;
    let authorized_client = || AuthorizedClient {
        name: Arc::clone(&upstream.definition.name),
        client: environment.client.clone(),
        authorization: upstream.authorization.clone(),
    };
    let context = || TransportContext {
        name: Arc::clone(&upstream.definition.name),
        closed: connection.closed.clone(),
        tasks: connection.tasks.clone(),
        handshake_steps: upstream.handshake_steps.clone(),
        answer_bytes: environment.limits.answer_bytes,
    };
    match transport {
        UpstreamTransport::Stdio { command, args, env, cwd, inherit_env } => {
            let process_slot =
                process_slot.ok_or_else(|| Error::new(ErrorKind::Internal, "A program was started without a slot."))?;
            let launch =
                ProcessLaunch { command, args, env, cwd: cwd.as_deref(), inherit_env: *inherit_env, process_slot };
            let longest = environment.limits.stdio_line();
            let records = (&upstream.stderr, &upstream.crashes);
            Ok(stdio::connect(connection, launch, &environment.spawner, records, longest).await?)
        }
        UpstreamTransport::Http { url, headers } => {
            let receiver = Arc::downgrade(connection);
            let receive = Box::new(move |message: &Bytes, id| {
                if let Some(connection) = receiver.upgrade() {
                    inbound::receive(&connection, message, id);
                }
            });
            let sender = HttpSender::new(context(), authorized_client(), url.clone(), headers.clone(), receive);
            connection.attach(Outbound::Http(sender));
            Ok(())
        }
        UpstreamTransport::Sse { url, headers } => {
            let opened = sse::connect(context(), authorized_client(), url.clone(), headers.clone()).await;
            let (sender, stream) = opened?;
            connection.attach(Outbound::Sse(sender.clone()));
            let receiver = Arc::clone(connection);
            connection.tasks.spawn(async move {
                let receive = |message: &Bytes| inbound::receive(&receiver, message, None);
                if let Some(reason) = sender.read_events(stream, receive).await {
                    receiver.close_broken(reason);
                }
            });
            Ok(())
        }
    }
}

/// Runs `work` while holding the start permit, which is released after a while even if the work goes on.
async fn with_start_permit<T>(start_permit: Option<StartPermit>, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    if let Ok(done) = tokio::time::timeout(START_PERMIT_TIME, &mut work).await {
        return done;
    }
    drop(start_permit);
    work.await
}

pub(crate) fn failing_state(error: &Error, answers: bool) -> SourceState {
    let cause = error.cause.as_deref().map(ToOwned::to_owned);
    SourceState::Failing { reason: error.message.to_string(), cause, answers }
}

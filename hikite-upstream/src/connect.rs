//! Opens a connection to an upstream over its transport, in the revision that the server speaks.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::listing::Listing;
use hikite_core::source::{CallContext, SourceState};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::authorized_client::AuthorizedClient;
use crate::call::CountGuard;
use crate::connection::{Connection, ConnectionPurpose};
use crate::definition::UpstreamTransport;
use crate::error::{FailureReason, UpstreamError};
use crate::process::ProcessLaunch;
use crate::revision::{self, HandshakeMode};
use crate::spawner::StartPermit;
use crate::upstream::UpstreamInner;
use crate::{http, sse, stdio};

/// A start that takes longer continues but releases its permit for others: it may hang or be downloading.
const START_PERMIT_TIME: Duration = Duration::from_secs(10);
/// Timeout for the exit of a process that is being replaced.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

impl UpstreamInner {
    /// Opens and initializes a connection. The server can ask the session of the call it is opened for even before that
    /// call is sent.
    pub(crate) async fn open(
        self: &Arc<Self>,
        purpose: ConnectionPurpose,
        caller: Option<CallContext>,
    ) -> Result<Arc<Connection>, UpstreamError> {
        *self.state.lock() = SourceState::Starting;
        let opened = self.open_as_defined(purpose, caller).await;
        let opened = opened.map_err(UpstreamError::into_connect_error);
        *self.state.lock() = match &opened {
            Ok(_) => SourceState::Idle,
            Err(error) => failing_state(&error.error, false),
        };
        let connection = opened?;
        connection.touch();
        if let Some(authorization) = &self.authorization {
            authorization.opened();
        }
        self.record_revision(&connection);
        self.compare_lists(&connection).await;
        self.send_log_level(&connection).await;
        if matches!(connection.purpose, ConnectionPurpose::Shared)
            && self.changed_while_running.swap(false, Ordering::Relaxed)
        {
            connection.reread_lists();
        }
        let old = self.listing.load().as_ref().is_some_and(|listing| self.is_old(listing));
        if old && !matches!(connection.purpose, ConnectionPurpose::Lists) {
            self.stale.notify_one();
        }
        Ok(connection)
    }

    /// Caches the revision. If the version of a server with sessions changed, the next handshake probes again.
    fn record_revision(&self, connection: &Connection) {
        let (Some(initialize_result), known) = (connection.initialize_result(), self.listing.load_full()) else {
            return;
        };
        let version = known.as_ref().and_then(|known| known.version());
        if version.is_some() && version != initialize_result.info.text("version") && !connection.is_stateless() {
            return self.forget_revision();
        }
        // Servers that support both revisions are used statelessly by all other sessions.
        if self.revision.may_support_sessions() && matches!(connection.purpose, ConnectionPurpose::Owned(_)) {
            return;
        }
        self.revision.record_revision(connection.is_stateless());
        let revision = Some(initialize_result.protocol_version.clone());
        if let Some(known) = known.filter(|known| known.revision != revision) {
            self.store_listing(Listing { revision, ..(*known).clone() });
        }
    }

    async fn open_as_defined(
        self: &Arc<Self>,
        purpose: ConnectionPurpose,
        caller: Option<CallContext>,
    ) -> Result<Arc<Connection>, UpstreamError> {
        let transport = &self.definition.transport;
        let open = async |transport: &UpstreamTransport, handshake_mode: HandshakeMode| {
            // Boxed because it is awaited in several branches.
            Box::pin(self.open_over(transport, handshake_mode, purpose.clone(), caller.clone())).await
        };
        let handshake_mode = match transport {
            UpstreamTransport::Sse { .. } => HandshakeMode::SessionsOnly,
            UpstreamTransport::Stdio { .. } | UpstreamTransport::Http { .. } => self.revision.handshake_mode(),
        };
        let wants_session = caller.as_ref().is_some_and(|caller| self.wants_session(caller));
        if wants_session && matches!(purpose, ConnectionPurpose::Owned(_)) {
            match open(transport, HandshakeMode::SessionsOnly).await {
                Ok(connection) if connection.has_session() => return Ok(connection),
                Ok(connection) => {
                    connection
                        .close(Error::new(ErrorKind::UpstreamUnavailable, "The server does not support sessions."));
                }
                Err(error) if revision::refuses_sessions(&error) => {}
                Err(error) => return Err(error),
            }
            self.revision.mark_stateless_only();
        }
        match (transport, open(transport, handshake_mode).await) {
            // Some servers exit if the first message is not `initialize`.
            (UpstreamTransport::Stdio { .. }, Err(UpstreamError { reason: FailureReason::ExitedEarly, .. }))
                if matches!(handshake_mode, HandshakeMode::Probe | HandshakeMode::Stateless) =>
            {
                // If it exits again, that was not the reason, and it is not started twice each time.
                self.revision.record_revision(false);
                open(transport, HandshakeMode::SessionsOnly).await
            }
            // Some servers ignore everything after an unknown first message. A slow one gets its full start timeout
            // now, and may still turn out to be stateless.
            (UpstreamTransport::Stdio { .. }, Err(UpstreamError { reason: FailureReason::HandshakeSilent, .. })) => {
                self.revision.record_revision(false);
                open(transport, HandshakeMode::Sessions).await
            }
            // A slow server that supports both revisions: the next process gets `server/discover` only.
            (UpstreamTransport::Stdio { .. }, Err(UpstreamError { reason: FailureReason::HandshakeAmbiguous, .. })) => {
                self.revision.record_revision(true);
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
        self: &Arc<Self>,
        transport: &UpstreamTransport,
        handshake_mode: HandshakeMode,
        purpose: ConnectionPurpose,
        caller: Option<CallContext>,
    ) -> Result<Arc<Connection>, UpstreamError> {
        let inner = Arc::downgrade(self);
        let notices = Arc::new(move |notice| {
            if let Some(inner) = inner.upgrade() {
                inner.notice(notice);
            }
        });
        let name = Arc::clone(&self.definition.name);
        let (closed, levels) = (self.closed.child_token(), Arc::clone(&self.levels));
        let number = self.connections.fetch_add(1, Ordering::Relaxed) + 1;
        let connection = Connection::new(name, number, purpose, notices, self.tasks.clone(), closed, levels);
        self.track_connection(&connection);
        match connection.purpose {
            ConnectionPurpose::Owned(_) => *connection.latest_call.lock() = caller,
            ConnectionPurpose::Shared => self.declare_capabilities(&connection, caller.as_ref()),
            ConnectionPurpose::Lists => {}
        }
        // Ends the start if this future is dropped.
        let unfinished = connection.closed.clone().drop_guard();
        let opened = tokio::select! {
            biased;
            // The transport may fail before the handshake begins, and the upstream may be closing.
            () = connection.closed.cancelled() => Err(connection.close_reason()),
            opened = self.attach_and_handshake(&connection, transport, handshake_mode) => opened,
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

    fn track_connection(&self, connection: &Arc<Connection>) {
        let mut alive = self.alive.lock();
        alive.retain(|other| other.strong_count() > 0);
        alive.push(Arc::downgrade(connection));
    }

    /// Attaches the transport and performs the handshake. The start timeout excludes the time in the start queue.
    async fn attach_and_handshake(
        &self,
        connection: &Arc<Connection>,
        transport: &UpstreamTransport,
        handshake_mode: HandshakeMode,
    ) -> Result<(), UpstreamError> {
        let start_timeout = self.environment.limits.start_timeout;
        let (start_permit, process_slot) = match transport {
            UpstreamTransport::Stdio { .. } => self
                .await_start_permit(connection)
                .await
                .map(|(start_permit, process_slot)| (Some(start_permit), Some(process_slot)))?,
            UpstreamTransport::Http { .. } | UpstreamTransport::Sse { .. } => (None, None),
        };
        let handshake = async {
            self.attach(connection, transport, process_slot).await?;
            connection.handshake(handshake_mode, start_timeout).await
        };
        let handshake = with_start_permit(start_permit, handshake);
        tokio::time::timeout(start_timeout, handshake).await.unwrap_or_else(|_| Err(self.too_slow().into()))
    }

    /// Waits for a start permit and a process slot.
    async fn await_start_permit(
        &self,
        connection: &Arc<Connection>,
    ) -> Result<(StartPermit, OwnedSemaphorePermit), Error> {
        if let Some(cooldown) = self.crashes.cooldown(Instant::now()) {
            let reason = format!("`{}` keeps exiting soon after it starts.", self.definition.name);
            let error = Error::new(ErrorKind::UpstreamUnavailable, reason).after(cooldown);
            return Err(error.hint(format!("The next start is in {} s.", cooldown.as_secs() + 1)));
        }
        let _queued = CountGuard::new(&self.queued);
        let start_permit = self.environment.spawner.start_limiter.take(&self.waiting_requests).await;
        let process_slot = self.environment.spawner.capacity.process_slot(connection).await?;
        Ok((start_permit, process_slot))
    }

    async fn attach(
        &self,
        connection: &Arc<Connection>,
        transport: &UpstreamTransport,
        process_slot: Option<OwnedSemaphorePermit>,
    ) -> Result<(), UpstreamError> {
        let environment = &self.environment;
        let authorized_client = || AuthorizedClient {
            name: Arc::clone(&self.definition.name),
            client: environment.client.clone(),
            authorization: self.authorization.clone(),
        };
        let bytes = environment.limits.answer_bytes;
        let handshake_steps = || self.handshake_steps.clone();
        match transport {
            UpstreamTransport::Stdio { command, args, env, cwd, inherit_env } => {
                let process_slot = process_slot
                    .ok_or_else(|| Error::new(ErrorKind::Internal, "A program was started without a slot."))?;
                let launch =
                    ProcessLaunch { command, args, env, cwd: cwd.as_deref(), inherit_env: *inherit_env, process_slot };
                let longest = environment.limits.stdio_line();
                let records = (&self.stderr, &self.crashes);
                Ok(stdio::connect(connection, launch, &environment.spawner, records, longest).await?)
            }
            UpstreamTransport::Http { url, headers } => {
                http::connect(connection, authorized_client(), url.clone(), headers.clone(), handshake_steps(), bytes);
                Ok(())
            }
            UpstreamTransport::Sse { url, headers } => {
                sse::connect(connection, authorized_client(), url.clone(), headers.clone(), handshake_steps(), bytes)
                    .await
            }
        }
    }

    pub(crate) fn too_slow(&self) -> Error {
        let seconds = self.environment.limits.start_timeout.as_secs();
        let error = Error::new(
            ErrorKind::UpstreamUnavailable,
            format!("`{}` did not start within {seconds} s.", self.definition.name),
        );
        let error = error.hint("Raise `limits.start_timeout` if it needs longer.");
        match self.stderr.last() {
            Some(line) => error.because(format!("last line on stderr: {line}")),
            None => error,
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

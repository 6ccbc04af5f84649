//! Opens a connection to an upstream over its transport, in the revision that the server speaks.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hikite_core::error::{Error, Kind};
use hikite_core::listing::Listing;
use hikite_core::source::{CallContext, State};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::call::{Counted, plain};
use crate::connection::{Connection, Purpose};
use crate::definition::Transport;
use crate::entry::Entry;
use crate::era::{self, Opening};
use crate::greeting::{GREETED_TWICE, MUTE};
use crate::process::Launch;
use crate::spawner::Turn;
use crate::upstream::Inner;
use crate::{http, sse, stdio};

/// A start that takes longer continues but releases its permit for others: it may hang or be downloading.
const TURN: Duration = Duration::from_secs(10);
/// Timeout for the exit of a process that is being replaced.
const GONE: Duration = Duration::from_secs(10);

impl Inner {
    /// Opens and initializes a connection. The server can ask the session of the call it is opened for even before that
    /// call is sent.
    pub(crate) async fn open(
        self: &Arc<Self>,
        purpose: Purpose,
        asker: Option<CallContext>,
    ) -> Result<Arc<Connection>, Error> {
        *self.state.lock() = State::Starting;
        let opened = self.open_as_defined(purpose, asker).await.map_err(plain);
        *self.state.lock() = match &opened {
            Ok(_) => State::Idle,
            Err(error) => failing(error, false),
        };
        let connection = opened?;
        connection.touch();
        if let Some(authorization) = &self.authorization {
            authorization.opened();
        }
        self.learn(&connection);
        self.compare(&connection).await;
        self.tell_level(&connection).await;
        if matches!(connection.purpose, Purpose::Shared)
            && self.changed_while_running.swap(false, Ordering::Relaxed)
        {
            connection.doubt_lists();
        }
        let old = self.listing.load().as_ref().is_some_and(|listing| self.is_old(listing));
        if old && !matches!(connection.purpose, Purpose::Lists) {
            self.stale.notify_one();
        }
        Ok(connection)
    }

    /// Caches the revision. If the version of a server with sessions changed, the next handshake probes again.
    fn learn(&self, connection: &Connection) {
        let (Some(welcome), known) = (connection.welcome(), self.listing.load_full()) else { return };
        let version = known.as_ref().and_then(|known| known.version());
        if version.is_some() && version != welcome.info.text("version") && !connection.is_stateless() {
            return self.forget_era();
        }
        // Servers that support both revisions are used statelessly by all other sessions.
        if self.era.may_speak_both() && matches!(connection.purpose, Purpose::Owned(_)) {
            return;
        }
        self.era.learn(connection.is_stateless());
        let revision = Some(welcome.protocol_version.clone());
        if let Some(known) = known.filter(|known| known.revision != revision) {
            self.keep(Listing { revision, ..(*known).clone() });
        }
    }

    async fn open_as_defined(
        self: &Arc<Self>,
        purpose: Purpose,
        asker: Option<CallContext>,
    ) -> Result<Arc<Connection>, Error> {
        let transport = &self.definition.transport;
        let open = async |transport: &Transport, opening: Opening| {
            // Boxed because it is awaited in several branches.
            Box::pin(self.open_over(transport, opening, purpose.clone(), asker.clone())).await
        };
        let opening = match transport {
            Transport::Sse { .. } => Opening::SessionsOnly,
            Transport::Stdio { .. } | Transport::Http { .. } => self.era.opening(),
        };
        let wants_session = asker.as_ref().is_some_and(|asker| self.wants_session(asker));
        if wants_session && matches!(purpose, Purpose::Owned(_)) {
            match open(transport, Opening::SessionsOnly).await {
                Ok(connection) if connection.has_session() => return Ok(connection),
                Ok(connection) => {
                    connection.close(Error::new(Kind::UpstreamUnavailable, "it keeps no session"));
                }
                Err(error) if era::refuses_sessions(&error) => {}
                Err(error) => return Err(error),
            }
            self.era.speaks_one();
        }
        match (transport, open(transport, opening).await) {
            // Some servers exit if the first message is not `initialize`.
            (Transport::Stdio { .. }, Err(error))
                if error.name == Some(stdio::DIED)
                    && matches!(opening, Opening::Probe | Opening::Stateless) =>
            {
                // If it exits again, that was not the reason, and it is not started twice each time.
                self.era.learn(false);
                open(transport, Opening::SessionsOnly).await
            }
            // Some servers ignore everything after an unknown first message. A slow one gets its full start timeout
            // now, and may still turn out to be stateless.
            (Transport::Stdio { .. }, Err(error)) if error.name == Some(MUTE) => {
                self.era.learn(false);
                open(transport, Opening::Sessions).await
            }
            // A slow server that supports both revisions: the next process gets `server/discover` only.
            (Transport::Stdio { .. }, Err(error)) if error.name == Some(GREETED_TWICE) => {
                self.era.learn(true);
                open(transport, Opening::StatelessOnly).await
            }
            // A server of 2024-11-05 refuses the POST; its event stream is at the same URL.
            (Transport::Http { url, headers }, Err(error)) if error.name == Some(http::REFUSED) => {
                let legacy = Transport::Sse { url: url.clone(), headers: headers.clone() };
                open(&legacy, Opening::SessionsOnly).await.map_err(|_| error)
            }
            (_, opened) => opened,
        }
    }

    async fn open_over(
        self: &Arc<Self>,
        transport: &Transport,
        opening: Opening,
        purpose: Purpose,
        asker: Option<CallContext>,
    ) -> Result<Arc<Connection>, Error> {
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
        self.note_alive(&connection);
        match connection.purpose {
            Purpose::Owned(_) => *connection.latest.lock() = asker,
            Purpose::Shared => self.declare_for(&connection, asker.as_ref()),
            Purpose::Lists => {}
        }
        // Ends the start if this future is dropped.
        let unfinished = connection.closed.clone().drop_guard();
        let opened = tokio::select! {
            biased;
            // The transport may fail before the handshake begins, and the upstream may be closing.
            () = connection.closed.cancelled() => Err(connection.ending()),
            opened = self.attach_and_greet(&connection, transport, opening) => opened,
        };
        match opened {
            Ok(()) => {
                unfinished.disarm();
                Ok(connection)
            }
            Err(error) => {
                connection.close(error.clone());
                if matches!(error.name, Some(MUTE | GREETED_TWICE)) {
                    // Two processes at once might conflict.
                    let _ = tokio::time::timeout(GONE, connection.gone.cancelled()).await;
                }
                Err(error)
            }
        }
    }

    fn note_alive(&self, connection: &Arc<Connection>) {
        let mut alive = self.alive.lock();
        alive.retain(|other| other.strong_count() > 0);
        alive.push(Arc::downgrade(connection));
    }

    /// Attaches the transport and performs the handshake. The start timeout excludes the time in the start queue.
    async fn attach_and_greet(
        &self,
        connection: &Arc<Connection>,
        transport: &Transport,
        opening: Opening,
    ) -> Result<(), Error> {
        let start_timeout = self.environment.limits.start_timeout;
        let (turn, place) = match transport {
            Transport::Stdio { .. } => {
                self.await_turn(connection).await.map(|(turn, place)| (Some(turn), Some(place)))?
            }
            Transport::Http { .. } | Transport::Sse { .. } => (None, None),
        };
        let greeting = async {
            self.attach(connection, transport, place).await?;
            connection.greet(opening, start_timeout).await
        };
        let greeting = keeping(turn, greeting);
        tokio::time::timeout(start_timeout, greeting).await.unwrap_or_else(|_| Err(self.too_slow()))
    }

    /// Waits for a start permit and a process slot.
    async fn await_turn(&self, connection: &Arc<Connection>) -> Result<(Turn, OwnedSemaphorePermit), Error> {
        if let Some(rest) = self.crashes.rest(Instant::now()) {
            let reason = format!("`{}` keeps ending soon after its start", self.definition.name);
            let error = Error::new(Kind::UpstreamUnavailable, reason).after(rest);
            return Err(error.hint(format!("it is started again in {} s", rest.as_secs() + 1)));
        }
        let _queued = Counted::new(&self.queued);
        let turn = self.environment.spawner.turns.take(&self.wanted).await;
        let place = self.environment.spawner.room.place(connection).await?;
        Ok((turn, place))
    }

    async fn attach(
        &self,
        connection: &Arc<Connection>,
        transport: &Transport,
        place: Option<OwnedSemaphorePermit>,
    ) -> Result<(), Error> {
        let environment = &self.environment;
        let entry = || Entry {
            name: Arc::clone(&self.definition.name),
            client: environment.client.clone(),
            authorization: self.authorization.clone(),
        };
        let bytes = environment.limits.answer_bytes;
        let settling = || self.settling.clone();
        match transport {
            Transport::Stdio { command, args, env, cwd, inherit_env } => {
                let place = place.ok_or_else(|| Error::new(Kind::Internal, "a program without a place"))?;
                let launch =
                    Launch { command, args, env, cwd: cwd.as_deref(), inherit_env: *inherit_env, place };
                let longest = environment.limits.stdio_line();
                let records = (&self.stderr, &self.crashes);
                stdio::connect(connection, launch, &environment.spawner, records, longest).await
            }
            Transport::Http { url, headers } => {
                http::connect(connection, entry(), url.clone(), headers.clone(), settling(), bytes);
                Ok(())
            }
            Transport::Sse { url, headers } => {
                sse::connect(connection, entry(), url.clone(), headers.clone(), settling(), bytes).await
            }
        }
    }

    pub(crate) fn too_slow(&self) -> Error {
        let seconds = self.environment.limits.start_timeout.as_secs();
        let error = Error::new(
            Kind::UpstreamUnavailable,
            format!("`{}` did not start within {seconds} s", self.definition.name),
        );
        let error = error.hint("raise `limits.start_timeout` if it needs longer");
        match self.stderr.last() {
            Some(line) => error.because(format!("its last words on stderr: {line}")),
            None => error,
        }
    }
}

/// Runs `work` while holding the start permit, which is released after a while even if the work goes on.
async fn keeping<T>(turn: Option<Turn>, work: impl Future<Output = T>) -> T {
    let mut work = pin!(work);
    if let Ok(done) = tokio::time::timeout(TURN, &mut work).await {
        return done;
    }
    drop(turn);
    work.await
}

pub(crate) fn failing(error: &Error, answers: bool) -> State {
    let cause = error.cause.as_deref().map(ToOwned::to_owned);
    State::Failing { reason: error.message.to_string(), cause, answers }
}

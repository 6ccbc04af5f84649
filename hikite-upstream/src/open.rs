//! How a connection to an upstream is opened: over its transport, in whichever dialect the server speaks.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hikite_core::error::{Error, Kind};
use hikite_core::listing::Listing;
use hikite_core::source::{CallContext, State};

use crate::call::plain;
use crate::connection::{Connection, Purpose};
use crate::definition::Transport;
use crate::entry::Entry;
use crate::era::Opening;
use crate::greeting::{GREETED_TWICE, MUTE};
use crate::process::Launch;
use crate::upstream::Inner;
use crate::{http, sse, stdio};

/// For a process that is started anew to be gone.
const GONE: Duration = Duration::from_secs(10);

impl Inner {
    /// Opens and initialises a connection. `asker` is the call it is opened for: an owner can be asked through
    /// it before its first call is on its way.
    pub(crate) async fn open(
        self: &Arc<Self>,
        purpose: Purpose,
        asker: Option<CallContext>,
    ) -> Result<Arc<Connection>, Error> {
        *self.state.lock() = State::Starting;
        let beside = self.is_beside(&purpose, asker.as_ref());
        let opened = self.open_as_defined(purpose, asker).await.map_err(plain);
        *self.state.lock() = match &opened {
            Ok(_) => State::Idle,
            Err(error) => failing(error, false),
        };
        let connection = opened?;
        if let Some(authorization) = &self.authorization {
            authorization.opened();
        }
        self.learn(&connection, beside);
        self.compare(&connection).await;
        self.tell_level(&connection);
        let old = self.listing.load().as_ref().is_some_and(|listing| self.is_old(listing));
        if old && !matches!(connection.purpose, Purpose::Lists) {
            self.stale.notify_one();
        }
        Ok(connection)
    }

    /// Whether a server without sessions is asked for one on this connection; what it lists, it lists without.
    fn is_beside(&self, purpose: &Purpose, asker: Option<&CallContext>) -> bool {
        matches!(purpose, Purpose::Owned(_)) && asker.is_some_and(|asker| self.wants_session(asker))
    }

    /// Remembers the revision; a server with sessions that is another version by now may have changed its mind,
    /// so that the next greeting asks again.
    fn learn(&self, connection: &Connection, beside: bool) {
        if beside {
            return self.era.learn_sessions(!connection.is_stateless());
        }
        let (Some(welcome), known) = (connection.welcome(), self.listing.load_full()) else { return };
        let version = known.as_ref().and_then(|known| known.version());
        if version.is_some() && version != welcome.info.text("version") && !connection.is_stateless() {
            return self.forget_era();
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
            self.open_over(transport, opening, purpose.clone(), asker.clone()).await
        };
        let opening = match transport {
            Transport::Sse { .. } => Opening::SessionsOnly,
            _ if self.is_beside(&purpose, asker.as_ref()) => Opening::Sessions,
            Transport::Stdio { .. } | Transport::Http { .. } => self.era.opening(),
        };
        match (transport, open(transport, opening).await) {
            // Some servers end when the first they hear is not `initialize`.
            (Transport::Stdio { .. }, Err(error))
                if error.name == Some(stdio::DIED)
                    && matches!(opening, Opening::Probe | Opening::Stateless) =>
            {
                // If it ends again, that was not the reason; then it is not started twice each time.
                self.era.learn(false);
                open(transport, Opening::SessionsOnly).await
            }
            // Others never say a word again. One that was only slow gets all its time now, and may still say that
            // it has no sessions.
            (Transport::Stdio { .. }, Err(error)) if error.name == Some(MUTE) => {
                self.era.learn(false);
                open(transport, Opening::Sessions).await
            }
            // It starts slowly and knows both: the next one hears of no session.
            (Transport::Stdio { .. }, Err(error)) if error.name == Some(GREETED_TWICE) => {
                self.era.learn(true);
                open(transport, Opening::StatelessOnly).await
            }
            // A server of 2024-11-05 refuses the POST; its stream is then at the same address.
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
        match connection.purpose {
            Purpose::Owned(_) => *connection.latest.lock() = asker,
            Purpose::Shared => self.declare_for(&connection, asker.as_ref()),
            Purpose::Lists => {}
        }
        // Whoever stops waiting for the start ends it.
        let unfinished = connection.closed.clone().drop_guard();
        let start_timeout = self.environment.limits.start_timeout;
        let greeting = async {
            self.attach(&connection, transport).await?;
            connection.greet(opening, start_timeout).await
        };
        let opened = tokio::select! {
            biased;
            // The transport may give up before there is anything to wait for, and we may be closing.
            () = connection.closed.cancelled() => Err(connection.ending()),
            opened = tokio::time::timeout(start_timeout, greeting) => {
                opened.unwrap_or_else(|_| Err(self.too_slow()))
            }
        };
        match opened {
            Ok(()) => {
                unfinished.disarm();
                Ok(connection)
            }
            Err(error) => {
                connection.close(error.clone());
                if matches!(error.name, Some(MUTE | GREETED_TWICE)) {
                    // Two at once might be in each other's way.
                    let _ = tokio::time::timeout(GONE, connection.gone.cancelled()).await;
                }
                Err(error)
            }
        }
    }

    async fn attach(&self, connection: &Arc<Connection>, transport: &Transport) -> Result<(), Error> {
        let environment = &self.environment;
        let entry = || Entry {
            name: Arc::clone(&self.definition.name),
            client: environment.client.clone(),
            authorization: self.authorization.clone(),
        };
        let bytes = environment.limits.answer_bytes;
        match transport {
            Transport::Stdio { command, args, env, cwd, inherit_env } => {
                let launch = Launch { command, args, env, cwd: cwd.as_deref(), inherit_env: *inherit_env };
                let line_bytes = environment.limits.line_bytes;
                let records = (&self.stderr, &self.crashes);
                stdio::connect(connection, launch, &environment.spawner, records, line_bytes).await
            }
            Transport::Http { url, headers } => {
                http::connect(connection, entry(), url.clone(), headers.clone(), bytes);
                Ok(())
            }
            Transport::Sse { url, headers } => {
                sse::connect(connection, entry(), url.clone(), headers.clone(), bytes).await
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

pub(crate) fn failing(error: &Error, answers: bool) -> State {
    let cause = error.cause.as_deref().map(ToOwned::to_owned);
    State::Failing { reason: error.message.to_string(), cause, answers }
}

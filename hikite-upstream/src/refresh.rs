//! How an upstream's lists are kept: fetched when there are none, when they are old, and when the server says
//! that they changed; and how a connection to it is opened.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use hikite_core::error::{Error, Kind};
use hikite_core::listing::Listing;
use hikite_core::source::{CallContext, State};
use tokio::time::Instant;

use crate::backoff::Backoff;
use crate::connection::{Connection, Purpose};
use crate::definition::{Share, Transport};
use crate::lister::{now, read_lists};
use crate::process::Launch;
use crate::upstream::Inner;
use crate::{http, sse, stdio};

/// The name of a failure to read the lists of a server that runs.
const UNREADABLE: &str = "SchemaFetchError";
/// Servers that change several lists say so several times in a row.
const SETTLE: Duration = Duration::from_millis(50);

impl Inner {
    pub(crate) async fn keep_lists(self: Arc<Self>) {
        let closed = self.closed.clone();
        closed.run_until_cancelled(self.keep_lists_until_closed()).await;
        // Nobody is to wait for lists that will not come.
        self.tried.send_replace(true);
    }

    async fn keep_lists_until_closed(self: &Arc<Self>) {
        let mut backoff = Backoff::default();
        let mut stale = self.listing.load().as_ref().is_none_or(|listing| self.is_old(listing));
        // How long a server that cries wolf is left alone.
        let mut rest = SETTLE;
        loop {
            if stale {
                let changed = self.refresh(&mut backoff).await;
                self.tried.send_replace(true);
                rest =
                    if changed { SETTLE } else { (rest * 2).clamp(SETTLE, self.environment.limits.list_ttl) };
            }
            let retry = backoff.pause(Instant::now()).map(|(pause, _)| pause);
            // With lists at hand a server that fails is left alone until somebody calls it.
            let retry = retry.filter(|_| self.listing.load().is_none());
            stale = tokio::select! {
                () = self.stale.notified() => {
                    tokio::time::sleep(rest).await;
                    true
                }
                () = tokio::time::sleep(retry.unwrap_or_default()), if retry.is_some() => true,
                () = tokio::time::sleep(self.environment.limits.list_ttl) => self.is_running(),
            };
        }
    }

    /// Whether the lists are new.
    async fn refresh(self: &Arc<Self>, backoff: &mut Backoff) -> bool {
        let name = &*self.definition.name;
        let started = Instant::now();
        tracing::info!(module = name, "connecting");
        match self.fetch().await {
            Ok(listing) => {
                backoff.succeeded();
                *self.state.lock() = State::Idle;
                let (tools, ms) = (listing.tools.len(), started.elapsed().as_millis());
                tracing::info!(module = name, tools, ms, "lists are known");
                self.keep(listing)
            }
            Err(error) => {
                tracing::warn!(module = name, "{error}");
                let answers = error.name == Some(UNREADABLE);
                *self.state.lock() = State::Failing { reason: error.message.to_string(), answers };
                backoff.failed(Instant::now(), error.message.into());
                false
            }
        }
    }

    /// Reads the lists: over the shared connection for a server that is known not to ask back, else over one
    /// of its own that declares everything, because what a server offers may depend on it.
    async fn fetch(self: &Arc<Self>) -> Result<Listing, Error> {
        let known = self.listing.load_full().filter(|_| !self.asks_back.load(Ordering::Relaxed));
        let Some(known) = known.filter(|_| self.definition.share != Share::Never) else {
            return self.fetch_all().await;
        };
        let connection = self.connection(&self.shared, None).await?;
        let shared = self.read_lists(&connection).await?;
        if shared.same_offer(&known) {
            return Ok(shared);
        }
        // Either the server changed, or it offers less to a client that cannot be asked.
        let all = self.fetch_all().await?;
        if !all.has_more_than(&shared) {
            return Ok(shared);
        }
        self.asks_back.store(true, Ordering::Relaxed);
        Ok(Listing { asks_back: true, ..shared.with_more_of(&all) })
    }

    /// Once, when the shared process first runs: does it offer all that was seen when everything was declared?
    async fn compare(&self, connection: &Connection) {
        let shared = matches!(connection.purpose, Purpose::Shared) && self.definition.transport.is_stdio();
        let Some(known) = self.listing.load_full().filter(|_| shared) else { return };
        if self.compared.swap(true, Ordering::Relaxed) || self.asks_back.load(Ordering::Relaxed) {
            return;
        }
        if let Ok(offer) = self.read_lists(connection).await
            && known.has_more_than(&offer)
        {
            self.note_asks_back();
        }
    }

    /// Reads the lists over a connection of their own that declares everything.
    async fn fetch_all(self: &Arc<Self>) -> Result<Listing, Error> {
        let connection = self.open(Purpose::Lists, None).await?;
        let lists = self.read_lists(&connection).await;
        connection.close(Error::new(Kind::UpstreamUnavailable, "the lists have been read"));
        let mut listing = lists.map_err(|error| error.named(UNREADABLE))?;
        listing.asks_back = self.asks_back.load(Ordering::Relaxed);
        Ok(listing)
    }

    async fn read_lists(&self, connection: &Connection) -> Result<Listing, Error> {
        let limit = self.environment.limits.start_timeout;
        tokio::time::timeout(limit, read_lists(connection)).await.unwrap_or_else(|_| Err(self.too_slow()))
    }

    pub(crate) fn is_old(&self, listing: &Listing) -> bool {
        now().saturating_sub(listing.fetched_at) > self.environment.limits.list_ttl.as_secs()
    }

    /// Opens and initialises a connection. `asker` is the call it is opened for: an owner can be asked through
    /// it before its first call is on its way.
    pub(crate) async fn open(
        self: &Arc<Self>,
        purpose: Purpose,
        asker: Option<CallContext>,
    ) -> Result<Arc<Connection>, Error> {
        *self.state.lock() = State::Starting;
        let opened = self.open_as_defined(purpose, asker).await;
        *self.state.lock() = match &opened {
            Ok(_) => State::Idle,
            Err(error) => State::Failing { reason: error.message.to_string(), answers: false },
        };
        let connection = opened?;
        self.compare(&connection).await;
        self.tell_level(&connection);
        let old = self.listing.load().as_ref().is_some_and(|listing| self.is_old(listing));
        if old && !matches!(connection.purpose, Purpose::Lists) {
            self.stale.notify_one();
        }
        Ok(connection)
    }

    async fn open_as_defined(
        self: &Arc<Self>,
        purpose: Purpose,
        asker: Option<CallContext>,
    ) -> Result<Arc<Connection>, Error> {
        let opened = self.open_over(&self.definition.transport, purpose.clone(), asker.clone()).await;
        match (&self.definition.transport, opened) {
            // A server of 2024-11-05 refuses the POST; its stream is then at the same address.
            (Transport::Http { url, headers }, Err(error)) if error.name == Some(http::REFUSED) => {
                let legacy = Transport::Sse { url: url.clone(), headers: headers.clone() };
                self.open_over(&legacy, purpose, asker).await.map_err(|_| error)
            }
            (_, opened) => opened,
        }
    }

    async fn open_over(
        self: &Arc<Self>,
        transport: &Transport,
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
        let connection =
            Connection::new(name, purpose, notices, self.tasks.clone(), self.closed.child_token());
        if matches!(connection.purpose, Purpose::Owned(_)) {
            *connection.latest.lock() = asker;
        }
        // Whoever stops waiting for the start ends it.
        let unfinished = connection.closed.clone().drop_guard();
        let opening = async {
            self.attach(&connection, transport).await?;
            connection.initialize().await
        };
        let opened = tokio::select! {
            biased;
            // The transport may give up before there is anything to wait for, and we may be closing.
            () = connection.closed.cancelled() => Err(connection.ending()),
            opened = tokio::time::timeout(self.environment.limits.start_timeout, opening) => {
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
                Err(error)
            }
        }
    }

    async fn attach(&self, connection: &Arc<Connection>, transport: &Transport) -> Result<(), Error> {
        let environment = &self.environment;
        let client = || environment.client.clone();
        let bytes = environment.limits.answer_bytes;
        match transport {
            Transport::Stdio { command, args, env, cwd, inherit_env } => {
                let launch = Launch { command, args, env, cwd: cwd.as_deref(), inherit_env: *inherit_env };
                let line_bytes = environment.limits.line_bytes;
                stdio::connect(connection, launch, &environment.spawner, &self.stderr, line_bytes).await
            }
            Transport::Http { url, headers } => {
                http::connect(connection, client(), url.clone(), headers.clone(), bytes);
                Ok(())
            }
            Transport::Sse { url, headers } => {
                sse::connect(connection, client(), url.clone(), headers.clone(), bytes).await
            }
        }
    }

    fn too_slow(&self) -> Error {
        let seconds = self.environment.limits.start_timeout.as_secs();
        let error = Error::new(
            Kind::UpstreamUnavailable,
            format!("`{}` did not start within {seconds} s", self.definition.name),
        );
        match self.stderr.last() {
            Some(line) => error.hint(format!("its last words on stderr: {line}")),
            None => error.hint("raise `limits.start_timeout` if it needs longer"),
        }
    }
}

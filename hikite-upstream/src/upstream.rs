//! An upstream MCP server as a `Source`: chooses the connection of each session's calls. `refresh` keeps its lists, and
//! slots hold its connections.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use hikite_core::caller::{Session, SessionId};
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::level::Level;
use hikite_core::limits::Limits;
use hikite_core::listing::{Cleaned, ListCache, Listing};
use hikite_core::source::{BoxFuture, CallContext, Event, Invocation, Listener, Method, Source, State};
use hikite_egress::Client;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::annotation::Annotations;
use crate::call::Counted;
use crate::connection::{Connection, Notice, Purpose};
use crate::crash::Crashes;
use crate::definition::{Definition, Share, Transport};
use crate::era::Memory;
use crate::level::Levels;
use crate::oauth::Authorization;
use crate::offer::OwnLists;
use crate::settling::Settling;
use crate::slot::{Attempt, Slot};
use crate::spawner::Spawner;
use crate::stderr::StderrRing;
use crate::tasks::place::Places;

/// Time for a server to accept a log level before the next request.
const LEVEL_TOLD: Duration = Duration::from_secs(1);

/// Dependencies shared by all upstreams.
#[derive(Clone)]
pub struct Environment {
    pub spawner: Spawner,
    pub client: Client,
    pub cache: Arc<dyn ListCache>,
    pub limits: Arc<Limits>,
}

impl std::fmt::Debug for Environment {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Environment").finish_non_exhaustive()
    }
}

#[derive(Clone, Debug)]
pub struct Upstream {
    pub(crate) inner: Arc<Inner>,
}

pub(crate) struct Inner {
    pub(crate) definition: Definition,
    pub(crate) environment: Environment,
    pub(crate) listener: Listener,
    /// OAuth state of a remote server with a login.
    pub(crate) authorization: Option<Arc<Authorization>>,
    pub(crate) listing: ArcSwapOption<Listing>,
    pub(crate) asks_back: AtomicBool,
    /// Set once the first attempt to fetch the lists is over.
    pub(crate) tried: watch::Sender<bool>,
    pub(crate) stale: Notify,
    /// Requests the lists at once, regardless of the backoff.
    pub(crate) restarted: Notify,
    pub(crate) shared: Arc<Slot>,
    pub(crate) owned: Mutex<HashMap<SessionId, Arc<Slot>>>,
    pub(crate) state: Mutex<State>,
    pub(crate) stderr: Arc<StderrRing>,
    pub(crate) crashes: Arc<Crashes>,
    pub(crate) tasks: TaskTracker,
    pub(crate) closed: CancellationToken,
    pub(crate) levels: Arc<Levels>,
    /// Kind of revision last spoken.
    pub(crate) era: Memory,
    /// Handshake steps that were late.
    pub(crate) settling: Settling,
    /// Call annotations of its tools.
    pub(crate) annotations: ArcSwap<Annotations>,
    /// Held while lists are fetched for a call that needs fresh ones.
    pub(crate) renewing: tokio::sync::Mutex<()>,
    /// Connections where its tasks run.
    pub(crate) places: Places,
    /// Requests that wait for its start or its lists. The queue of starts prefers servers with more of them.
    pub(crate) wanted: Arc<AtomicUsize>,
    /// Starts waiting in the queue.
    pub(crate) queued: AtomicUsize,
    /// Running calls, including those that wait for a start.
    pub(crate) calls: AtomicUsize,
    /// Number of connections opened so far.
    pub(crate) connections: AtomicU64,
    /// Connections that may still be open, even outside their slots. Their calls are cancelled on close.
    pub(crate) alive: Mutex<Vec<Weak<Connection>>>,
    /// Set once a shared connection declared more capabilities than all callers have: later ones declare none.
    pub(crate) outgrown: AtomicBool,
    /// Set once the lists of the shared connection have been compared with the full ones.
    pub(crate) compared: AtomicBool,
    /// Listings of single sessions.
    pub(crate) own_lists: OwnLists,
    /// Set if the common listing changed while the server ran, so a fresh process may offer something else.
    pub(crate) changed_while_running: AtomicBool,
    /// Held while the listing is replaced.
    keeping: Mutex<()>,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Upstream").field("definition", &self.definition).finish_non_exhaustive()
    }
}

impl Upstream {
    /// Starts an upstream. Serves the cached lists at once, and fetches them in the background if they are missing or
    /// expired.
    pub fn start(definition: Definition, environment: Environment, listener: Listener) -> Self {
        let cached = environment.cache.load(&definition.hash).map(Arc::new);
        let inner = Arc::new(Inner {
            era: Memory::of(cached.as_deref()),
            annotations: ArcSwap::from_pointee(Annotations::of(cached.as_deref())),
            renewing: tokio::sync::Mutex::default(),
            settling: Settling::default(),
            places: Places::default(),
            asks_back: AtomicBool::new(cached.as_ref().is_some_and(|listing| listing.asks_back)),
            tried: watch::Sender::new(cached.is_some()),
            listing: ArcSwapOption::new(cached),
            stale: Notify::new(),
            restarted: Notify::new(),
            shared: Arc::new(Slot::new(Purpose::Shared, None)),
            owned: Mutex::default(),
            state: Mutex::new(State::Idle),
            stderr: Arc::new(StderrRing::new(environment.limits.stderr_lines)),
            crashes: Arc::default(),
            tasks: TaskTracker::new(),
            closed: CancellationToken::new(),
            levels: Arc::default(),
            wanted: Arc::default(),
            queued: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            connections: AtomicU64::new(0),
            alive: Mutex::default(),
            outgrown: AtomicBool::new(false),
            compared: AtomicBool::new(false),
            own_lists: OwnLists::default(),
            changed_while_running: AtomicBool::new(false),
            keeping: Mutex::default(),
            authorization: authorization(&definition),
            definition,
            environment,
            listener,
        });
        inner.tasks.spawn(Arc::clone(&inner).keep_lists());
        inner.tasks.spawn(Arc::clone(&inner).stop_idle_processes());
        Self { inner }
    }
}

impl Source for Upstream {
    fn listing(&self) -> Option<Arc<Listing>> {
        self.inner.listing.load_full()
    }

    fn listing_of(&self, session: SessionId) -> Option<Arc<Listing>> {
        self.inner.own_listing(session)
    }

    fn state(&self) -> State {
        if self.inner.needs_login() {
            State::NeedsLogin { provider: Arc::clone(&self.inner.definition.name) }
        } else {
            let state = self.inner.state.lock().clone();
            // A running server whose lists cannot be read reports why.
            let is_refused = matches!(state, State::Failing { answers: true, .. });
            if self.inner.is_running() && !is_refused { State::Running } else { state }
        }
    }

    fn kind(&self) -> &'static str {
        match self.inner.definition.transport {
            Transport::Stdio { .. } => "stdio",
            Transport::Http { .. } => "http",
            Transport::Sse { .. } => "sse",
        }
    }

    fn place(&self) -> Object {
        self.inner.definition.place.clone()
    }

    fn stderr(&self) -> Vec<String> {
        self.inner.stderr.lines()
    }

    fn stop(&self) {
        self.inner.stop("stopped");
    }

    fn restart(&self) {
        self.inner.stop("restarted");
        *self.inner.state.lock() = State::Idle;
        self.inner.restarted.notify_one();
    }

    fn advice(&self) -> Option<String> {
        self.inner.definition.access.as_ref().map(|access| access.advice.clone())
    }

    fn is_queued(&self) -> bool {
        self.inner.queued.load(Ordering::Relaxed) > 0
    }

    fn first_listing(&self) -> BoxFuture<'_, ()> {
        let mut tried = self.inner.tried.subscribe();
        Box::pin(async move {
            let _wanted = Counted::new(&self.inner.wanted);
            let _ = tried.wait_for(|tried| *tried).await;
        })
    }

    fn call(&self, invocation: Invocation, context: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        Box::pin(self.inner.call(invocation, context))
    }

    fn roots_changed(&self, session: SessionId) {
        let owned = self.inner.owned.lock().get(&session).and_then(|slot| slot.live());
        if let Some(connection) = owned.filter(|connection| !connection.is_stateless()) {
            connection.notify("notifications/roots/list_changed", None);
        }
    }

    fn release(&self, session: SessionId) {
        self.inner.levels.forget(session);
        let owned = self.inner.owned.lock().remove(&session);
        if let Some(slot) = owned {
            let name = &self.inner.definition.name;
            slot.end(Error::new(Kind::Cancelled, format!("the session that `{name}` served is over")));
        }
        if let Some(connection) = self.inner.shared.standing() {
            connection.release(session);
        }
    }

    fn close(&self, drain: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.inner.close(drain))
    }
}

impl Inner {
    /// Returns the slot for the session's calls.
    pub(crate) fn slot_for(self: &Arc<Self>, method: Method, context: &CallContext) -> Arc<Slot> {
        let session = &context.session;
        let cheap = !self.definition.transport.is_stdio();
        let own = match self.definition.share {
            Share::Always => false,
            Share::Never => true,
            // A stateless connection carries no server requests, so one serves all sessions.
            Share::Auto if self.era.is_stateless() && !(may_ask(method) && self.wants_session(context)) => {
                false
            }
            Share::Auto => session.abilities.any() && (cheap || self.asks_back.load(Ordering::Relaxed)),
        };
        if !own {
            return Arc::clone(&self.shared);
        }
        let mut owned = self.owned.lock();
        if let Some(slot) = owned.get(&session.id) {
            return Arc::clone(slot);
        }
        // A process per session is optional here, so it must not displace others.
        let favour = self.definition.share == Share::Auto && !cheap;
        let claim = favour.then(|| self.environment.spawner.room.claim_own()).flatten();
        if favour && claim.is_none() {
            return Arc::clone(&self.shared);
        }
        let slot = Arc::new(Slot::new(Purpose::Owned(Arc::clone(session)), claim));
        owned.insert(session.id, Arc::clone(&slot));
        slot
    }

    /// Returns `true` if this client should get a session with a server that supports both revisions: tools written for
    /// sessions ask questions while they run, which only works in a session. Change notifications do not need one.
    pub(crate) fn wants_session(&self, context: &CallContext) -> bool {
        self.era.may_speak_both() && !context.takes_rounds && context.session.abilities.any()
    }

    /// Removes a slot that was created for a session before it was known to be unnecessary.
    pub(crate) fn drop_owned(&self, session: SessionId) {
        if let Some(slot) = self.owned.lock().remove(&session) {
            slot.end(Error::new(Kind::Cancelled, "all sessions share one connection"));
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.shared.live().is_some() || self.owned.lock().values().any(|slot| slot.live().is_some())
    }

    /// Returns the slot's connection. Opens it in a separate task, so that a caller who gives up does not abort the
    /// start for others.
    pub(crate) async fn connection(
        self: &Arc<Self>,
        slot: &Arc<Slot>,
        asker: Option<&CallContext>,
    ) -> Result<Arc<Connection>, Error> {
        self.connection_for(Attempt::Call, slot, asker).await
    }

    pub(crate) async fn connection_for(
        self: &Arc<Self>,
        attempt: Attempt,
        slot: &Arc<Slot>,
        asker: Option<&CallContext>,
    ) -> Result<Arc<Connection>, Error> {
        if let Some(connection) = slot.live() {
            return Ok(connection);
        }
        let _wanted = asker.map(|_| Counted::new(&self.wanted));
        let (inner, slot, asker) = (Arc::clone(self), Arc::clone(slot), asker.cloned());
        let opening = self.tasks.spawn(async move {
            let open = || inner.open(slot.purpose.clone(), asker);
            let opened = slot.get(&inner.definition.name, attempt, open).await;
            if let Ok(connection) = &opened {
                inner.tell_own(connection);
            }
            opened
        });
        opening.await.unwrap_or_else(|_| Err(Error::new(Kind::Internal, "the start was interrupted")))
    }

    pub(crate) async fn set_level(&self, params: &Object, session: &Session) {
        let Some(level) = params.text("level").and_then(|name| Level::parse(&name)) else { return };
        self.levels.set(session.id, level);
        let owned = self.owned.lock().get(&session.id).and_then(|slot| slot.live());
        for connection in owned.into_iter().chain(self.shared.live()) {
            self.tell_level(&connection).await;
        }
    }

    /// Sends the log level of a connection's sessions to the server, and waits for a limited time, so that it applies
    /// to the next request.
    pub(crate) async fn tell_level(&self, connection: &Arc<Connection>) {
        let level = match &connection.purpose {
            Purpose::Owned(session) => self.levels.of(session.id),
            Purpose::Shared => self.levels.most_talkative(),
            Purpose::Lists => None,
        };
        let tells = connection.can("logging") && !connection.is_stateless();
        let Some(level) = level.filter(|_| tells) else { return };
        let told =
            connection.request_aside("logging/setLevel", Object::default().with("level", level.name()));
        let _ = tokio::time::timeout(LEVEL_TOLD, told).await;
    }

    pub(crate) fn notice(self: &Arc<Self>, notice: Notice) {
        match notice {
            Notice::ListChanged(connection) => {
                self.tasks.spawn(Arc::clone(self).follow_lists(connection));
            }
            Notice::AskedBack => self.note_asks_back(),
            Notice::Event(event) => (self.listener)(event),
        }
    }

    /// Records that the server asks questions: sessions that can answer get their own connections from now on, also
    /// after a restart.
    pub(crate) fn note_asks_back(&self) {
        if self.asks_back.swap(true, Ordering::Relaxed) {
            return;
        }
        self.leave_declared();
        if let Some(listing) = self.listing.load_full() {
            self.keep(Listing { asks_back: true, ..(*listing).clone() });
        }
    }

    /// Replaces the current listing, here and in the cache. Returns `true` if its content changed.
    pub(crate) fn keep(&self, mut listing: Listing) -> bool {
        let keeping = self.keeping.lock();
        listing.asks_back |= self.asks_back.load(Ordering::Relaxed);
        if !self.era.is_known() {
            listing.revision = None;
        }
        let before = self.listing.load_full();
        let changed = before.as_ref().is_none_or(|before| !before.same_offer(&listing));
        let news = |before: &Listing| {
            self.is_old(before)
                || before.asks_back != listing.asks_back
                || before.revision != listing.revision
                || before.ttl_ms != listing.ttl_ms
                || before.cleaned != listing.cleaned
        };
        if before.as_ref().is_none_or(|before| before.cleaned != listing.cleaned) {
            self.tell_cleaned(&listing.cleaned);
        }
        if changed || before.is_some_and(|before| news(&before)) {
            self.environment.cache.store(&self.definition.hash, &listing);
        }
        if changed {
            self.annotations.store(Arc::new(Annotations::of(Some(&listing))));
        }
        let listing = Arc::new(listing);
        self.listing.store(Some(Arc::clone(&listing)));
        drop(keeping);
        if changed {
            self.forget_common(&listing);
            (self.listener)(Event::ListChanged);
        }
        changed
    }

    fn tell_cleaned(&self, cleaned: &[Cleaned]) {
        for Cleaned { kind, name, removed, left_out } in cleaned {
            let module = &*self.definition.name;
            if *left_out {
                tracing::warn!(
                    module,
                    kind,
                    name,
                    removed,
                    "left out: characters nobody sees are in its name"
                );
            } else {
                tracing::warn!(module, kind, name, removed, "characters that nobody sees were taken out");
            }
        }
    }

    /// Closes all connections and resets crashes and backoff.
    fn stop(&self, how: &str) {
        let reason = || {
            let message = format!("`{}` was {how} by an admin", self.definition.name);
            Error::new(Kind::UpstreamUnavailable, message)
        };
        for (_, slot) in self.owned.lock().drain() {
            slot.end(reason());
        }
        self.crashes.forget();
        self.shared.begin_anew(reason());
    }

    async fn stop_idle_processes(self: Arc<Self>) {
        if !self.definition.transport.is_stdio() {
            return;
        }
        let idle_stop = self.environment.limits.idle_stop;
        let mut tick = tokio::time::interval((idle_stop / 4).max(Duration::from_millis(20)));
        while self.closed.run_until_cancelled(tick.tick()).await.is_some() {
            let Some(before) = Instant::now().checked_sub(idle_stop) else { continue };
            let slots: Vec<_> =
                self.owned.lock().values().cloned().chain([Arc::clone(&self.shared)]).collect();
            for slot in slots {
                if slot.stop_if_idle(before) {
                    tracing::debug!(module = &*self.definition.name, "stopped, nobody used it");
                }
            }
        }
    }

    async fn close(&self, drain: Duration) {
        let slots: Vec<_> =
            self.owned.lock().drain().map(|(_, slot)| slot).chain([Arc::clone(&self.shared)]).collect();
        let busy = || self.calls.load(Ordering::Relaxed) > 0;
        let deadline = Instant::now() + drain;
        while busy() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let reason = || {
            let name = &self.definition.name;
            Error::new(Kind::UpstreamUnavailable, format!("`{name}` is being shut down"))
        };
        for slot in &slots {
            slot.end(reason());
        }
        // Closed one by one before the common token, so that each server receives its cancellations.
        let alive: Vec<_> =
            self.alive.lock().drain(..).filter_map(|connection| connection.upgrade()).collect();
        for connection in alive {
            connection.close(reason());
        }
        self.closed.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Returns the OAuth state of a remote server with a login.
fn authorization(definition: &Definition) -> Option<Arc<Authorization>> {
    let (Transport::Http { url, .. } | Transport::Sse { url, .. }) = &definition.transport else {
        return None;
    };
    let access = definition.access.clone()?;
    Some(Arc::new(Authorization::new(Arc::clone(&definition.name), url.clone(), access)))
}

/// Returns `true` for methods whose server may ask questions.
fn may_ask(method: Method) -> bool {
    matches!(method, Method::CallTool | Method::GetPrompt | Method::ReadResource)
}

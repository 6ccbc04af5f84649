//! One upstream server as a source: which connection a session's call takes, and what happens when there is
//! none yet. Its lists are kept by `refresh`, its connections by their slots.

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

/// For a server to take a log level before it is asked something else.
const LEVEL_TOLD: Duration = Duration::from_secs(1);

/// What all upstreams share.
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
    /// The way in, for a remote server that may want a login.
    pub(crate) authorization: Option<Arc<Authorization>>,
    pub(crate) listing: ArcSwapOption<Listing>,
    pub(crate) asks_back: AtomicBool,
    /// Whether the first attempt to get the lists is over.
    pub(crate) tried: watch::Sender<bool>,
    pub(crate) stale: Notify,
    /// Somebody wants the lists at once, whatever failed before.
    pub(crate) restarted: Notify,
    pub(crate) shared: Arc<Slot>,
    pub(crate) owned: Mutex<HashMap<SessionId, Arc<Slot>>>,
    pub(crate) state: Mutex<State>,
    pub(crate) stderr: Arc<StderrRing>,
    pub(crate) crashes: Arc<Crashes>,
    pub(crate) tasks: TaskTracker,
    pub(crate) closed: CancellationToken,
    pub(crate) levels: Arc<Levels>,
    /// The kind of revision it was last spoken to in.
    pub(crate) era: Memory,
    /// Which steps of its handshakes it let wait.
    pub(crate) settling: Settling,
    /// How its tools want to be called.
    pub(crate) annotations: ArcSwap<Annotations>,
    /// Held while lists are fetched because a call needs fresh ones.
    pub(crate) renewing: tokio::sync::Mutex<()>,
    /// Where its tasks run.
    pub(crate) places: Places,
    /// Requests that wait for it to start or to tell its lists; those of many servers that most wait for start first.
    pub(crate) wanted: Arc<AtomicUsize>,
    /// Starts that wait for those of others.
    pub(crate) queued: AtomicUsize,
    /// Calls under way, those that wait for a start included.
    pub(crate) calls: AtomicUsize,
    /// Connections there have been.
    pub(crate) connections: AtomicU64,
    /// Those that may still be there, also out of their slots: whatever runs on them is cancelled at the end.
    pub(crate) alive: Mutex<Vec<Weak<Connection>>>,
    /// Whether a shared connection declared more than all its callers can: none declares anything again.
    pub(crate) outgrown: AtomicBool,
    /// Whether the offer on the shared connection has been held against the full one.
    pub(crate) compared: AtomicBool,
    /// Lists that single sessions are offered.
    pub(crate) own_lists: OwnLists,
    /// Whether what is offered to everybody is more than a server that has just started is known to offer.
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
    /// Serves the cached lists at once; fetches them in the background where there are none or they are old.
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
            // One that runs and whose lists cannot be taken says why.
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
    /// The slot that the session's calls go through.
    pub(crate) fn slot_for(self: &Arc<Self>, method: Method, context: &CallContext) -> Arc<Slot> {
        let session = &context.session;
        let cheap = !self.definition.transport.is_stdio();
        let own = match self.definition.share {
            Share::Always => false,
            Share::Never => true,
            // Nothing is asked through a connection without sessions, so that one serves all.
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
        // A process of its own is a favour where others wait for a place.
        let favour = self.definition.share == Share::Auto && !cheap;
        let claim = favour.then(|| self.environment.spawner.room.claim_own()).flatten();
        if favour && claim.is_none() {
            return Arc::clone(&self.shared);
        }
        let slot = Arc::new(Slot::new(Purpose::Owned(Arc::clone(session)), claim));
        owned.insert(session.id, Arc::clone(&slot));
        slot
    }

    /// Whether this client should have a session with a server that speaks the stateless revision, if the server knows
    /// both: what was written for sessions asks in the middle of its work, and can do so in one alone. Changes are
    /// heard of without.
    pub(crate) fn wants_session(&self, context: &CallContext) -> bool {
        self.era.may_speak_both() && !context.takes_rounds && context.session.abilities.any()
    }

    /// A slot that was made for a session before it was clear that it needs none.
    pub(crate) fn drop_owned(&self, session: SessionId) {
        if let Some(slot) = self.owned.lock().remove(&session) {
            slot.end(Error::new(Kind::Cancelled, "all sessions share one connection"));
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.shared.live().is_some() || self.owned.lock().values().any(|slot| slot.live().is_some())
    }

    /// The slot's connection, opened in a task of its own, so that a caller who gives up does not spoil the
    /// start for those who still wait.
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

    /// Tells a connection which log messages its sessions want. What is asked of the server next comes after it, unless
    /// the server is busy.
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

    /// From now on sessions that can be asked get connections of their own, and restarts remember it.
    pub(crate) fn note_asks_back(&self) {
        if self.asks_back.swap(true, Ordering::Relaxed) {
            return;
        }
        self.leave_declared();
        if let Some(listing) = self.listing.load_full() {
            self.keep(Listing { asks_back: true, ..(*listing).clone() });
        }
    }

    /// Makes a listing the current one, here and in the cache; whether it offers something new.
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

    /// Every connection goes, and with it what failed before.
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
        // One by one and before the token of all: a server hears which of its calls are cancelled.
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

/// The way into a remote server that is logged in to.
fn authorization(definition: &Definition) -> Option<Arc<Authorization>> {
    let (Transport::Http { url, .. } | Transport::Sse { url, .. }) = &definition.transport else {
        return None;
    };
    let access = definition.access.clone()?;
    Some(Arc::new(Authorization::new(Arc::clone(&definition.name), url.clone(), access)))
}

/// Requests that a server may have to ask something for.
fn may_ask(method: Method) -> bool {
    matches!(method, Method::CallTool | Method::GetPrompt | Method::ReadResource)
}

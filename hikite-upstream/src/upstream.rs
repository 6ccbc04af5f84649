//! An upstream MCP server as a `Source`: chooses the connection of each session's calls. `refresh` keeps its lists, and
//! slots hold its connections.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::{ArcSwap, ArcSwapOption};
use hikite_core::caller::{Session, SessionId};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::limits::Limits;
use hikite_core::listing::{ListCache, Listing, SanitizedItem};
use hikite_core::log_level::LogLevel;
use hikite_core::source::{
    BoxFuture, CallContext, Invocation, Source, SourceEvent, SourceListener, SourceMethod, SourceState,
};
use hikite_egress::EgressClient;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::annotation::Annotations;
use crate::call::CountGuard;
use crate::connection::{Connection, ConnectionNotice, ConnectionPurpose};
use crate::crash::CrashTracker;
use crate::definition::{ConnectionSharing, UpstreamDefinition, UpstreamTransport};
use crate::error::UpstreamError;
use crate::handshake_steps::HandshakeSteps;
use crate::level::SessionLogLevels;
use crate::list_change::SessionListings;
use crate::oauth::Authorization;
use crate::revision::RevisionCache;
use crate::slot::{AttemptKind, UpstreamSlot};
use crate::spawner::Spawner;
use crate::stderr::StderrRing;
use crate::tasks::task_address::TaskConnections;

/// Time for a server to accept a log level before the next request.
const LOG_LEVEL_TIMEOUT: Duration = Duration::from_secs(1);

/// Dependencies shared by all upstreams.
#[derive(Clone)]
pub struct Environment {
    pub spawner: Spawner,
    pub client: EgressClient,
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
    pub(crate) inner: Arc<UpstreamInner>,
}

pub(crate) struct UpstreamInner {
    pub(crate) definition: UpstreamDefinition,
    pub(crate) environment: Environment,
    pub(crate) listener: SourceListener,
    /// OAuth state of a remote server with a login.
    pub(crate) authorization: Option<Arc<Authorization>>,
    pub(crate) listing: ArcSwapOption<Listing>,
    pub(crate) sends_requests: AtomicBool,
    /// Set once the first attempt to fetch the lists is over.
    pub(crate) first_attempt_done: watch::Sender<bool>,
    pub(crate) stale: Notify,
    /// Requests the lists at once, regardless of the backoff.
    pub(crate) restarted: Notify,
    pub(crate) shared: Arc<UpstreamSlot>,
    pub(crate) owned: Mutex<HashMap<SessionId, Arc<UpstreamSlot>>>,
    pub(crate) state: Mutex<SourceState>,
    pub(crate) stderr: Arc<StderrRing>,
    pub(crate) crashes: Arc<CrashTracker>,
    pub(crate) tasks: TaskTracker,
    pub(crate) closed: CancellationToken,
    pub(crate) levels: Arc<SessionLogLevels>,
    /// Kind of revision last spoken.
    pub(crate) revision: RevisionCache,
    /// Handshake steps that were late.
    pub(crate) handshake_steps: HandshakeSteps,
    /// Call annotations of its tools.
    pub(crate) annotations: ArcSwap<Annotations>,
    /// Held while lists are fetched for a call that needs fresh ones.
    pub(crate) renewing: tokio::sync::Mutex<()>,
    /// Connections where its tasks run.
    pub(crate) task_connections: TaskConnections,
    /// Requests that wait for its start or its lists. The queue of starts prefers servers with more of them.
    pub(crate) waiting_requests: Arc<AtomicUsize>,
    /// Starts waiting in the queue.
    pub(crate) queued: AtomicUsize,
    /// Running calls, including those that wait for a start.
    pub(crate) calls: AtomicUsize,
    /// Number of connections opened so far.
    pub(crate) connections: AtomicU64,
    /// Connections that may still be open, even outside their slots. Their calls are cancelled on close.
    pub(crate) alive: Mutex<Vec<Weak<Connection>>>,
    /// Set once a shared connection declared more capabilities than all callers have: later ones declare none.
    pub(crate) capabilities_exceeded: AtomicBool,
    /// Set once the lists of the shared connection have been compared with the full ones.
    pub(crate) compared: AtomicBool,
    /// Listings of single sessions.
    pub(crate) session_listings: SessionListings,
    /// Set if the common listing changed while the server ran, so a fresh process may offer something else.
    pub(crate) changed_while_running: AtomicBool,
    /// Held while the listing is replaced.
    listing_lock: Mutex<()>,
}

impl std::fmt::Debug for UpstreamInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamInner").field("definition", &self.definition).finish_non_exhaustive()
    }
}

impl Upstream {
    /// Starts an upstream. Serves the cached lists at once, and fetches them in the background if they are missing or
    /// expired.
    pub fn start(definition: UpstreamDefinition, environment: Environment, listener: SourceListener) -> Self {
        let cached = environment.cache.load(&definition.hash).map(Arc::new);
        let inner = Arc::new(UpstreamInner {
            revision: RevisionCache::of(cached.as_deref()),
            annotations: ArcSwap::from_pointee(Annotations::of(cached.as_deref())),
            renewing: tokio::sync::Mutex::default(),
            handshake_steps: HandshakeSteps::default(),
            task_connections: TaskConnections::default(),
            sends_requests: AtomicBool::new(cached.as_ref().is_some_and(|listing| listing.sends_requests)),
            first_attempt_done: watch::Sender::new(cached.is_some()),
            listing: ArcSwapOption::new(cached),
            stale: Notify::new(),
            restarted: Notify::new(),
            shared: Arc::new(UpstreamSlot::new(ConnectionPurpose::Shared, None)),
            owned: Mutex::default(),
            state: Mutex::new(SourceState::Idle),
            stderr: Arc::new(StderrRing::new(environment.limits.stderr_lines)),
            crashes: Arc::default(),
            tasks: TaskTracker::new(),
            closed: CancellationToken::new(),
            levels: Arc::default(),
            waiting_requests: Arc::default(),
            queued: AtomicUsize::new(0),
            calls: AtomicUsize::new(0),
            connections: AtomicU64::new(0),
            alive: Mutex::default(),
            capabilities_exceeded: AtomicBool::new(false),
            compared: AtomicBool::new(false),
            session_listings: SessionListings::default(),
            changed_while_running: AtomicBool::new(false),
            listing_lock: Mutex::default(),
            authorization: authorization(&definition),
            definition,
            environment,
            listener,
        });
        inner.tasks.spawn(Arc::clone(&inner).refresh_lists_loop());
        inner.tasks.spawn(Arc::clone(&inner).stop_idle_processes());
        Self { inner }
    }
}

impl Source for Upstream {
    fn listing(&self) -> Option<Arc<Listing>> {
        self.inner.listing.load_full()
    }

    fn listing_of(&self, session: SessionId) -> Option<Arc<Listing>> {
        self.inner.session_listing(session)
    }

    fn state(&self) -> SourceState {
        if self.inner.needs_login() {
            SourceState::NeedsLogin { provider: Arc::clone(&self.inner.definition.name) }
        } else {
            let state = self.inner.state.lock().clone();
            // A running server whose lists cannot be read reports why.
            let is_refused = matches!(state, SourceState::Failing { answers: true, .. });
            if self.inner.is_running() && !is_refused { SourceState::Running } else { state }
        }
    }

    fn kind(&self) -> &'static str {
        match self.inner.definition.transport {
            UpstreamTransport::Stdio { .. } => "stdio",
            UpstreamTransport::Http { .. } => "http",
            UpstreamTransport::Sse { .. } => "sse",
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
        *self.inner.state.lock() = SourceState::Idle;
        self.inner.restarted.notify_one();
    }

    fn login_hint(&self) -> Option<String> {
        self.inner.definition.access.as_ref().map(|access| access.login_hint.clone())
    }

    fn is_queued(&self) -> bool {
        self.inner.queued.load(Ordering::Relaxed) > 0
    }

    fn first_listing(&self) -> BoxFuture<'_, ()> {
        let mut first_attempt_done = self.inner.first_attempt_done.subscribe();
        Box::pin(async move {
            let _wanted = CountGuard::new(&self.inner.waiting_requests);
            let _ = first_attempt_done.wait_for(|first_attempt_done| *first_attempt_done).await;
        })
    }

    fn call(&self, invocation: Invocation, context: CallContext) -> BoxFuture<'_, Result<Raw, Error>> {
        // The only place where a call leaves this crate.
        Box::pin(async move { Ok(self.inner.call(invocation, context).await?) })
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
            slot.end(Error::new(ErrorKind::Cancelled, format!("The session that `{name}` served has ended.")));
        }
        if let Some(connection) = self.inner.shared.open_connection() {
            connection.release(session);
        }
    }

    fn close(&self, drain: Duration) -> BoxFuture<'_, ()> {
        Box::pin(self.inner.close(drain))
    }
}

impl UpstreamInner {
    /// Returns the slot for the session's calls.
    pub(crate) fn slot_for(self: &Arc<Self>, method: SourceMethod, context: &CallContext) -> Arc<UpstreamSlot> {
        let session = &context.session;
        let is_remote = !self.definition.transport.is_stdio();
        let own = match self.definition.share {
            ConnectionSharing::Always => false,
            ConnectionSharing::Never => true,
            // A stateless connection carries no server requests, so one serves all sessions.
            ConnectionSharing::Auto
                if self.revision.is_stateless() && !(may_request_input(method) && self.wants_session(context)) =>
            {
                false
            }
            ConnectionSharing::Auto => {
                session.client_capabilities.any() && (is_remote || self.sends_requests.load(Ordering::Relaxed))
            }
        };
        if !own {
            return Arc::clone(&self.shared);
        }
        let mut owned = self.owned.lock();
        if let Some(slot) = owned.get(&session.id) {
            return Arc::clone(slot);
        }
        // A process per session is optional here, so it must not displace others.
        let optional = self.definition.share == ConnectionSharing::Auto && !is_remote;
        let reservation = optional.then(|| self.environment.spawner.capacity.reserve()).flatten();
        if optional && reservation.is_none() {
            return Arc::clone(&self.shared);
        }
        let slot = Arc::new(UpstreamSlot::new(ConnectionPurpose::Owned(Arc::clone(session)), reservation));
        owned.insert(session.id, Arc::clone(&slot));
        slot
    }

    /// Returns `true` if this client should get a session with a server that supports both revisions: tools written for
    /// sessions ask questions while they run, which only works in a session. Change notifications do not need one.
    pub(crate) fn wants_session(&self, context: &CallContext) -> bool {
        self.revision.may_support_sessions()
            && !context.accepts_input_required
            && context.session.client_capabilities.any()
    }

    /// Removes a slot that was created for a session before it was known to be unnecessary.
    pub(crate) fn drop_owned(&self, session: SessionId) {
        if let Some(slot) = self.owned.lock().remove(&session) {
            slot.supersede();
        }
    }

    pub(crate) fn is_running(&self) -> bool {
        self.shared.live().is_some() || self.owned.lock().values().any(|slot| slot.live().is_some())
    }

    /// Returns the slot's connection. Opens it in a separate task, so that a caller who gives up does not abort the
    /// start for others.
    pub(crate) async fn connection(
        self: &Arc<Self>,
        slot: &Arc<UpstreamSlot>,
        caller: Option<&CallContext>,
    ) -> Result<Arc<Connection>, UpstreamError> {
        self.connection_for(AttemptKind::Call, slot, caller).await
    }

    pub(crate) async fn connection_for(
        self: &Arc<Self>,
        attempt: AttemptKind,
        slot: &Arc<UpstreamSlot>,
        caller: Option<&CallContext>,
    ) -> Result<Arc<Connection>, UpstreamError> {
        if let Some(connection) = slot.live() {
            return Ok(connection);
        }
        let _wanted = caller.map(|_| CountGuard::new(&self.waiting_requests));
        let (inner, slot, caller) = (Arc::clone(self), Arc::clone(slot), caller.cloned());
        let opening = self.tasks.spawn(async move {
            let open = || inner.open(slot.purpose.clone(), caller);
            let opened = slot.get(&inner.definition.name, attempt, open).await;
            if let Ok(connection) = &opened {
                inner.announce_session_listing(connection);
            }
            opened
        });
        opening.await.unwrap_or_else(|_| Err(Error::new(ErrorKind::Internal, "The start was interrupted.").into()))
    }

    pub(crate) async fn set_level(&self, params: &Object, session: &Session) {
        let Some(level) = params.text("level").and_then(|name| LogLevel::parse(&name)) else { return };
        self.levels.set(session.id, level);
        let owned = self.owned.lock().get(&session.id).and_then(|slot| slot.live());
        for connection in owned.into_iter().chain(self.shared.live()) {
            self.send_log_level(&connection).await;
        }
    }

    /// Sends the log level of a connection's sessions to the server, and waits for a limited time, so that it applies
    /// to the next request.
    pub(crate) async fn send_log_level(&self, connection: &Arc<Connection>) {
        let level = match &connection.purpose {
            ConnectionPurpose::Owned(session) => self.levels.of(session.id),
            ConnectionPurpose::Shared => self.levels.most_verbose(),
            ConnectionPurpose::Lists => None,
        };
        let tells = connection.has_capability("logging") && !connection.is_stateless();
        let Some(level) = level.filter(|_| tells) else { return };
        let sent = connection.request_detached("logging/setLevel", Object::default().with("level", level.name()));
        let _ = tokio::time::timeout(LOG_LEVEL_TIMEOUT, sent).await;
    }

    pub(crate) fn notice(self: &Arc<Self>, notice: ConnectionNotice) {
        match notice {
            ConnectionNotice::ListChanged(connection) => {
                self.tasks.spawn(Arc::clone(self).reread_announced_lists(connection));
            }
            ConnectionNotice::AskedBack => self.record_server_asks(),
            ConnectionNotice::Event(event) => (self.listener)(event),
        }
    }

    /// Records that the server asks questions: sessions that can answer get their own connections from now on, also
    /// after a restart.
    pub(crate) fn record_server_asks(&self) {
        if self.sends_requests.swap(true, Ordering::Relaxed) {
            return;
        }
        self.retire_declared();
        if let Some(listing) = self.listing.load_full() {
            self.store_listing(Listing { sends_requests: true, ..(*listing).clone() });
        }
    }

    /// Replaces the current listing, here and in the cache. Returns `true` if its content changed.
    pub(crate) fn store_listing(&self, mut listing: Listing) -> bool {
        let listing_lock = self.listing_lock.lock();
        listing.sends_requests |= self.sends_requests.load(Ordering::Relaxed);
        if !self.revision.is_known() {
            listing.revision = None;
        }
        let before = self.listing.load_full();
        let changed = before.as_ref().is_none_or(|before| !before.has_same_items(&listing));
        let news = |before: &Listing| {
            self.is_old(before)
                || before.sends_requests != listing.sends_requests
                || before.revision != listing.revision
                || before.ttl_ms != listing.ttl_ms
                || before.sanitized != listing.sanitized
        };
        if before.as_ref().is_none_or(|before| before.sanitized != listing.sanitized) {
            self.warn_sanitized(&listing.sanitized);
        }
        if changed || before.is_some_and(|before| news(&before)) {
            self.environment.cache.store(&self.definition.hash, &listing);
        }
        if changed {
            self.annotations.store(Arc::new(Annotations::of(Some(&listing))));
        }
        let listing = Arc::new(listing);
        self.listing.store(Some(Arc::clone(&listing)));
        drop(listing_lock);
        if changed {
            self.drop_redundant_listings(&listing);
            (self.listener)(SourceEvent::ListChanged);
        }
        changed
    }

    fn warn_sanitized(&self, sanitized: &[SanitizedItem]) {
        for SanitizedItem { kind, name, removed, left_out } in sanitized {
            let module = &*self.definition.name;
            if *left_out {
                tracing::warn!(module, kind, name, removed, "skipped because its name contains invisible characters");
            } else {
                tracing::warn!(module, kind, name, removed, "invisible characters were removed");
            }
        }
    }

    /// Closes all connections and resets crashes and backoff.
    fn stop(&self, how: &str) {
        let reason = || {
            let message = format!("`{}` was {how} by an admin.", self.definition.name);
            Error::new(ErrorKind::UpstreamUnavailable, message)
        };
        for (_, slot) in self.owned.lock().drain() {
            slot.end(reason());
        }
        self.crashes.forget();
        self.shared.reset(reason());
    }

    async fn stop_idle_processes(self: Arc<Self>) {
        if !self.definition.transport.is_stdio() {
            return;
        }
        let idle_stop = self.environment.limits.idle_stop;
        let mut tick = tokio::time::interval((idle_stop / 4).max(Duration::from_millis(20)));
        while self.closed.run_until_cancelled(tick.tick()).await.is_some() {
            let Some(before) = Instant::now().checked_sub(idle_stop) else { continue };
            let slots: Vec<_> = self.owned.lock().values().cloned().chain([Arc::clone(&self.shared)]).collect();
            for slot in slots {
                if slot.stop_if_idle(before) {
                    tracing::debug!(module = &*self.definition.name, "stopped because it was idle");
                }
            }
        }
    }

    async fn close(&self, drain: Duration) {
        let slots: Vec<_> = self.owned.lock().drain().map(|(_, slot)| slot).chain([Arc::clone(&self.shared)]).collect();
        let busy = || self.calls.load(Ordering::Relaxed) > 0;
        let deadline = Instant::now() + drain;
        while busy() && Instant::now() < deadline {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let reason = || {
            let name = &self.definition.name;
            Error::new(ErrorKind::UpstreamUnavailable, format!("`{name}` is shutting down."))
        };
        for slot in &slots {
            slot.end(reason());
        }
        // Closed one by one before the common token, so that each server receives its cancellations.
        let alive: Vec<_> = self.alive.lock().drain(..).filter_map(|connection| connection.upgrade()).collect();
        for connection in alive {
            connection.close(reason());
        }
        self.closed.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }
}

/// Returns the OAuth state of a remote server with a login.
fn authorization(definition: &UpstreamDefinition) -> Option<Arc<Authorization>> {
    let (UpstreamTransport::Http { url, .. } | UpstreamTransport::Sse { url, .. }) = &definition.transport else {
        return None;
    };
    let access = definition.access.clone()?;
    Some(Arc::new(Authorization::new(Arc::clone(&definition.name), url.clone(), access)))
}

/// Returns `true` for methods whose server may ask questions.
fn may_request_input(method: SourceMethod) -> bool {
    matches!(method, SourceMethod::CallTool | SourceMethod::GetPrompt | SourceMethod::ReadResource)
}

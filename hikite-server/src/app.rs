//! The state that all handlers share, built once.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use hikite_core::caller::SessionId;
use hikite_core::limits::Limits;
use hikite_core::share::Allowance;
use hikite_egress::EgressClient;
use hikite_gateway::share::SlotUsage;
use hikite_gateway::trace::Tracer;
use hikite_gateway::{Gateway, Nodes, SuspendedCalls};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::bucket::Buckets;
use crate::connection::Connections;
use crate::login_throttle::LoginThrottle;
use crate::mcp::{Channels, JournalBounds, OpenStreams, SessionTable, StatelessBackchannel, StatelessSessions};
use crate::node::peers::Peers;
use crate::oauth::attempt_limits::AttemptLimits;
use crate::settings::ServerSettings;

pub struct App {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) settings: ArcSwap<ServerSettings>,
    pub(crate) sessions: SessionTable,
    pub(crate) channels: Channels,
    /// Suspended calls and pooled sessions of stateless clients.
    pub(crate) suspended_calls: Arc<SuspendedCalls<Arc<StatelessBackchannel>>>,
    pub(crate) stateless_sessions: StatelessSessions,
    pub(crate) streams: OpenStreams,
    pub(crate) connections: Connections,
    /// Request rate per subject.
    pub(crate) buckets: Buckets<Arc<str>>,
    /// Failed authentications per address.
    pub(crate) login_throttle: LoginThrottle,
    /// Rate limits of the OAuth endpoints.
    pub(crate) attempt_limits: AttemptLimits,
    pub(crate) tasks: TaskTracker,
    /// Cancelled on shutdown: no new work starts and open streams end.
    pub(crate) stopping: CancellationToken,
    /// Cancelled before `stopping`, so that load balancers stop sending requests here.
    leaving: CancellationToken,
    /// The other nodes of the cluster, if there is one.
    peers: OnceLock<Peers>,
    pub(crate) started: Instant,
    next_session: AtomicU64,
    open_sessions: AtomicU32,
    /// Bytes of ended streams that are retained for resumption.
    pub(crate) retained_bytes: AtomicUsize,
}

impl std::fmt::Debug for App {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("App").finish_non_exhaustive()
    }
}

impl App {
    pub fn new(
        gateway: Arc<Gateway>,
        limits: Arc<Limits>,
        settings: ServerSettings,
        stopping: CancellationToken,
    ) -> Arc<Self> {
        let started = Instant::now();
        let app = Arc::new(Self {
            suspended_calls: SuspendedCalls::new(
                gateway.seal().clone(),
                gateway.process().clone(),
                Allowance::of(limits.suspended_calls, limits.caller_share),
                limits.question_timeout,
            ),
            stateless_sessions: StatelessSessions::new(&limits),
            streams: OpenStreams::new(&limits),
            connections: Connections::new(&limits),
            buckets: Buckets::default(),
            login_throttle: LoginThrottle::new(limits.failed_logins, started),
            attempt_limits: AttemptLimits::default(),
            sessions: SessionTable::new(&limits, gateway.seal().clone()),
            channels: Channels::default(),
            gateway,
            limits,
            settings: ArcSwap::from_pointee(settings),
            tasks: TaskTracker::new(),
            stopping,
            leaving: CancellationToken::new(),
            peers: OnceLock::new(),
            started,
            next_session: AtomicU64::new(1),
            open_sessions: AtomicU32::new(0),
            retained_bytes: AtomicUsize::new(0),
        });
        let suspended_calls = Arc::clone(&app.suspended_calls);
        let expiry = async move { suspended_calls.expire().await };
        app.tasks.spawn(app.stopping.clone().run_until_cancelled_owned(expiry));
        app
    }

    /// Enables tracing of requests.
    pub fn trace(&self, tracer: Arc<Tracer>) {
        self.gateway.meter().trace(tracer);
    }

    /// Joins a cluster of nodes that authenticate each other with `key`.
    pub fn join(self: &Arc<Self>, nodes: Arc<Nodes>, key: [u8; 32], client: EgressClient) {
        let app = Arc::downgrade(self);
        nodes.on_lost(move || {
            if let Some(app) = app.upgrade() {
                app.sessions.clear();
            }
        });
        self.tasks.spawn(Arc::clone(&nodes).run(self.stopping.clone()));
        let _ = self.peers.set(Peers::new(nodes, key, client));
    }

    pub(crate) fn peers(&self) -> Option<&Peers> {
        self.peers.get()
    }

    /// Prepares for shutdown: reports "not ready" long enough for load balancers to notice, then lets the other nodes
    /// take over the sessions of this one.
    pub async fn leave(&self) {
        self.leaving.cancel();
        tokio::time::sleep(self.limits.leave).await;
        if let Some(peers) = self.peers() {
            peers.nodes.leave().await;
        }
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.is_cancelled() || self.stopping.is_cancelled()
    }

    pub fn configure(&self, settings: ServerSettings) {
        self.settings.store(Arc::new(settings));
    }

    /// Ends all sessions and suspended calls.
    pub(crate) fn end_all(&self) {
        self.sessions.clear();
        self.suspended_calls.clear();
        self.stateless_sessions.clear();
    }

    /// Returns how much of a stream is retained for resumption.
    pub(crate) fn bounds(&self) -> JournalBounds {
        JournalBounds { messages: self.limits.outbox_messages.max(1), bytes: self.limits.body_bytes }
    }

    /// Returns the usage of all limits that callers or addresses share.
    pub(crate) fn usages(&self) -> Vec<SlotUsage> {
        let mut usages = self.gateway.admin().status.usages();
        usages.extend([
            self.sessions.usage(),
            self.stateless_sessions.usage(),
            self.streams.usage(),
            self.suspended_calls.usage(),
            self.connections.usage(),
        ]);
        usages
    }

    pub(crate) fn count_session(&self) {
        self.open_sessions.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn uncount_session(&self) {
        self.open_sessions.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn open_sessions(&self) -> u32 {
        self.open_sessions.load(Ordering::Relaxed)
    }

    pub(crate) fn next_session(&self) -> SessionId {
        SessionId(self.next_session.fetch_add(1, Ordering::Relaxed))
    }
}

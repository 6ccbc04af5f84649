//! What every handler shares, built once.

use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use arc_swap::ArcSwap;
use hikite_core::caller::SessionId;
use hikite_core::json::Object;
use hikite_core::limits::Limits;
use hikite_core::pattern::Pattern;
use hikite_core::rate::Rate;
use hikite_core::secret::Secret;
use hikite_core::share::Allowance;
use hikite_egress::Client;
use hikite_gateway::share::Usage;
use hikite_gateway::trace::Tracer;
use hikite_gateway::{Gateway, Nodes, Parking, Surfaces};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::Auth;
use crate::brake::Brake;
use crate::bucket::Buckets;
use crate::connection::Connections;
use crate::mcp::{Back, Bounds, Channels, Lanes, OpenStreams, Sessions};
use crate::node::Neighbours;
use crate::oauth::{Oauth, Tries};
use crate::origin::Origins;
use crate::proxy::Proxies;
use crate::tls::Tls;

pub struct App {
    pub(crate) gateway: Arc<Gateway>,
    pub(crate) limits: Arc<Limits>,
    pub(crate) settings: ArcSwap<Settings>,
    pub(crate) sessions: Sessions,
    pub(crate) channels: Channels,
    /// Of clients without a session: the calls that wait, and the lanes they run on.
    pub(crate) parking: Arc<Parking<Arc<Back>>>,
    pub(crate) lanes: Lanes,
    pub(crate) streams: OpenStreams,
    pub(crate) connections: Connections,
    /// How often each subject has come.
    pub(crate) buckets: Buckets<Arc<str>>,
    /// How many wrong tokens came from where.
    pub(crate) brake: Brake,
    /// What else could be tried out.
    pub(crate) tries: Tries,
    pub(crate) tasks: TaskTracker,
    /// Fires when we stop: no new work, open streams end.
    pub(crate) stopping: CancellationToken,
    /// Fires before: load balancers are told to send nobody here any more.
    leaving: CancellationToken,
    /// The other nodes, where there may be any.
    neighbours: OnceLock<Neighbours>,
    pub(crate) started: Instant,
    next_session: AtomicU64,
    open_sessions: AtomicU32,
    /// Bytes of streams that are over and still kept.
    pub(crate) kept_bytes: AtomicUsize,
}

/// What a reload of the config may change.
#[derive(Debug)]
pub struct Settings {
    pub auth: Auth,
    /// How people log in, and their clients; without it there is nothing of the kind.
    pub oauth: Option<Arc<Oauth>>,
    pub origins: Origins,
    /// Whose word on where a request comes from is believed.
    pub proxies: Proxies,
    /// What is shown to clients that connect; without it they are spoken to in the open.
    pub tls: Option<Tls>,
    /// The surfaces of a client that does not choose.
    pub surfaces: Surfaces,
    /// Names of clients that take no names of tools of more than 64 characters.
    pub short_names: Vec<Pattern>,
    /// How often one caller may come; without it as often as it likes.
    pub rate: Option<Rate>,
    /// Opens `/metrics` and nothing else.
    pub metrics_token: Option<Secret>,
    /// What we say of ourselves to authorization servers, where others can reach us.
    pub document: Option<Value>,
}

impl Settings {
    /// The surfaces for a client that says this of itself.
    pub(crate) fn fitting(&self, surfaces: Surfaces, client: Option<&Object>) -> Surfaces {
        if self.short_names.is_empty() {
            return surfaces;
        }
        let name = client.and_then(|client| client.text("name")).unwrap_or_default().to_ascii_lowercase();
        surfaces.with_short_names(self.short_names.iter().any(|pattern| pattern.matches(&name)))
    }
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
        settings: Settings,
        stopping: CancellationToken,
    ) -> Arc<Self> {
        let app = Arc::new(Self {
            parking: Parking::new(
                gateway.seal().clone(),
                gateway.process().clone(),
                Allowance::of(limits.parked_calls, limits.caller_share),
                limits.question_timeout,
            ),
            lanes: Lanes::new(&limits),
            streams: OpenStreams::new(&limits),
            connections: Connections::new(&limits),
            buckets: Buckets::default(),
            brake: Brake::default(),
            tries: Tries::default(),
            sessions: Sessions::new(&limits, gateway.seal().clone()),
            channels: Channels::default(),
            gateway,
            limits,
            settings: ArcSwap::from_pointee(settings),
            tasks: TaskTracker::new(),
            stopping,
            leaving: CancellationToken::new(),
            neighbours: OnceLock::new(),
            started: Instant::now(),
            next_session: AtomicU64::new(1),
            open_sessions: AtomicU32::new(0),
            kept_bytes: AtomicUsize::new(0),
        });
        let parking = Arc::clone(&app.parking);
        let expiry = async move { parking.expire().await };
        app.tasks.spawn(app.stopping.clone().run_until_cancelled_owned(expiry));
        app
    }

    /// From now on requests are traced.
    pub fn trace(&self, tracer: Arc<Tracer>) {
        self.gateway.meter().trace(tracer);
    }

    /// From now on this is one of several nodes, which know each other by `key`.
    pub fn join(self: &Arc<Self>, nodes: Arc<Nodes>, key: [u8; 32], client: Client) {
        let app = Arc::downgrade(self);
        nodes.when_lost(move || {
            if let Some(app) = app.upgrade() {
                app.sessions.clear();
            }
        });
        self.tasks.spawn(Arc::clone(&nodes).run(self.stopping.clone()));
        let _ = self.neighbours.set(Neighbours::new(nodes, key, client));
    }

    pub(crate) fn neighbours(&self) -> Option<&Neighbours> {
        self.neighbours.get()
    }

    /// Before we stop: whoever asks is told that we are about to, for as long as load balancers need to hear it, and
    /// the other nodes may take over what is held here.
    pub async fn leave(&self) {
        self.leaving.cancel();
        tokio::time::sleep(self.limits.leave).await;
        if let Some(neighbours) = self.neighbours() {
            neighbours.nodes.leave().await;
        }
    }

    pub(crate) fn is_leaving(&self) -> bool {
        self.leaving.is_cancelled() || self.stopping.is_cancelled()
    }

    pub fn configure(&self, settings: Settings) {
        self.settings.store(Arc::new(settings));
    }

    /// Ends everything that is held for clients.
    pub(crate) fn let_go(&self) {
        self.sessions.clear();
        self.parking.clear();
        self.lanes.clear();
    }

    /// How much of a stream is kept for a client that may take it up again.
    pub(crate) fn bounds(&self) -> Bounds {
        Bounds { messages: self.limits.outbox_messages.max(1), bytes: self.limits.body_bytes }
    }

    /// The use of places that callers and addresses share, and who has how many.
    pub(crate) fn usages(&self) -> Vec<Usage> {
        let mut usages = self.gateway.usages();
        usages.extend([
            self.sessions.usage(),
            self.lanes.usage(),
            self.streams.usage(),
            self.parking.usage(),
            self.connections.usage(),
        ]);
        usages
    }

    pub(crate) fn session_begins(&self) {
        self.open_sessions.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn session_ends(&self) {
        self.open_sessions.fetch_sub(1, Ordering::Relaxed);
    }

    pub(crate) fn open_sessions(&self) -> u32 {
        self.open_sessions.load(Ordering::Relaxed)
    }

    pub(crate) fn next_session(&self) -> SessionId {
        SessionId(self.next_session.fetch_add(1, Ordering::Relaxed))
    }
}

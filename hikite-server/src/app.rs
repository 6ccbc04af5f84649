//! What every handler shares, built once.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use arc_swap::ArcSwap;
use hikite_core::caller::SessionId;
use hikite_core::limits::Limits;
use hikite_core::rate::Rate;
use hikite_core::secret::Secret;
use hikite_gateway::trace::Tracer;
use hikite_gateway::{Gateway, Parking, Surfaces};
use serde_json::Value;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::Auth;
use crate::brake::Brake;
use crate::bucket::Buckets;
use crate::mcp::{Back, Bounds, Channels, Lanes, Sessions};
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
    /// How often each subject has come.
    pub(crate) buckets: Buckets<Arc<str>>,
    /// How many wrong tokens came from where.
    pub(crate) brake: Brake,
    /// What else could be tried out.
    pub(crate) tries: Tries,
    pub(crate) tasks: TaskTracker,
    /// Fires when we stop: no new work, open streams end.
    pub(crate) stopping: CancellationToken,
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
    /// How often one caller may come; without it as often as it likes.
    pub rate: Option<Rate>,
    /// Opens `/metrics` and nothing else.
    pub metrics_token: Option<Secret>,
    /// What we say of ourselves to authorization servers, where others can reach us.
    pub document: Option<Value>,
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
            parking: Parking::new(gateway.seal().clone(), limits.parked_calls, limits.question_timeout),
            lanes: Lanes::default(),
            buckets: Buckets::default(),
            brake: Brake::default(),
            tries: Tries::default(),
            sessions: Sessions::new(limits.sessions, gateway.seal().clone()),
            channels: Channels::default(),
            gateway,
            limits,
            settings: ArcSwap::from_pointee(settings),
            tasks: TaskTracker::new(),
            stopping,
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

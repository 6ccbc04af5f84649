//! State of one upstream MCP server: its definition, its lists, its slots, and the health of its processes. The
//! modules that fetch its lists, open its connections and send its calls work on it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize};
use std::sync::{Arc, Weak};

use arc_swap::{ArcSwap, ArcSwapOption};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::limits::Limits;
use hikite_core::listing::{ListCache, Listing};
use hikite_core::source::{CallContext, SourceListener, SourceState};
use hikite_egress::EgressClient;
use parking_lot::Mutex;
use tokio::sync::{Notify, watch};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::annotation::Annotations;
use crate::connection::NoticeHandler;
use crate::crash::CrashTracker;
use crate::definition::{UpstreamDefinition, UpstreamTransport};
use crate::handshake_steps::HandshakeSteps;
use crate::level::SessionLogLevels;
use crate::oauth::Authorization;
use crate::revision::RevisionCache;
use crate::slots::Slots;
use crate::spawner::Spawner;
use crate::stderr::StderrRing;
use crate::tasks::task_address::TaskConnections;

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

pub(crate) struct UpstreamInner {
    pub(crate) definition: UpstreamDefinition,
    pub(crate) environment: Environment,
    pub(crate) listener: SourceListener,
    /// Callback of its connections.
    pub(crate) notices: NoticeHandler,
    /// OAuth state of a remote server with a login.
    pub(crate) authorization: Option<Arc<Authorization>>,
    pub(crate) lists: UpstreamLists,
    pub(crate) slots: Slots,
    /// Requests the lists at once, regardless of the backoff.
    pub(crate) restarted: Notify,
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
    /// Set once a shared connection declared more capabilities than all callers have: later ones declare none.
    pub(crate) capabilities_exceeded: AtomicBool,
}

impl std::fmt::Debug for UpstreamInner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("UpstreamInner").field("definition", &self.definition).finish_non_exhaustive()
    }
}

impl UpstreamInner {
    pub(crate) fn new(
        definition: UpstreamDefinition,
        environment: Environment,
        listener: SourceListener,
        notices: NoticeHandler,
    ) -> Self {
        let cached = environment.cache.load(&definition.hash).map(Arc::new);
        Self {
            revision: RevisionCache::of(cached.as_deref()),
            lists: UpstreamLists::new(cached),
            slots: Slots::default(),
            handshake_steps: HandshakeSteps::default(),
            task_connections: TaskConnections::default(),
            restarted: Notify::new(),
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
            capabilities_exceeded: AtomicBool::new(false),
            authorization: authorization(&definition),
            definition,
            environment,
            listener,
            notices,
        }
    }

    /// Returns `true` if this client should get a session with a server that supports both revisions: tools written for
    /// sessions ask questions while they run, which only works in a session. Change notifications do not need one.
    pub(crate) fn wants_session(&self, context: &CallContext) -> bool {
        self.revision.may_support_sessions()
            && !context.accepts_input_required
            && context.session.client_capabilities.any()
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

/// Lists of an upstream, and what is known about them.
pub(crate) struct UpstreamLists {
    pub(crate) listing: ArcSwapOption<Listing>,
    /// Call annotations of its tools.
    pub(crate) annotations: ArcSwap<Annotations>,
    /// Set if the server asks questions, so that its lists may depend on the client.
    pub(crate) sends_requests: AtomicBool,
    /// Set once the first attempt to fetch the lists is over.
    pub(crate) first_attempt_done: watch::Sender<bool>,
    pub(crate) stale: Notify,
    /// Held while lists are fetched for a call that needs fresh ones.
    pub(crate) renewing: tokio::sync::Mutex<()>,
    /// Held while the listing is replaced.
    pub(crate) replacing: Mutex<()>,
    /// Set once the lists of the shared connection have been compared with the full ones.
    pub(crate) compared: AtomicBool,
    /// Set if the common listing changed while the server ran, so a fresh process may offer something else.
    pub(crate) changed_while_running: AtomicBool,
    /// Session listings in use, so that equal ones share memory.
    pub(crate) session_listings: Mutex<HashMap<u64, Weak<Listing>>>,
}

impl UpstreamLists {
    /// Begins with the cached lists.
    pub(crate) fn new(cached: Option<Arc<Listing>>) -> Self {
        Self {
            annotations: ArcSwap::from_pointee(Annotations::of(cached.as_deref())),
            sends_requests: AtomicBool::new(cached.as_ref().is_some_and(|listing| listing.sends_requests)),
            first_attempt_done: watch::Sender::new(cached.is_some()),
            listing: ArcSwapOption::new(cached),
            stale: Notify::new(),
            renewing: tokio::sync::Mutex::default(),
            replacing: Mutex::default(),
            compared: AtomicBool::new(false),
            changed_while_running: AtomicBool::new(false),
            session_listings: Mutex::default(),
        }
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

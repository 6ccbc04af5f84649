//! A live connection to a server, independent of its transport. It matches responses to requests; messages that the
//! server initiates are handled in `inbound`.

pub(crate) mod handshake;
pub(crate) mod inbound;
mod listen;
pub(crate) mod listing;
mod question;
pub(crate) mod request_meta;
pub(crate) mod retire;
pub(crate) mod subscription;

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::pin::pin;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use hikite_core::caller::{ClientCapabilities, Session, SessionId};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, CallOrigin, SourceEvent};
use hikite_wire::encode;
use hikite_wire::handshake::InitializeResult;
use hikite_wire::message::MessageId;
use http::HeaderMap;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::{FailureReason, UpstreamError};
use crate::level::SessionLogLevels;
use crate::outbound::Outbound;
use crate::pending::{PendingRequest, PendingRequests, RequestOutcome};
use crate::tasks::inbox::TaskInboxes;
use crate::tasks::running::RunningTasks;
use crate::trace_context;

use listen::ListenState;
use listing::ConnectionListing;
use request_meta::StatelessMeta;
use retire::Retirement;
use subscription::Subscriptions;

/// Purpose of a connection. It decides which client can be asked through it.
#[derive(Clone, Debug)]
pub(crate) enum ConnectionPurpose {
    /// Reads lists. Declares all capabilities and refuses questions.
    Lists,
    /// Calls of all sessions. Declares at most the capabilities of the session that started it.
    Shared,
    /// Calls of one session, whose capabilities it declares.
    Owned(Arc<Session>),
}

pub(crate) struct Connection {
    pub(crate) name: Arc<str>,
    /// Unique among the connections of one upstream.
    pub(crate) number: u64,
    pub(crate) purpose: ConnectionPurpose,
    pub(crate) pending: PendingRequests,
    pub(crate) tasks: TaskTracker,
    pub(crate) notices: NoticeHandler,
    /// Cancelled when the connection ends. Cancelling it ends the connection.
    pub(crate) closed: CancellationToken,
    /// Set if the server announced a list change while its lists were being read.
    pub(crate) lists_changed: AtomicBool,
    /// Listing state of this connection.
    pub(crate) listing_state: ConnectionListing,
    pub(crate) subscriptions: Subscriptions,
    /// Sessions that have called through this connection, and the subject of each.
    pub(crate) calling_sessions: Mutex<HashMap<SessionId, Arc<str>>>,
    /// Latest call of the owning session, used to route messages that the server sends between calls.
    pub(crate) latest_call: Mutex<Option<CallContext>>,
    /// Client capabilities of the session that a shared connection was started for.
    pub(crate) starter_capabilities: OnceLock<ClientCapabilities>,
    /// Set if the connection was opened to list an unknown server.
    pub(crate) opened_for_lists: AtomicBool,
    /// Unanswered questions of the server, by its request id.
    pub(crate) questions: Mutex<HashMap<MessageId, CancellationToken>>,
    /// The `subscriptions/listen` request of a stateless server.
    pub(crate) listening: ListenState,
    /// Tasks of a server with sessions, with their suspended questions.
    pub(crate) inboxes: TaskInboxes,
    /// Tasks that may still be running on the server.
    pub(crate) running: RunningTasks,
    /// References to the connection, and its retirement.
    pub(crate) retirement: Retirement,
    /// Cancelled when the server process has exited, where there is one.
    pub(crate) process_exited: CancellationToken,
    /// Log levels of all sessions. A stateless request carries the level of its own session.
    pub(crate) levels: Arc<SessionLogLevels>,
    outbound: OnceLock<Outbound>,
    handshake_done: OnceLock<Handshake>,
    /// Reason for the end, where it is known.
    close_reason: Mutex<Option<UpstreamError>>,
    last_used: Mutex<Instant>,
    opened: Instant,
    /// Lifetime of a connection that broke, until it is taken.
    broken_lifetime: Mutex<Option<Duration>>,
}

/// Result of the handshake.
#[derive(Debug)]
pub(crate) struct Handshake {
    pub(crate) initialize_result: InitializeResult,
    pub(crate) stateless: bool,
    pub(crate) runs_tasks: bool,
}

/// JSON-RPC "method not found", the reply of a client without the capability.
const NOT_SUPPORTED: i32 = -32601;
/// Timeout of a request whose response nobody waits for.
pub(crate) const BACKGROUND_TIMEOUT: Duration = Duration::from_secs(10);

/// Callback by which a connection reports to its upstream.
pub(crate) type NoticeHandler = Arc<dyn Fn(ConnectionNotice) + Send + Sync>;

#[derive(Debug)]
pub(crate) enum ConnectionNotice {
    /// The server announced a list change on this connection, which may not apply to others.
    ListChanged(Arc<Connection>),
    AskedBack,
    Event(SourceEvent),
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("name", &self.name).field("purpose", &self.purpose).finish_non_exhaustive()
    }
}

impl Connection {
    /// Creates a connection without a transport. `closed` is a child of the upstream's token, so a connection never
    /// outlives its upstream.
    pub(crate) fn new(
        name: Arc<str>,
        number: u64,
        purpose: ConnectionPurpose,
        notices: NoticeHandler,
        tasks: TaskTracker,
        closed: CancellationToken,
        levels: Arc<SessionLogLevels>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            number,
            purpose,
            notices,
            tasks,
            pending: PendingRequests::default(),
            closed,
            lists_changed: AtomicBool::new(false),
            listing_state: ConnectionListing::default(),
            subscriptions: Subscriptions::default(),
            calling_sessions: Mutex::default(),
            latest_call: Mutex::default(),
            starter_capabilities: OnceLock::new(),
            opened_for_lists: AtomicBool::new(false),
            questions: Mutex::default(),
            listening: ListenState::default(),
            inboxes: TaskInboxes::default(),
            running: RunningTasks::default(),
            retirement: Retirement::default(),
            process_exited: CancellationToken::new(),
            levels,
            outbound: OnceLock::new(),
            handshake_done: OnceLock::new(),
            close_reason: Mutex::default(),
            last_used: Mutex::new(Instant::now()),
            opened: Instant::now(),
            broken_lifetime: Mutex::default(),
        })
    }

    /// Attaches the transport. Called once.
    pub(crate) fn attach(&self, outbound: Outbound) {
        let _ = self.outbound.set(outbound);
    }

    /// Stores the result of the handshake, which fixes the revision.
    pub(crate) fn handshake_done(&self, handshake_done: Handshake) {
        let _ = self.handshake_done.set(handshake_done);
    }

    pub(crate) fn outbound(&self) -> Option<&Outbound> {
        self.outbound.get()
    }

    pub(crate) fn initialize_result(&self) -> Option<&InitializeResult> {
        self.handshake_done.get().map(|handshake_done| &handshake_done.initialize_result)
    }

    pub(crate) fn has_capability(&self, capability: &str) -> bool {
        self.initialize_result()
            .is_some_and(|initialize_result| initialize_result.capabilities.get(capability).is_some())
    }

    /// Returns the capabilities that the connection declares.
    pub(crate) fn declared_capabilities(&self) -> ClientCapabilities {
        match &self.purpose {
            ConnectionPurpose::Lists => ClientCapabilities::all(),
            ConnectionPurpose::Shared => self.starter_capabilities.get().cloned().unwrap_or_default(),
            ConnectionPurpose::Owned(session) => session.client_capabilities.clone(),
        }
    }

    /// Returns `true` if the server speaks the stateless revision 2026-07-28. Always `false` before the handshake.
    pub(crate) fn is_stateless(&self) -> bool {
        self.handshake_done.get().is_some_and(|handshake_done| handshake_done.stateless)
    }

    /// Returns `true` if the server has a session for this connection and can ask questions in it. Over HTTP some
    /// servers accept `initialize` without creating a session.
    pub(crate) fn has_session(&self) -> bool {
        let session_exists = match self.outbound() {
            Some(Outbound::Http(sender)) => sender.has_session(),
            Some(_) => true,
            None => false,
        };
        session_exists && !self.is_stateless()
    }

    /// Returns `true` if the server supports tool calls as tasks in its revision.
    pub(crate) fn runs_tasks(&self) -> bool {
        self.handshake_done.get().is_some_and(|handshake_done| handshake_done.runs_tasks)
    }

    /// Sends one request and waits for its response. Dropping the future cancels the request at the server.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Option<Object>,
        context: Option<CallContext>,
    ) -> Result<Raw, UpstreamError> {
        if self.is_stateless() {
            // Boxed to keep it out of the future of a call to a server with sessions.
            let request_meta = StatelessMeta::for_request(self, context.as_ref());
            let params = params.unwrap_or_default();
            return Box::pin(self.request_stateless(method, params, context, request_meta)).await;
        }
        let for_a_call = context.is_some();
        let pending_request = self.pending_request(context)?;
        let params = if for_a_call { Some(with_progress_token(params, &pending_request)) } else { params };
        self.exchange(pending_request, method, params, None).await
    }

    /// Registers a pending request.
    pub(crate) fn pending_request(&self, context: Option<CallContext>) -> Result<PendingRequest, UpstreamError> {
        if self.outbound.get().is_none() {
            return Err(self.close_reason());
        }
        let origin = context.as_ref().map(|context| context.origin.clone()).unwrap_or_default();
        if let Some(context) = &context {
            self.record_use(context);
        }
        let (id, answer) = self.pending.open(context, true).ok_or_else(|| self.not_sent())?;
        Ok(PendingRequest { id, origin, answer })
    }

    /// Registers a pending request that does not count as activity, so an idle server can still be stopped.
    pub(crate) fn background_request(&self) -> Result<PendingRequest, UpstreamError> {
        let (id, answer) = self.pending.open(None, false).ok_or_else(|| self.not_sent())?;
        Ok(PendingRequest { id, origin: CallOrigin::default(), answer })
    }

    /// Sends a registered request. `routing` holds the headers of a stateless request over HTTP.
    pub(crate) async fn exchange(
        &self,
        pending_request: PendingRequest,
        method: &str,
        params: Option<Object>,
        routing: Option<HeaderMap>,
    ) -> Result<Raw, UpstreamError> {
        let PendingRequest { id, origin, answer } = pending_request;
        // A handshake must not be cancelled; a stateless HTTP request is cancelled by closing its exchange.
        let notify_server = !matches!(method, "initialize" | "server/discover") && routing.is_none();
        let _cancel = CancelRequestOnDrop { connection: self, id, notify_server };
        if notify_server {
            self.pending.cancellable(id);
        }
        let Some(outbound) = self.outbound.get() else { return Err(self.close_reason()) };
        let message = encode::request(&MessageId::number(id), method, params.map(|params| params.raw()).as_ref());
        let outcome: RequestOutcome = {
            let mut exchange = pin!(async {
                match outbound.request(id, message, routing, &origin).await? {
                    Some(answer) => Ok(answer),
                    None => answer.await.map_err(|_| self.close_reason())?,
                }
            });
            tokio::select! {
                biased;
                outcome = &mut exchange => outcome,
                () = self.closed.cancelled() => Err(self.close_reason()),
            }
        };
        self.pending.forget(id);
        self.retirement.became_idle();
        Ok(outcome?.map_err(Error::from_upstream)?)
    }

    /// Sends a request whose response does not matter. The handle ends on the response or a timeout.
    pub(crate) fn request_detached(self: &Arc<Self>, method: &'static str, params: Object) -> JoinHandle<()> {
        let connection = Arc::clone(self);
        self.tasks.spawn(async move {
            let _ = tokio::time::timeout(BACKGROUND_TIMEOUT, connection.request(method, Some(params), None)).await;
        })
    }

    pub(crate) fn notify(&self, method: &str, params: Option<&Raw>) {
        self.send(encode::notification(method, params));
    }

    pub(crate) fn send(&self, message: Bytes) {
        if let Some(outbound) = self.outbound.get() {
            outbound.send(message);
        }
    }

    /// Answers a question of the server with an error.
    pub(crate) fn refuse(&self, id: &MessageId, reason: &str) {
        self.send(encode::error(Some(id), &encode::error_object(NOT_SUPPORTED, reason)));
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.closed.is_cancelled()
    }

    /// Sends a notification and waits for the server's receipt, if the transport confirms it.
    pub(crate) async fn deliver(&self, message: Bytes) {
        if let Some(outbound) = self.outbound.get() {
            outbound.deliver(message).await;
        }
    }

    /// Closes the connection. All pending requests fail with `reason`, and the server gets their cancellations before
    /// the transport closes.
    pub(crate) fn close(&self, reason: impl Into<UpstreamError>) {
        self.close_reason.lock().get_or_insert_with(|| reason.into());
        let unanswered = self.pending.fail_all();
        if self.is_open() {
            for id in unanswered {
                self.send_cancelled(id);
            }
        }
        self.closed.cancel();
    }

    fn send_cancelled(&self, id: u64) {
        let params =
            Object::default().with("requestId", Raw::of(&id)).with("reason", "the caller no longer waits").raw();
        self.notify("notifications/cancelled", Some(&params));
    }

    /// Closes the connection after a transport failure and records how long it lived.
    pub(crate) fn close_broken(&self, reason: impl Into<UpstreamError>) {
        if self.is_open() {
            *self.broken_lifetime.lock() = Some(self.opened.elapsed());
        }
        self.close_reason.lock().get_or_insert_with(|| reason.into());
        // No cancellations are sent: the transport is gone.
        self.closed.cancel();
        self.pending.fail_all();
    }

    /// Returns the lifetime of a connection that broke, once.
    pub(crate) fn take_broken_lifetime(&self) -> Option<Duration> {
        self.broken_lifetime.lock().take()
    }

    /// Returns `true` if the connection has a listing for its session that a new connection would not have.
    pub(crate) fn has_session_listing(&self) -> bool {
        matches!(self.purpose, ConnectionPurpose::Owned(_)) && self.listing_state.own().is_some()
    }

    /// Closes the connection if it has not been used since `before` and has no pending requests or subscriptions. A
    /// concurrent request either keeps it open or is not sent.
    pub(crate) fn close_if_idle(&self, before: Instant) -> bool {
        let unused = *self.last_used.lock() < before && self.subscriptions.is_empty();
        let unused = unused && !self.has_session_listing();
        let idle = unused && !self.is_needed() && self.pending.close_if_empty();
        if idle {
            let reason = format!("`{}` was stopped because it was idle.", self.name);
            self.close(UpstreamError::new(FailureReason::NotSent, Error::new(ErrorKind::UpstreamUnavailable, reason)));
        }
        idle
    }

    pub(crate) fn close_reason(&self) -> UpstreamError {
        self.close_reason.lock().clone().unwrap_or_else(|| {
            let reason = format!("The connection to `{}` is closed.", self.name);
            Error::new(ErrorKind::UpstreamUnavailable, reason).into()
        })
    }

    /// Returns the error of a request that came after the end.
    fn not_sent(&self) -> UpstreamError {
        UpstreamError::new(FailureReason::NotSent, self.close_reason().error)
    }

    /// Returns the start of the latest call, or the time of opening.
    pub(crate) fn last_used(&self) -> Instant {
        *self.last_used.lock()
    }

    /// Records a use of the connection.
    pub(crate) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    fn record_use(&self, context: &CallContext) {
        self.touch();
        match self.purpose {
            // A stateless server sends nothing outside a request.
            _ if self.is_stateless() => {}
            ConnectionPurpose::Owned(_) => *self.latest_call.lock() = Some(context.clone()),
            ConnectionPurpose::Shared | ConnectionPurpose::Lists => {
                let session = context.session.id;
                let is_first = match self.calling_sessions.lock().entry(session) {
                    Entry::Occupied(_) => false,
                    Entry::Vacant(entry) => {
                        entry.insert(Arc::clone(&context.session.caller.subject));
                        true
                    }
                };
                if is_first && self.listing_state.own().is_some() {
                    (self.notices)(ConnectionNotice::Event(SourceEvent::SessionListChanged {
                        sessions: vec![session],
                    }));
                }
            }
        }
    }
}

/// Cancels the request at the server if the waiting future is dropped before the response.
struct CancelRequestOnDrop<'a> {
    connection: &'a Connection,
    id: u64,
    notify_server: bool,
}

impl Drop for CancelRequestOnDrop<'_> {
    fn drop(&mut self) {
        if self.connection.pending.abandon(self.id) && self.notify_server && self.connection.is_open() {
            self.connection.send_cancelled(self.id);
        }
        self.connection.retirement.became_idle();
    }
}

/// Adds our progress token and the trace context to the params. Progress extends the deadline even if the client did
/// not request it.
fn with_progress_token(params: Option<Object>, pending_request: &PendingRequest) -> Object {
    let mut params = params.unwrap_or_default();
    let meta = params.get("_meta").and_then(Raw::object).unwrap_or_default();
    params.set(
        "_meta",
        trace_context::into_meta(meta.with("progressToken", Raw::of(&pending_request.id)), &pending_request.origin),
    );
    params
}

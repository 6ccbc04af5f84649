//! A live connection to a server, independent of its transport. It matches responses to requests; messages that the
//! server initiates are handled in `inbound`.

use std::collections::{HashMap, HashSet};
use std::pin::pin;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use hikite_core::caller::{Abilities, Session, SessionId};
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, Event, Origin};
use hikite_wire::encode;
use hikite_wire::handshake::Welcome;
use hikite_wire::message::Id;
use http::HeaderMap;
use parking_lot::Mutex;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::carry;
use crate::level::Levels;
use crate::listen::Listening;
use crate::offer::Offered;
use crate::outbound::Outbound;
use crate::pending::{Outcome, Pending};
use crate::retire::Leaving;
use crate::tasks::desk::Desks;
use crate::tasks::running::Running;

/// Purpose of a connection. It decides which client can be asked through it.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
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
    pub(crate) purpose: Purpose,
    pub(crate) pending: Pending,
    pub(crate) tasks: TaskTracker,
    pub(crate) notices: Notices,
    /// Cancelled when the connection ends. Cancelling it ends the connection.
    pub(crate) closed: CancellationToken,
    /// Set if the server announced a list change while its lists were being read.
    pub(crate) lists_changed: AtomicBool,
    /// Listing state of this connection.
    pub(crate) offered: Offered,
    pub(crate) subscriptions: Mutex<HashMap<String, HashSet<SessionId>>>,
    /// Sessions that have called through this connection.
    pub(crate) users: Mutex<HashSet<SessionId>>,
    /// Latest call of the owning session, used to route messages that the server sends between calls.
    pub(crate) latest: Mutex<Option<CallContext>>,
    /// Client capabilities of the session that a shared connection was started for.
    pub(crate) starter: OnceLock<Abilities>,
    /// Set if the connection was opened to list an unknown server.
    pub(crate) lists_first: AtomicBool,
    /// Unanswered questions of the server, by its request id.
    pub(crate) questions: Mutex<HashMap<Id, CancellationToken>>,
    /// The `subscriptions/listen` request of a stateless server.
    pub(crate) listening: Listening,
    /// Tasks of a server with sessions, with their suspended questions.
    pub(crate) desks: Desks,
    /// Tasks that may still be running on the server.
    pub(crate) running: Running,
    /// References to the connection, and its retirement.
    pub(crate) leaving: Leaving,
    /// Cancelled when the server process has exited, where there is one.
    pub(crate) gone: CancellationToken,
    /// Log levels of all sessions. A stateless request carries the level of its own session.
    pub(crate) levels: Arc<Levels>,
    outbound: OnceLock<Outbound>,
    greeted: OnceLock<Greeted>,
    /// Reason for the end, where it is known.
    ending: Mutex<Option<Error>>,
    last_used: Mutex<Instant>,
    opened: Instant,
    /// Lifetime of a connection that broke, until it is taken.
    lived: Mutex<Option<Duration>>,
}

/// Result of the handshake.
#[derive(Debug)]
pub(crate) struct Greeted {
    pub(crate) welcome: Welcome,
    pub(crate) stateless: bool,
    pub(crate) runs_tasks: bool,
}

/// A pending request: its id and the receiver of its response.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) id: u64,
    /// Origin of the call that the request belongs to.
    pub(crate) origin: Origin,
    answer: oneshot::Receiver<Outcome>,
}

/// Error name: the request was not sent, and another connection may take it.
pub(crate) const NOT_SENT: &str = "NotSent";

/// Timeout of a request whose response nobody waits for.
pub(crate) const ASIDE: Duration = Duration::from_secs(10);

/// Callback by which a connection reports to its upstream.
pub(crate) type Notices = Arc<dyn Fn(Notice) + Send + Sync>;

#[derive(Debug)]
pub(crate) enum Notice {
    /// The server announced a list change on this connection, which may not apply to others.
    ListChanged(Arc<Connection>),
    AskedBack,
    Event(Event),
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("name", &self.name)
            .field("purpose", &self.purpose)
            .finish_non_exhaustive()
    }
}

impl Connection {
    /// Creates a connection without a transport. `closed` is a child of the upstream's token, so a connection never
    /// outlives its upstream.
    pub(crate) fn new(
        name: Arc<str>,
        number: u64,
        purpose: Purpose,
        notices: Notices,
        tasks: TaskTracker,
        closed: CancellationToken,
        levels: Arc<Levels>,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            number,
            purpose,
            notices,
            tasks,
            pending: Pending::default(),
            closed,
            lists_changed: AtomicBool::new(false),
            offered: Offered::default(),
            subscriptions: Mutex::default(),
            users: Mutex::default(),
            latest: Mutex::default(),
            starter: OnceLock::new(),
            lists_first: AtomicBool::new(false),
            questions: Mutex::default(),
            listening: Listening::default(),
            desks: Desks::default(),
            running: Running::default(),
            leaving: Leaving::default(),
            gone: CancellationToken::new(),
            levels,
            outbound: OnceLock::new(),
            greeted: OnceLock::new(),
            ending: Mutex::default(),
            last_used: Mutex::new(Instant::now()),
            opened: Instant::now(),
            lived: Mutex::default(),
        })
    }

    /// Attaches the transport. Called once.
    pub(crate) fn attach(&self, outbound: Outbound) {
        let _ = self.outbound.set(outbound);
    }

    /// Stores the result of the handshake, which fixes the revision.
    pub(crate) fn greeted(&self, greeted: Greeted) {
        let _ = self.greeted.set(greeted);
    }

    pub(crate) fn outbound(&self) -> Option<&Outbound> {
        self.outbound.get()
    }

    pub(crate) fn welcome(&self) -> Option<&Welcome> {
        self.greeted.get().map(|greeted| &greeted.welcome)
    }

    pub(crate) fn can(&self, capability: &str) -> bool {
        self.welcome().is_some_and(|welcome| welcome.capabilities.get(capability).is_some())
    }

    /// Returns `true` if the server speaks the stateless revision 2026-07-28. Always `false` before the handshake.
    pub(crate) fn is_stateless(&self) -> bool {
        self.greeted.get().is_some_and(|greeted| greeted.stateless)
    }

    /// Returns `true` if the server has a session for this connection and can ask questions in it. Over HTTP some
    /// servers accept `initialize` without creating a session.
    pub(crate) fn has_session(&self) -> bool {
        let kept = match self.outbound() {
            Some(Outbound::Http(sender)) => sender.has_session(),
            Some(_) => true,
            None => false,
        };
        kept && !self.is_stateless()
    }

    /// Returns `true` if the server supports tool calls as tasks in its revision.
    pub(crate) fn runs_tasks(&self) -> bool {
        self.greeted.get().is_some_and(|greeted| greeted.runs_tasks)
    }

    /// Sends one request and waits for its response. Dropping the future cancels the request at the server.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Option<Object>,
        context: Option<CallContext>,
    ) -> Result<Raw, Error> {
        if self.is_stateless() {
            // Boxed to keep it out of the future of a call to a server with sessions.
            let claiming = self.claiming(context.as_ref());
            let params = params.unwrap_or_default();
            return Box::pin(self.request_stateless(method, params, context, claiming)).await;
        }
        let for_a_call = context.is_some();
        let ticket = self.ticket(context)?;
        let params = if for_a_call { Some(with_token(params, &ticket)) } else { params };
        self.exchange(ticket, method, params, None).await
    }

    /// Registers a pending request.
    pub(crate) fn ticket(&self, context: Option<CallContext>) -> Result<Ticket, Error> {
        if self.outbound.get().is_none() {
            return Err(self.ending());
        }
        let origin = context.as_ref().map(|context| context.origin.clone()).unwrap_or_default();
        if let Some(context) = &context {
            self.note_use(context);
        }
        let (id, answer) = self.pending.open(context, true).ok_or_else(|| self.ending().named(NOT_SENT))?;
        Ok(Ticket { id, origin, answer })
    }

    /// Registers a pending request that does not count as activity, so an idle server can still be stopped.
    pub(crate) fn background_ticket(&self) -> Result<Ticket, Error> {
        let (id, answer) = self.pending.open(None, false).ok_or_else(|| self.ending().named(NOT_SENT))?;
        Ok(Ticket { id, origin: Origin::default(), answer })
    }

    /// Sends a registered request. `routing` holds the headers of a stateless request over HTTP.
    pub(crate) async fn exchange(
        &self,
        ticket: Ticket,
        method: &str,
        params: Option<Object>,
        routing: Option<HeaderMap>,
    ) -> Result<Raw, Error> {
        let Ticket { id, origin, answer } = ticket;
        // A handshake must not be cancelled; a stateless HTTP request is cancelled by closing its exchange.
        let tell = !matches!(method, "initialize" | "server/discover") && routing.is_none();
        let _cancel = CancelOnDrop { connection: self, id, tell };
        if tell {
            self.pending.cancellable(id);
        }
        let Some(outbound) = self.outbound.get() else { return Err(self.ending()) };
        let message = encode::request(&Id::number(id), method, params.map(|params| params.raw()).as_ref());
        let outcome: Outcome = {
            let mut exchange = pin!(async {
                match outbound.request(id, message, routing, &origin).await? {
                    Some(answer) => Ok(answer),
                    None => answer.await.map_err(|_| self.ending())?,
                }
            });
            tokio::select! {
                biased;
                outcome = &mut exchange => outcome,
                () = self.closed.cancelled() => Err(self.ending()),
            }
        };
        self.pending.forget(id);
        self.rested();
        outcome?.map_err(Error::from_upstream)
    }

    /// Sends a request whose response does not matter. The handle ends on the response or a timeout.
    pub(crate) fn request_aside(self: &Arc<Self>, method: &'static str, params: Object) -> JoinHandle<()> {
        let connection = Arc::clone(self);
        self.tasks.spawn(async move {
            let _ = tokio::time::timeout(ASIDE, connection.request(method, Some(params), None)).await;
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
    pub(crate) fn close(&self, reason: Error) {
        self.ending.lock().get_or_insert(reason);
        let unanswered = self.pending.fail_all();
        if self.is_open() {
            for id in unanswered {
                self.tell_cancelled(id);
            }
        }
        self.closed.cancel();
    }

    fn tell_cancelled(&self, id: u64) {
        let params = Object::default()
            .with("requestId", Raw::of(&id))
            .with("reason", "the caller no longer waits")
            .raw();
        self.notify("notifications/cancelled", Some(&params));
    }

    /// Closes the connection after a transport failure and records how long it lived.
    pub(crate) fn broke(&self, reason: Error) {
        if self.is_open() {
            *self.lived.lock() = Some(self.opened.elapsed());
        }
        self.ending.lock().get_or_insert(reason);
        // No cancellations are sent: the transport is gone.
        self.closed.cancel();
        self.pending.fail_all();
    }

    /// Returns the lifetime of a connection that broke, once.
    pub(crate) fn broken_after(&self) -> Option<Duration> {
        self.lived.lock().take()
    }

    /// Returns `true` if the connection has a listing for its session that a new connection would not have.
    pub(crate) fn keeps_memory(&self) -> bool {
        matches!(self.purpose, Purpose::Owned(_)) && self.offered.own().is_some()
    }

    /// Closes the connection if it has not been used since `before` and has no pending requests or subscriptions. A
    /// concurrent request either keeps it open or is not sent.
    pub(crate) fn close_if_idle(&self, before: Instant) -> bool {
        let unused = *self.last_used.lock() < before && self.subscriptions.lock().is_empty();
        let unused = unused && !self.keeps_memory();
        let idle = unused && !self.is_needed() && self.pending.close_if_empty();
        if idle {
            let reason = format!("`{}` was stopped because nobody used it", self.name);
            self.close(Error::new(Kind::UpstreamUnavailable, reason).named(NOT_SENT));
        }
        idle
    }

    pub(crate) fn ending(&self) -> Error {
        self.ending.lock().clone().unwrap_or_else(|| {
            Error::new(Kind::UpstreamUnavailable, format!("the connection to `{}` is closed", self.name))
        })
    }

    /// Returns the start of the latest call, or the time of opening.
    pub(crate) fn last_used(&self) -> Instant {
        *self.last_used.lock()
    }

    /// Records a use of the connection.
    pub(crate) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    fn note_use(&self, context: &CallContext) {
        self.touch();
        match self.purpose {
            // A stateless server sends nothing outside a request.
            _ if self.is_stateless() => {}
            Purpose::Owned(_) => *self.latest.lock() = Some(context.clone()),
            Purpose::Shared | Purpose::Lists => {
                let session = context.session.id;
                let is_first = self.users.lock().insert(session);
                if is_first && self.offered.own().is_some() {
                    (self.notices)(Notice::Event(Event::OwnListChanged { sessions: vec![session] }));
                }
            }
        }
    }
}

/// Cancels the request at the server if the waiting future is dropped before the response.
struct CancelOnDrop<'a> {
    connection: &'a Connection,
    id: u64,
    tell: bool,
}

impl Drop for CancelOnDrop<'_> {
    fn drop(&mut self) {
        if self.connection.pending.abandon(self.id) && self.tell && self.connection.is_open() {
            self.connection.tell_cancelled(self.id);
        }
        self.connection.rested();
    }
}

/// Adds our progress token and the trace context to the params. Progress extends the deadline even if the client did
/// not request it.
fn with_token(params: Option<Object>, ticket: &Ticket) -> Object {
    let mut params = params.unwrap_or_default();
    let meta = params.get("_meta").and_then(Raw::object).unwrap_or_default();
    params.set("_meta", carry::into_meta(meta.with("progressToken", Raw::of(&ticket.id)), &ticket.origin));
    params
}

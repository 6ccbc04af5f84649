//! One live, initialised connection to a server, whatever carries it. Requests are matched to their answers
//! here; what the server sends of its own accord is handled in `inbound`.

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

/// What the connection was opened for; decides who can be asked through it.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// Looking at what the server offers. Declares everything, answers no question.
    Lists,
    /// Calls of every session. Declares at most what the session can that started it.
    Shared,
    /// Calls of one session, whose abilities it declares.
    Owned(Arc<Session>),
}

pub(crate) struct Connection {
    pub(crate) name: Arc<str>,
    /// No other connection of its upstream has it.
    pub(crate) number: u64,
    pub(crate) purpose: Purpose,
    pub(crate) pending: Pending,
    pub(crate) tasks: TaskTracker,
    pub(crate) notices: Notices,
    /// Fires when the connection is over, for whatever reason; firing it ends the connection.
    pub(crate) closed: CancellationToken,
    /// Whether the server said, while its lists were being read, that they changed.
    pub(crate) lists_changed: AtomicBool,
    /// What is known of its lists since it was opened.
    pub(crate) offered: Offered,
    pub(crate) subscriptions: Mutex<HashMap<String, HashSet<SessionId>>>,
    /// Sessions that have called through this connection.
    pub(crate) users: Mutex<HashSet<SessionId>>,
    /// The latest call of the owner: the way to it for what the server sends between calls.
    pub(crate) latest: Mutex<Option<CallContext>>,
    /// What the session can be asked that a shared connection was started for.
    pub(crate) starter: OnceLock<Abilities>,
    /// Whether it was opened before anything was known of its server, to list what that offers.
    pub(crate) lists_first: AtomicBool,
    /// Questions of the server that wait for an answer, by its id.
    pub(crate) questions: Mutex<HashMap<Id, CancellationToken>>,
    /// What a stateless server is asked to tell of its own accord.
    pub(crate) listening: Listening,
    /// Tasks of a server with sessions, with the questions they wait for.
    pub(crate) desks: Desks,
    /// Tasks that its server may still be at.
    pub(crate) running: Running,
    /// Who still needs it, and whether it may take anything new.
    pub(crate) leaving: Leaving,
    /// Fires when its process is gone, where it has one.
    pub(crate) gone: CancellationToken,
    /// The log levels of the sessions: a stateless request names the one of its own.
    pub(crate) levels: Arc<Levels>,
    outbound: OnceLock<Outbound>,
    greeted: OnceLock<Greeted>,
    /// Why it ended, where that is known.
    ending: Mutex<Option<Error>>,
    last_used: Mutex<Instant>,
    opened: Instant,
    /// How long it lived, told once, if it broke by itself.
    lived: Mutex<Option<Duration>>,
}

/// What is known once the server has been greeted.
#[derive(Debug)]
pub(crate) struct Greeted {
    pub(crate) welcome: Welcome,
    pub(crate) stateless: bool,
    pub(crate) runs_tasks: bool,
}

/// The place for the answer to one request.
#[derive(Debug)]
pub(crate) struct Ticket {
    pub(crate) id: u64,
    /// Where the call came in that it is for.
    pub(crate) origin: Origin,
    answer: oneshot::Receiver<Outcome>,
}

/// The name of an error that means: the request was not sent, another connection may take it.
pub(crate) const NOT_SENT: &str = "NotSent";

/// For the answer to a request that nobody waits for.
pub(crate) const ASIDE: Duration = Duration::from_secs(10);

/// What a connection reports to its upstream.
pub(crate) type Notices = Arc<dyn Fn(Notice) + Send + Sync>;

#[derive(Debug)]
pub(crate) enum Notice {
    /// The server says that its lists changed: on this connection, and perhaps on no other.
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
    /// `closed` is a child of the upstream's own token: nothing outlives the upstream.
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

    /// Gives the connection its way out; once, by the transport.
    pub(crate) fn attach(&self, outbound: Outbound) {
        let _ = self.outbound.set(outbound);
    }

    /// The server has been greeted; the dialect is settled from now on.
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

    /// Whether every request stands for itself, as in 2026-07-28. Before the greeting none does.
    pub(crate) fn is_stateless(&self) -> bool {
        self.greeted.get().is_some_and(|greeted| greeted.stateless)
    }

    /// Whether the server keeps a session for it, in which it can ask. Over HTTP some greet in the old way and know
    /// nobody afterwards.
    pub(crate) fn has_session(&self) -> bool {
        let kept = match self.outbound() {
            Some(Outbound::Http(sender)) => sender.has_session(),
            Some(_) => true,
            None => false,
        };
        kept && !self.is_stateless()
    }

    /// Whether the server runs tool calls as tasks, in the form of its dialect.
    pub(crate) fn runs_tasks(&self) -> bool {
        self.greeted.get().is_some_and(|greeted| greeted.runs_tasks)
    }

    /// Sends one request and waits for its answer. Dropping the future tells the server that it is cancelled.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Option<Object>,
        context: Option<CallContext>,
    ) -> Result<Raw, Error> {
        if self.is_stateless() {
            // Boxed, so that it takes no room in a call to a server with sessions.
            let claiming = self.claiming(context.as_ref());
            let params = params.unwrap_or_default();
            return Box::pin(self.request_stateless(method, params, context, claiming)).await;
        }
        let for_a_call = context.is_some();
        let ticket = self.ticket(context)?;
        let params = if for_a_call { Some(with_token(params, &ticket)) } else { params };
        self.exchange(ticket, method, params, None).await
    }

    /// Makes room for the answer to one request.
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

    /// The same for a request that does not keep an idle server from being stopped.
    pub(crate) fn background_ticket(&self) -> Result<Ticket, Error> {
        let (id, answer) = self.pending.open(None, false).ok_or_else(|| self.ending().named(NOT_SENT))?;
        Ok(Ticket { id, origin: Origin::default(), answer })
    }

    /// Sends the request of a ticket. `routing` are the headers of a stateless request over HTTP.
    pub(crate) async fn exchange(
        &self,
        ticket: Ticket,
        method: &str,
        params: Option<Object>,
        routing: Option<HeaderMap>,
    ) -> Result<Raw, Error> {
        let Ticket { id, origin, answer } = ticket;
        // A greeting must not be cancelled, and over HTTP a stateless request is by closing its exchange.
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

    /// Sends a request of our own whose answer does not matter; the handle ends when it is there or given up.
    pub(crate) fn request_aside(self: &Arc<Self>, method: &'static str, params: Object) -> JoinHandle<()> {
        let connection = Arc::clone(self);
        self.tasks.spawn(async move {
            let _ = tokio::time::timeout(ASIDE, connection.request(method, Some(params), None)).await;
        })
    }

    pub(crate) fn notify(&self, method: &str, params: Option<&Raw>) {
        self.send(encode::notification(method, params));
    }

    /// Sends without waiting.
    pub(crate) fn send(&self, message: Bytes) {
        if let Some(outbound) = self.outbound.get() {
            outbound.send(message);
        }
    }

    pub(crate) fn is_open(&self) -> bool {
        !self.closed.is_cancelled()
    }

    /// Sends a notification and waits until the server has it, as far as its transport can tell.
    pub(crate) async fn deliver(&self, message: Bytes) {
        if let Some(outbound) = self.outbound.get() {
            outbound.deliver(message).await;
        }
    }

    /// Ends the connection; every waiting request fails with `reason`, and its server hears that it is cancelled before
    /// the way out is closed.
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

    /// The transport broke: ends the connection, and remembers how long it lived.
    pub(crate) fn broke(&self, reason: Error) {
        if self.is_open() {
            *self.lived.lock() = Some(self.opened.elapsed());
        }
        self.ending.lock().get_or_insert(reason);
        // There is nobody left to be told that they are cancelled.
        self.closed.cancel();
        self.pending.fail_all();
    }

    /// How long it lived, if it broke by itself; told once.
    pub(crate) fn broken_after(&self) -> Option<Duration> {
        self.lived.lock().take()
    }

    /// Whether it has something for its session alone, which the next one would not have.
    pub(crate) fn keeps_memory(&self) -> bool {
        matches!(self.purpose, Purpose::Owned(_)) && self.offered.own().is_some()
    }

    /// Closes the connection if it has not been used since `before`, nothing runs and nobody waits for news.
    /// A request that comes at the same moment either keeps it open or is not sent at all.
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

    /// When the last call began, or it was opened.
    pub(crate) fn last_used(&self) -> Instant {
        *self.last_used.lock()
    }

    /// It is about to be used.
    pub(crate) fn touch(&self) {
        *self.last_used.lock() = Instant::now();
    }

    fn note_use(&self, context: &CallContext) {
        self.touch();
        match self.purpose {
            // Of a stateless server nothing comes that belongs to no request.
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

/// Tells the server when the waiting future is dropped before the answer came.
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

/// The params with our progress token, and the trace: progress extends the deadline even if the client did not ask
/// for it.
fn with_token(params: Option<Object>, ticket: &Ticket) -> Object {
    let mut params = params.unwrap_or_default();
    let meta = params.get("_meta").and_then(Raw::object).unwrap_or_default();
    params.set("_meta", carry::into_meta(meta.with("progressToken", Raw::of(&ticket.id)), &ticket.origin));
    params
}

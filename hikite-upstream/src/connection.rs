//! One live, initialised connection to a server, whatever carries it. Requests are matched to their answers
//! here; what the server sends of its own accord is handled in `inbound`.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use hikite_core::caller::{Session, SessionId};
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::CallContext;
use hikite_wire::encode;
use hikite_wire::handshake::{Hello, Welcome, own_info};
use hikite_wire::message::Id;
use hikite_wire::revision::Revision;
use parking_lot::Mutex;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::outbound::Outbound;
use crate::pending::{Answer, Pending};

/// What the connection was opened for; decides who can be asked through it.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// Looking at what the server offers. Declares everything, answers no question.
    Lists,
    /// Calls of every session. Declares nothing.
    Shared,
    /// Calls of one session, whose abilities it declares.
    Owned(Arc<Session>),
}

pub(crate) struct Connection {
    pub(crate) name: Arc<str>,
    pub(crate) purpose: Purpose,
    pub(crate) pending: Pending,
    pub(crate) tasks: TaskTracker,
    pub(crate) notices: Notices,
    /// Fires when the connection is over, for whatever reason; firing it ends the connection.
    pub(crate) closed: CancellationToken,
    /// Whether the server said, while its lists were being read, that they changed.
    pub(crate) lists_changed: AtomicBool,
    pub(crate) subscriptions: Mutex<HashMap<String, HashSet<SessionId>>>,
    /// Sessions that have called through this connection.
    pub(crate) users: Mutex<HashSet<SessionId>>,
    /// The latest call of the owner: the way to it for what the server sends between calls.
    pub(crate) latest: Mutex<Option<CallContext>>,
    /// Questions of the server that wait for an answer, by its id.
    pub(crate) questions: Mutex<HashMap<Id, CancellationToken>>,
    outbound: OnceLock<Outbound>,
    welcome: OnceLock<Welcome>,
    /// Why it ended, where that is known.
    ending: Mutex<Option<Error>>,
    last_used: Mutex<Instant>,
    opened: Instant,
    /// How long it lived, told once, if it broke by itself.
    lived: Mutex<Option<Duration>>,
}

/// The name of an error that means: the request was not sent, another connection may take it.
pub(crate) const NOT_SENT: &str = "NotSent";

/// For the answer to a request that nobody waits for.
const ASIDE: Duration = Duration::from_secs(10);

/// What a connection reports to its upstream.
pub(crate) type Notices = Arc<dyn Fn(Notice) + Send + Sync>;

#[derive(Debug)]
pub(crate) enum Notice {
    ListChanged,
    AskedBack,
    Event(hikite_core::source::Event),
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
        purpose: Purpose,
        notices: Notices,
        tasks: TaskTracker,
        closed: CancellationToken,
    ) -> Arc<Self> {
        Arc::new(Self {
            name,
            purpose,
            notices,
            tasks,
            pending: Pending::default(),
            closed,
            lists_changed: AtomicBool::new(false),
            subscriptions: Mutex::default(),
            users: Mutex::default(),
            latest: Mutex::default(),
            questions: Mutex::default(),
            outbound: OnceLock::new(),
            welcome: OnceLock::new(),
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

    /// The `initialize` exchange.
    pub(crate) async fn initialize(&self) -> Result<(), Error> {
        let abilities = match &self.purpose {
            Purpose::Lists => hikite_core::caller::Abilities::all(),
            Purpose::Shared => hikite_core::caller::Abilities::default(),
            Purpose::Owned(session) => session.abilities.clone(),
        };
        let hello = Hello { revision: Revision::LATEST, abilities, client: own_info() };
        let result = self.request("initialize", Some(hello.params()), None).await?;
        let welcome = Welcome::read(&result).ok_or_else(|| {
            Error::new(
                Kind::UpstreamUnavailable,
                format!("`{}` answered `initialize` with something else", self.name),
            )
        })?;
        if let Some(Outbound::Http(sender)) = self.outbound.get() {
            sender.negotiated(&welcome.protocol_version);
        }
        let _ = self.welcome.set(welcome);
        self.notify("notifications/initialized", None);
        Ok(())
    }

    pub(crate) fn welcome(&self) -> Option<&Welcome> {
        self.welcome.get()
    }

    pub(crate) fn can(&self, capability: &str) -> bool {
        self.welcome.get().is_some_and(|welcome| welcome.capabilities.get(capability).is_some())
    }

    /// Sends one request and waits for its answer. Dropping the future tells the server that it is cancelled.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: Option<Object>,
        context: Option<CallContext>,
    ) -> Result<Raw, Error> {
        let Some(outbound) = self.outbound.get() else { return Err(self.ending()) };
        let for_a_call = context.is_some();
        if let Some(context) = &context {
            self.note_use(context);
        }
        let Some((id, answer)) = self.pending.open(context) else {
            return Err(self.ending().named(NOT_SENT));
        };
        // `initialize` must not be cancelled, says the protocol.
        let _cancel = CancelOnDrop { connection: self, id, tell: method != "initialize" };
        let params = if for_a_call { Some(with_token(params, id)) } else { params };
        let message = encode::request(&Id::number(id), method, params.map(|params| params.raw()).as_ref());
        let exchange = async {
            match outbound.request(id, message).await? {
                Some(answer) => Ok(answer),
                None => answer.await.map_err(|_| self.ending()),
            }
        };
        let outcome: Result<Answer, Error> = tokio::select! {
            biased;
            outcome = exchange => outcome,
            () = self.closed.cancelled() => Err(self.ending()),
        };
        self.pending.forget(id);
        outcome?.map_err(Error::from_upstream)
    }

    /// Sends a request of our own whose answer does not matter; a server that is silent is not waited for.
    pub(crate) fn request_aside(self: &Arc<Self>, method: &'static str, params: Object) {
        let connection = Arc::clone(self);
        self.tasks.spawn(async move {
            let _ = tokio::time::timeout(ASIDE, connection.request(method, Some(params), None)).await;
        });
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

    /// Ends the connection; every waiting request fails with `reason`.
    pub(crate) fn close(&self, reason: Error) {
        self.ending.lock().get_or_insert(reason);
        self.closed.cancel();
        self.pending.fail_all();
    }

    /// The transport broke: ends the connection, and remembers how long it lived.
    pub(crate) fn broke(&self, reason: Error) {
        if self.is_open() {
            *self.lived.lock() = Some(self.opened.elapsed());
        }
        self.close(reason);
    }

    /// How long it lived, if it broke by itself; told once.
    pub(crate) fn broken_after(&self) -> Option<Duration> {
        self.lived.lock().take()
    }

    /// Closes the connection if it has not been used since `before`, nothing runs and nobody waits for news.
    /// A request that comes at the same moment either keeps it open or is not sent at all.
    pub(crate) fn close_if_idle(&self, before: Instant) -> bool {
        let unused = *self.last_used.lock() < before && self.subscriptions.lock().is_empty();
        let idle = unused && self.pending.close_if_empty();
        if idle {
            let reason = format!("`{}` was stopped because nobody used it", self.name);
            self.close(Error::new(Kind::UpstreamUnavailable, reason).named(NOT_SENT));
        }
        idle
    }

    /// Takes over the subscriptions of the connection that stood here before.
    pub(crate) fn succeed(self: &Arc<Self>, before: &Self) {
        let subscriptions = std::mem::take(&mut *before.subscriptions.lock());
        for uri in subscriptions.keys() {
            let params = Object::default().with("uri", uri.as_str());
            self.request_aside("resources/subscribe", params);
        }
        *self.subscriptions.lock() = subscriptions;
    }

    /// Subscribes the session; the server is asked only for the first one.
    pub(crate) async fn subscribe(&self, params: Object, context: CallContext) -> Result<Raw, Error> {
        let uri = params.text("uri").unwrap_or_default();
        let session = context.session.id;
        let first = {
            let mut subscriptions = self.subscriptions.lock();
            let sessions = subscriptions.entry(uri.clone()).or_default();
            sessions.insert(session);
            sessions.len() == 1
        };
        if !first {
            return Ok(Raw::empty_object());
        }
        let unsure = ForgetOnDrop { connection: self, uri: &uri, session, armed: true };
        let answer = self.request("resources/subscribe", Some(params), Some(context)).await;
        unsure.settle(answer.is_ok());
        answer
    }

    /// Unsubscribes the session; the server is told only by the last one.
    pub(crate) async fn unsubscribe(&self, params: Object, context: CallContext) -> Result<Raw, Error> {
        let uri = params.text("uri").unwrap_or_default();
        if self.forget_subscription(&uri, context.session.id) {
            self.request("resources/unsubscribe", Some(params), Some(context)).await
        } else {
            Ok(Raw::empty_object())
        }
    }

    /// The session is over.
    pub(crate) fn release(self: &Arc<Self>, session: SessionId) {
        self.users.lock().remove(&session);
        let uris: Vec<String> = self.subscriptions.lock().keys().cloned().collect();
        for uri in uris {
            if self.forget_subscription(&uri, session) {
                let params = Object::default().with("uri", uri.as_str());
                self.request_aside("resources/unsubscribe", params);
            }
        }
    }

    pub(crate) fn ending(&self) -> Error {
        self.ending.lock().clone().unwrap_or_else(|| {
            Error::new(Kind::UpstreamUnavailable, format!("the connection to `{}` is closed", self.name))
        })
    }

    /// Whether the last subscriber is gone.
    fn forget_subscription(&self, uri: &str, session: SessionId) -> bool {
        let mut subscriptions = self.subscriptions.lock();
        let Some(sessions) = subscriptions.get_mut(uri) else { return false };
        let was_there = sessions.remove(&session);
        if sessions.is_empty() {
            subscriptions.remove(uri);
            return was_there;
        }
        false
    }

    fn note_use(&self, context: &CallContext) {
        *self.last_used.lock() = Instant::now();
        match self.purpose {
            Purpose::Owned(_) => *self.latest.lock() = Some(context.clone()),
            Purpose::Shared | Purpose::Lists => {
                self.users.lock().insert(context.session.id);
            }
        }
    }
}

/// A subscription that the server has not confirmed.
struct ForgetOnDrop<'a> {
    connection: &'a Connection,
    uri: &'a str,
    session: SessionId,
    armed: bool,
}

impl ForgetOnDrop<'_> {
    fn settle(mut self, confirmed: bool) {
        self.armed = !confirmed;
    }
}

impl Drop for ForgetOnDrop<'_> {
    fn drop(&mut self) {
        if self.armed {
            self.connection.forget_subscription(self.uri, self.session);
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
            let params = Object::default()
                .with("requestId", Raw::of(&self.id))
                .with("reason", "the caller no longer waits")
                .raw();
            self.connection.notify("notifications/cancelled", Some(&params));
        }
    }
}

/// The params with our progress token: progress extends the deadline even if the client did not ask for it.
fn with_token(params: Option<Object>, id: u64) -> Object {
    let mut params = params.unwrap_or_default();
    let meta = params.get("_meta").and_then(Raw::object).unwrap_or_default();
    params.set("_meta", meta.with("progressToken", Raw::of(&id)));
    params
}

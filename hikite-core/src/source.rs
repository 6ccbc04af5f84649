//! The hinge of the house: where tools come from. The gateway sees upstream servers, declarative modules and
//! registered tools only through this trait, and hands each call the ways back to the client it serves.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::caller::{Abilities, Caller, Session, SessionId};
use crate::error::{Error, Kind};
use crate::json::{Object, Raw};
use crate::listing::{ListKind, Listing};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// One module's provider of tools, resources and prompts.
pub trait Source: Send + Sync + fmt::Debug {
    /// What it offers as far as is known now. Never waits, never starts anything.
    fn listing(&self) -> Option<Arc<Listing>>;

    /// The offer to this session alone, where its own session with the source differs from `listing`.
    fn listing_of(&self, _session: SessionId) -> Option<Arc<Listing>> {
        None
    }

    fn state(&self) -> State;

    /// Who knows the accounts that its calls are made with, if they are made with any.
    fn provider(&self) -> Option<&str> {
        None
    }

    /// In one word what kind of source it is: `stdio`, `http`, `sse`, `service` or `registered`.
    fn kind(&self) -> &'static str {
        "program"
    }

    /// How it is reached, for the owner's eyes and without secrets: `url`, or `command` and `args`.
    fn place(&self) -> Object {
        Object::default()
    }

    /// The last lines that its processes wrote for people.
    fn stderr(&self) -> Vec<String> {
        Vec::new()
    }

    /// Ends its connections and processes, whatever runs on them; the next call opens new ones.
    fn stop(&self) {}

    /// The same, and it forgets its failures and reads its lists again at once.
    fn restart(&self) {}

    /// What a person does who has to log in.
    fn advice(&self) -> Option<String> {
        None
    }

    /// Whether it waits to be started, because others are started first.
    fn is_queued(&self) -> bool {
        false
    }

    /// Resolves once a listing is known or the attempt to get one has failed.
    fn first_listing(&self) -> BoxFuture<'_, ()>;

    /// Runs one request. Dropping the future cancels it, at the source too.
    fn call(&self, invocation: Invocation, context: CallContext) -> BoxFuture<'_, Result<Raw, Error>>;

    /// What of a tool's result its author holds to be worth reading; `None` where nobody has said it, and for a failure.
    fn shape(&self, _tool: &str, _arguments: Option<&Raw>, _result: &Raw) -> Option<Value> {
        None
    }

    /// Tells the source's connections of this session that the client's roots changed.
    fn roots_changed(&self, session: SessionId);

    /// The session is over: whatever is held for it alone may go.
    fn release(&self, session: SessionId);

    /// Lets go of everything it holds once its calls are done, after `drain` at the latest.
    fn close(&self, drain: Duration) -> BoxFuture<'_, ()>;
}

/// Where a source's events go. Called from the source's own tasks; must not block.
pub type Listener = Arc<dyn Fn(Event) + Send + Sync>;

#[derive(Clone, Debug)]
pub enum Event {
    ListChanged,
    /// What `listing_of` says of these sessions is something else by now.
    OwnListChanged {
        sessions: Vec<SessionId>,
    },
    /// The source says that these lists changed, and they are what they were. `sessions` are those it was said to;
    /// without them it concerns everybody.
    ListAnnounced {
        kinds: Vec<ListKind>,
        sessions: Option<Vec<SessionId>>,
    },
    ResourceUpdated {
        sessions: Vec<SessionId>,
        params: Raw,
    },
    Log {
        session: SessionId,
        params: Raw,
    },
    ElicitationComplete {
        session: SessionId,
        params: Raw,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing runs; the next call starts it.
    Idle,
    Starting,
    Running,
    /// It could run, but nobody has connected an account with this provider.
    NeedsLogin {
        provider: Arc<str>,
    },
    /// The last start failed; it is tried again after a pause, and by the next call once the pause is over.
    Failing {
        reason: String,
        /// For the owner's eyes: it may name addresses and paths.
        cause: Option<String>,
        /// It runs and answers; only its lists cannot be read.
        answers: bool,
    },
}

impl State {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::NeedsLogin { .. } => "needs login",
            Self::Failing { .. } => "failing",
        }
    }

    /// Why it fails, for the owner's eyes.
    pub fn trouble(&self) -> Option<String> {
        let Self::Failing { reason, cause, .. } = self else { return None };
        Some(cause.as_ref().map_or_else(|| reason.clone(), |cause| format!("{reason}; {cause}")))
    }
}

/// What can be asked of a source. The parameters follow the MCP method of the same name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    CallTool,
    ReadResource,
    Subscribe,
    Unsubscribe,
    GetPrompt,
    Complete,
    SetLevel,
    GetTask,
    UpdateTask,
    CancelTask,
    GetSkill,
    ReadDirectory,
}

impl Method {
    pub fn name(self) -> &'static str {
        match self {
            Self::CallTool => "tools/call",
            Self::ReadResource => "resources/read",
            Self::Subscribe => "resources/subscribe",
            Self::Unsubscribe => "resources/unsubscribe",
            Self::GetPrompt => "prompts/get",
            Self::Complete => "completion/complete",
            Self::SetLevel => "logging/setLevel",
            Self::GetTask => "tasks/get",
            Self::UpdateTask => "tasks/update",
            Self::CancelTask => "tasks/cancel",
            Self::GetSkill => "skills/get",
            Self::ReadDirectory => "resources/directory/read",
        }
    }
}

/// One authorised request in the source's own names.
#[derive(Clone, Debug)]
pub struct Invocation {
    pub method: Method,
    pub params: Object,
}

/// Whose call it is, and the ways back to the client while it runs.
#[derive(Clone)]
pub struct CallContext {
    pub session: Arc<Session>,
    pub back: Arc<dyn Backchannel>,
    pub origin: Origin,
    /// The client answers what a server needs with its next request: such results go back as they are. Else the
    /// questions in them are put to it, and the source makes the next request.
    pub takes_rounds: bool,
    /// The id of the account that was chosen for the call; `None` leaves it to whoever knows the accounts.
    pub account: Option<Arc<str>>,
}

impl CallContext {
    /// A request of hikite's own: in the owner's name, with nobody behind it who could be asked or told.
    pub fn unattended() -> Self {
        let session = Session { id: SessionId(0), caller: Caller::owner(), abilities: Abilities::default() };
        Self {
            session: Arc::new(session),
            back: Arc::new(Nobody),
            origin: Origin::default(),
            takes_rounds: false,
            account: None,
        }
    }
}

/// Where a call came in: the id its logs carry, the trace it belongs to, and the program that sent it.
#[derive(Clone, Debug, Default)]
pub struct Origin {
    pub request_id: Option<Arc<str>>,
    /// As of W3C Trace Context, checked at the edge.
    pub traceparent: Option<Arc<str>>,
    pub tracestate: Option<Arc<str>>,
    /// The `clientInfo` of the program that sent it, as it came.
    pub client: Option<Raw>,
}

impl Origin {
    /// The id of the trace as logs show it.
    pub fn trace_id(&self) -> Option<&str> {
        self.traceparent.as_deref()?.get(3..35)
    }
}

/// One tool as a function. Registered tools are made of these.
pub trait Implementation: Send + Sync + fmt::Debug {
    /// The value that the tool gives; the result of the protocol is made around it. Dropping the future cancels it.
    fn run(&self, arguments: Object, context: CallContext) -> BoxFuture<'_, Result<Raw, Error>>;
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext").field("session", &self.session).finish_non_exhaustive()
    }
}

/// The client's side of one running call.
pub trait Backchannel: Send + Sync {
    /// `params` of a progress notification, without a token.
    fn progress(&self, params: Object);
    /// `params` of a log notification.
    fn log(&self, params: Raw);
    /// A question of this kind was refused, because the client did not say that it can answer it.
    fn lacks(&self, _: QuestionKind) {}
    /// Puts a question to the client: its result, or its JSON-RPC error object.
    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Raw, Raw>>;
}

/// A client that hears nothing while its call runs, and answers no questions.
#[derive(Clone, Copy, Debug)]
pub struct Nobody;

impl Backchannel for Nobody {
    fn progress(&self, _: Object) {}

    fn log(&self, _: Raw) {}

    fn ask(&self, question: Question) -> BoxFuture<'static, Result<Raw, Raw>> {
        let message = format!("nobody is there to answer `{}`", question.kind.method());
        let refused = Error::new(Kind::MethodNotFound, message).rpc();
        Box::pin(std::future::ready(Err(refused)))
    }
}

#[derive(Clone, Debug)]
pub struct Question {
    pub kind: QuestionKind,
    pub params: Raw,
    /// What the server calls it, where it has a name for it.
    pub key: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuestionKind {
    Sampling,
    Elicitation,
    Roots,
}

impl QuestionKind {
    pub const ALL: [Self; 3] = [Self::Sampling, Self::Elicitation, Self::Roots];

    pub fn method(self) -> &'static str {
        match self {
            Self::Sampling => "sampling/createMessage",
            Self::Elicitation => "elicitation/create",
            Self::Roots => "roots/list",
        }
    }

    pub fn of_method(method: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.method() == method)
    }

    /// Whether the client said that it can answer this kind.
    pub fn can_ask(self, session: &Session) -> bool {
        match self {
            Self::Sampling => session.abilities.sampling.is_some(),
            Self::Elicitation => session.abilities.elicitation.is_some(),
            Self::Roots => session.abilities.roots.is_some(),
        }
    }
}

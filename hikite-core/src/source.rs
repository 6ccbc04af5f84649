//! The `Source` trait, through which the gateway sees upstream servers, services and registered tools, and the
//! backchannel from a running call to its client.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use crate::caller::{Caller, ClientCapabilities, Session, SessionId};
use crate::error::{Error, ErrorKind};
use crate::json::{Object, Raw};
use crate::listing::{ListKind, Listing};

pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Source of one module's tools, resources and prompts.
pub trait Source: Send + Sync + fmt::Debug {
    /// Returns the latest known listing. Never waits and never starts anything.
    fn listing(&self) -> Option<Arc<Listing>>;

    /// Returns the listing for one session, if its upstream session lists other things than `listing`.
    fn listing_of(&self, _session: SessionId) -> Option<Arc<Listing>> {
        None
    }

    fn state(&self) -> SourceState;

    /// Returns the provider of the accounts that its calls use, if any.
    fn provider(&self) -> Option<&str> {
        None
    }

    /// Returns the kind of source: `stdio`, `http`, `sse`, `service` or `registered`; `program` is none of these.
    fn kind(&self) -> &'static str {
        "program"
    }

    /// Returns how the source is reached, without secrets and for administrators only: `url`, or `command` and `args`.
    fn place(&self) -> Object {
        Object::default()
    }

    /// Returns the last lines that its processes wrote to stderr.
    fn stderr(&self) -> Vec<String> {
        Vec::new()
    }

    /// Closes its connections and processes with everything that runs on them; the next call opens new ones.
    fn stop(&self) {}

    /// Stops the source, resets its failure state and reloads its lists at once.
    fn restart(&self) {}

    /// Returns instructions for a user who has to log in.
    fn login_hint(&self) -> Option<String> {
        None
    }

    /// Returns `true` if it is queued for startup behind other sources.
    fn is_queued(&self) -> bool {
        false
    }

    /// Resolves once a listing is known or the attempt to load one has failed.
    fn first_listing(&self) -> BoxFuture<'_, ()>;

    /// Runs one request. Dropping the future cancels it, at the source too.
    fn call(&self, invocation: Invocation, context: CallContext) -> BoxFuture<'_, Result<Raw, Error>>;

    /// Returns the shape of a tool's result that the module author recommends; `None` if there is none, or for an
    /// error.
    fn shape(&self, _tool: &str, _arguments: Option<&Raw>, _result: &Raw) -> Option<Value> {
        None
    }

    /// Notifies the source's connections of this session that the client's roots changed.
    fn roots_changed(&self, session: SessionId);

    /// Releases everything held for a session that has ended.
    fn release(&self, session: SessionId);

    /// Drains running calls for at most `drain`, then releases all resources.
    fn close(&self, drain: Duration) -> BoxFuture<'_, ()>;
}

/// Receives a source's events. Called from the source's own tasks; must not block.
pub type SourceListener = Arc<dyn Fn(SourceEvent) + Send + Sync>;

#[derive(Clone, Debug)]
pub enum SourceEvent {
    ListChanged,
    /// The result of `listing_of` changed for these sessions.
    SessionListChanged {
        sessions: Vec<SessionId>,
    },
    /// The source announced a change of these lists, but they are unchanged. `sessions` received the announcement;
    /// `None` means all sessions.
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
pub enum SourceState {
    /// Not running; the next call starts it.
    Idle,
    Starting,
    Running,
    /// Ready to run, but no account is connected for this provider.
    NeedsLogin {
        provider: Arc<str>,
    },
    /// The last start failed. It is retried after a pause, and by the next call once the pause is over.
    Failing {
        reason: String,
        /// Details for administrators; may contain addresses and paths.
        cause: Option<String>,
        /// `true` if it runs and responds, but its lists cannot be read.
        answers: bool,
    },
}

impl SourceState {
    pub fn word(&self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Starting => "starting",
            Self::Running => "running",
            Self::NeedsLogin { .. } => "needs login",
            Self::Failing { .. } => "failing",
        }
    }

    /// Returns the reason of the failure, for administrators.
    pub fn trouble(&self) -> Option<String> {
        let Self::Failing { reason, cause, .. } = self else { return None };
        Some(
            cause.as_ref().map_or_else(|| reason.clone(), |cause| format!("{}; {cause}", reason.trim_end_matches('.'))),
        )
    }
}

/// Requests that a source accepts. Parameters are those of the method that `name` returns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SourceMethod {
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

impl SourceMethod {
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

/// One authorized request, in the source's own names.
#[derive(Clone, Debug)]
pub struct Invocation {
    pub method: SourceMethod,
    pub params: Object,
}

/// Context of a call: its session, and the backchannel to the client while it runs.
#[derive(Clone)]
pub struct CallContext {
    pub session: Arc<Session>,
    pub back: Arc<dyn Backchannel>,
    pub origin: CallOrigin,
    /// `true` if the client handles `input_required` results itself; they are then returned unchanged. Otherwise the
    /// source sends the input requests to the client and repeats the call.
    pub accepts_input_required: bool,
    /// Id of the account chosen for the call; `None` leaves the choice to the credential provider.
    pub account: Option<Arc<str>>,
}

impl CallContext {
    /// Context of hikite's own requests: on behalf of the owner, without a client that could answer or be notified.
    pub fn unattended() -> Self {
        let session =
            Session { id: SessionId(0), caller: Caller::owner(), client_capabilities: ClientCapabilities::default() };
        Self {
            session: Arc::new(session),
            back: Arc::new(NoClient),
            origin: CallOrigin::default(),
            accepts_input_required: false,
            account: None,
        }
    }
}

/// Origin of a call: its request id, its trace, and the client program.
#[derive(Clone, Debug, Default)]
pub struct CallOrigin {
    pub request_id: Option<Arc<str>>,
    /// W3C Trace Context, validated on arrival.
    pub traceparent: Option<Arc<str>>,
    pub tracestate: Option<Arc<str>>,
    /// `clientInfo` of the client, unchanged.
    pub client: Option<Raw>,
}

impl CallOrigin {
    /// Returns the trace id as it appears in logs.
    pub fn trace_id(&self) -> Option<&str> {
        self.traceparent.as_deref()?.get(3..35)
    }
}

/// A tool as a function; registered tools consist of these.
pub trait ToolHandler: Send + Sync + fmt::Debug {
    /// Runs the tool and returns its plain value, which the caller wraps in an MCP result. Dropping the future cancels
    /// it.
    fn run(&self, arguments: Object, context: CallContext) -> BoxFuture<'_, Result<Raw, Error>>;
}

impl fmt::Debug for CallContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CallContext").field("session", &self.session).finish_non_exhaustive()
    }
}

/// Backchannel to the client of a running call.
pub trait Backchannel: Send + Sync {
    /// Sends a progress notification; `params` has no token.
    fn progress(&self, params: Object);
    /// Sends a log notification.
    fn log(&self, params: Raw);
    /// Reports that a request was refused because the client does not declare the capability.
    fn capability_missing(&self, _: InputRequestKind) {}
    /// Sends a request to the client and returns its result, or its JSON-RPC error object.
    fn ask(&self, question: InputRequest) -> BoxFuture<'static, Result<Raw, Raw>>;
}

/// A backchannel without a client: drops notifications and refuses requests.
#[derive(Clone, Copy, Debug)]
pub struct NoClient;

impl Backchannel for NoClient {
    fn progress(&self, _: Object) {}

    fn log(&self, _: Raw) {}

    fn ask(&self, question: InputRequest) -> BoxFuture<'static, Result<Raw, Raw>> {
        let message = format!("There is no client to answer `{}`.", question.kind.method());
        let refused = Error::new(ErrorKind::MethodNotFound, message).rpc();
        Box::pin(std::future::ready(Err(refused)))
    }
}

#[derive(Clone, Debug)]
pub struct InputRequest {
    pub kind: InputRequestKind,
    pub params: Raw,
    /// Key that the server assigned to the request, if any.
    pub key: Option<Box<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputRequestKind {
    Sampling,
    Elicitation,
    Roots,
}

impl InputRequestKind {
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

    /// Returns `true` if the client declared the capability for this kind of request.
    pub fn is_supported_by(self, session: &Session) -> bool {
        match self {
            Self::Sampling => session.client_capabilities.sampling.is_some(),
            Self::Elicitation => session.client_capabilities.elicitation.is_some(),
            Self::Roots => session.client_capabilities.roots.is_some(),
        }
    }
}

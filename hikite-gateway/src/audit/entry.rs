//! Parts of an audit record as the path of a call hands them over: shared, not inspected. The record is built from them
//! off that path.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::audit::{AuditRecord, digest, printable_excerpt};
use hikite_core::caller::{Caller, Session};
use hikite_core::json::{Object, Raw, canonical};
use hikite_core::source::{CallOrigin, SourceMethod};
use tokio::time::Instant;

use super::{BATCH, CANCELLED, bytes_of};
use crate::command::{Command, ToolTarget};
use crate::request::without_query;

/// Kind of the records of searches.
pub(super) const SEARCH: &str = "search";
const ALLOWED: &str = "allowed";
const REFUSED: &str = "refused";
/// Request bytes that a queued entry may keep in memory.
const QUEUED_REQUEST_BYTES_MAX: usize = 4096;

#[derive(Debug)]
pub(crate) struct AuditEntry {
    pub(super) actor: AuditActor,
    pub(super) origin: CallOrigin,
    pub(super) surface: &'static str,
    pub(super) request: AuditedRequest,
    pub(super) allowed: bool,
    pub(super) module: Option<Arc<str>>,
    pub(super) tool: Option<Arc<str>>,
    pub(super) what: String,
    pub(super) outcome: &'static str,
    pub(super) started: Instant,
    pub(super) elapsed: Duration,
    pub(super) attempts: u32,
    pub(super) cached: bool,
    pub(super) bytes_out: usize,
    pub(super) searched: Option<Box<SearchSummary>>,
    pub(super) account: String,
}

#[derive(Debug)]
pub(super) enum AuditActor {
    InSession(Arc<Session>),
    /// A caller outside any session.
    NoSession(Caller),
}

/// The request in the caller's own terms.
#[derive(Debug, Default)]
pub(super) struct AuditedRequest {
    pub(super) kind: &'static str,
    pub(super) method: &'static str,
    name: RequestName,
    arguments: AuditArguments,
    /// Bytes of the request buffer that this entry keeps in memory.
    weight: usize,
}

/// Arguments, which are recorded only as a hash.
#[derive(Debug, Default)]
enum AuditArguments {
    #[default]
    None,
    Sent(Raw),
    Hashed {
        hash: String,
        bytes: usize,
    },
}

#[derive(Debug, Default)]
enum RequestName {
    #[default]
    None,
    Target(ToolTarget),
    Text(Raw),
    Address(Raw),
}

#[derive(Debug)]
pub(super) struct SearchSummary {
    pub(super) provider: &'static str,
    pub(super) queries: Vec<String>,
    pub(super) results: usize,
}

impl AuditActor {
    pub(super) fn caller(&self) -> &Caller {
        match self {
            Self::InSession(session) => &session.caller,
            Self::NoSession(caller) => caller,
        }
    }

    pub(super) fn session(&self) -> Option<u64> {
        match self {
            Self::InSession(session) => Some(session.id.0),
            Self::NoSession(_) => None,
        }
    }
}

impl AuditedRequest {
    pub(super) fn of_call(target: &ToolTarget, params: &Object) -> Self {
        Self::new("call", SourceMethod::CallTool, RequestName::of(target, params), arguments(params), params)
    }

    /// Describes a command. Returns `None` for commands that are no invocation.
    pub(super) fn of(command: &Command) -> Option<Self> {
        let resource = |kind, method, params: &Object| {
            let uri = params.get("uri").cloned();
            let name = uri.clone().map_or(RequestName::None, RequestName::Address);
            Self::new(kind, method, name, uri, params)
        };
        Some(match command {
            Command::Describe { .. } | Command::Open(_) => return None,
            Command::Call { target, params, .. } => Self::of_call(target, params),
            Command::Execute { target, params, .. } => Self::new(
                "call",
                SourceMethod::CallTool,
                RequestName::Target(target.clone()),
                arguments(params),
                params,
            ),
            Command::Search { .. } => Self { kind: SEARCH, method: SourceMethod::CallTool.name(), ..Self::default() },
            Command::Batch(batch) => {
                let commands = batch.commands.clone();
                let weight = commands.bytes().len();
                let request = Self::new(BATCH, SourceMethod::CallTool, RequestName::None, commands, &batch.params);
                Self { weight: request.weight + weight, ..request }
            }
            Command::Fetch { uri, params, .. } => {
                let uri = Raw::from(uri.as_str());
                Self::new("read", SourceMethod::ReadResource, RequestName::Address(uri.clone()), uri, params)
            }
            Command::FetchPrompt { name, params, .. } => {
                let name = RequestName::Text(Raw::from(name.as_str()));
                Self::new("prompt", SourceMethod::GetPrompt, name, arguments(params), params)
            }
            Command::Prompt { params } => {
                let name = params.get("name").cloned().map_or(RequestName::None, RequestName::Text);
                Self::new("prompt", SourceMethod::GetPrompt, name, arguments(params), params)
            }
            Command::Complete { params } => {
                let argument = params.get("argument").cloned();
                Self::new("complete", SourceMethod::Complete, RequestName::None, argument, params)
            }
            Command::Task { method, params } => {
                let answers = params.get("inputResponses").cloned();
                Self::new("task", *method, RequestName::None, answers, params)
            }
            Command::Read { params } => resource("read", SourceMethod::ReadResource, params),
            Command::Skill { params } => resource("read", SourceMethod::GetSkill, params),
            Command::Directory { params } => resource("read", SourceMethod::ReadDirectory, params),
            Command::Subscribe { params } => resource("subscribe", SourceMethod::Subscribe, params),
            Command::Unsubscribe { params } => resource("subscribe", SourceMethod::Unsubscribe, params),
        })
    }

    fn new(
        kind: &'static str,
        method: SourceMethod,
        name: RequestName,
        sent: impl Into<Option<Raw>>,
        params: &Object,
    ) -> Self {
        Self { kind, method: method.name(), name, arguments: sent.into().into(), weight: bytes_of(params) }
    }

    /// Describes a `tools/call` that could not be parsed.
    pub(super) fn misread(params: &Object) -> Self {
        Self {
            kind: "call",
            method: SourceMethod::CallTool.name(),
            name: params.get("name").cloned().map_or(RequestName::None, RequestName::Text),
            arguments: params.get("arguments").cloned().into(),
            weight: bytes_of(params),
        }
    }

    /// Describes an action outside MCP: its kind, an identifier of ours and the affected object.
    pub(super) fn internal(kind: &'static str, method: &'static str, what: &str) -> Self {
        let name = if what.is_empty() { RequestName::None } else { RequestName::Text(Raw::from(what)) };
        Self { kind, method, name, ..Self::default() }
    }
}

fn arguments(params: &Object) -> Raw {
    params.get("arguments").cloned().unwrap_or_else(Raw::empty_object)
}

impl From<Option<Raw>> for AuditArguments {
    fn from(sent: Option<Raw>) -> Self {
        sent.map_or(Self::None, Self::Sent)
    }
}

impl AuditArguments {
    /// Returns the hash and the size in bytes.
    fn hashed(&self) -> (String, usize) {
        match self {
            Self::None => Default::default(),
            Self::Sent(sent) => (hash(sent), sent.bytes().len()),
            Self::Hashed { hash, bytes } => (hash.clone(), *bytes),
        }
    }
}

impl AuditEntry {
    pub(super) fn new(actor: AuditActor, origin: &CallOrigin) -> Self {
        Self {
            actor,
            origin: origin.clone(),
            surface: "",
            request: AuditedRequest::default(),
            allowed: false,
            module: None,
            tool: None,
            what: String::new(),
            outcome: CANCELLED,
            started: Instant::now(),
            elapsed: Duration::ZERO,
            attempts: 0,
            cached: false,
            bytes_out: 0,
            searched: None,
            account: String::new(),
        }
    }

    /// Returns `true` if the entry keeps a large part of its request in memory while queued.
    pub(super) fn is_large(&self) -> bool {
        self.request.weight > QUEUED_REQUEST_BYTES_MAX
    }

    /// Computes the needed values now and releases the request buffer.
    pub(super) fn release_request(&mut self) {
        let (hash, bytes) = self.request.arguments.hashed();
        self.request.arguments = AuditArguments::Hashed { hash, bytes };
        if let RequestName::Text(name) | RequestName::Address(name) = &mut self.request.name {
            *name = name.copied();
        }
        self.origin.client = self.origin.client.as_ref().map(Raw::copied);
    }

    /// Builds the record. `now` is one instant on both the wall clock and the monotonic clock.
    pub(super) fn record(&self, now: (u64, Instant), clients: &mut ClientNameCache) -> AuditRecord {
        let caller = self.actor.caller();
        let is_named = self.tool.is_some() && !self.what.is_empty();
        let (what, tool) = if is_named { Default::default() } else { self.request.name.words() };
        let (arguments_hash, bytes_in) = self.request.arguments.hashed();
        let known = |known: Option<&Arc<str>>| known.map(|name| printable_excerpt(name)).unwrap_or_default();
        let record = AuditRecord {
            at: wall_clock_start(self.started, now),
            kind: self.request.kind,
            decision: if self.allowed { ALLOWED } else { REFUSED },
            outcome: self.outcome,
            request_id: known(self.origin.request_id.as_ref()),
            subject: printable_excerpt(&caller.subject),
            token: known(caller.token.as_ref()),
            client: self.origin.client.as_ref().map(|info| clients.name(info)).unwrap_or_default(),
            project: known(caller.project.as_ref()),
            session: self.actor.session(),
            surface: self.surface,
            method: self.request.method,
            account: printable_excerpt(&self.account),
            module: known(self.module.as_ref()),
            tool: if self.tool.is_some() { known(self.tool.as_ref()) } else { printable_excerpt(&tool) },
            what: printable_excerpt(if self.what.is_empty() { &what } else { &self.what }),
            arguments_hash,
            ms: milliseconds(self.elapsed),
            attempts: self.attempts.into(),
            cached: self.cached,
            bytes_in: count(bytes_in),
            bytes_out: count(self.bytes_out),
            trace_id: self.origin.trace_id().map(printable_excerpt).unwrap_or_default(),
            ..AuditRecord::default()
        };
        self.with_search(record).with_tokens()
    }

    fn with_search(&self, record: AuditRecord) -> AuditRecord {
        let Some(searched) = &self.searched else { return record };
        AuditRecord {
            provider: searched.provider,
            queries: count(searched.queries.len()),
            queries_hash: hash(&Raw::of(&searched.queries)),
            results: Some(count(searched.results)),
            ..record
        }
    }
}

impl RequestName {
    /// Shares the name in the params where there is one, which costs nothing; any other target is copied.
    fn of(target: &ToolTarget, params: &Object) -> Self {
        match (target, params.get("name")) {
            (ToolTarget::Named(_), Some(name)) => Self::Text(name.clone()),
            _ => Self::Target(target.clone()),
        }
    }

    /// Returns the full text and the tool name in it.
    fn words(&self) -> (String, String) {
        match self {
            Self::None => Default::default(),
            Self::Target(ToolTarget::Named(name)) => (name.clone(), name.clone()),
            Self::Target(ToolTarget::Keyed(key)) => (key.to_string(), key.tool.to_string()),
            Self::Target(ToolTarget::InCategory { category, name }) => (format!("{category}/{name}"), name.clone()),
            Self::Text(name) => {
                let name = name.text().unwrap_or_default();
                (name.clone(), name)
            }
            // A query string may hold an API key.
            Self::Address(uri) => (without_query(&uri.text().unwrap_or_default()).to_owned(), String::new()),
        }
    }
}

/// Converts the monotonic start to wall-clock milliseconds.
fn wall_clock_start(started: Instant, (now_ms, now): (u64, Instant)) -> u64 {
    let since = now.saturating_duration_since(started).as_millis();
    now_ms.saturating_sub(u64::try_from(since).unwrap_or(u64::MAX))
}

/// Cache of the last client name: one client makes many calls.
#[derive(Debug, Default)]
pub(super) struct ClientNameCache(Option<(Raw, String)>);

impl ClientNameCache {
    fn name(&mut self, info: &Raw) -> String {
        match &self.0 {
            Some((last, name)) if last.bytes() == info.bytes() => name.clone(),
            _ => {
                let name = client(info);
                self.0 = Some((info.clone(), name.clone()));
                name
            }
        }
    }
}

/// Formats `clientInfo` as `name/version`.
fn client(info: &Raw) -> String {
    let info = info.object().unwrap_or_default();
    let (name, version) = (info.text("name").unwrap_or_default(), info.text("version").unwrap_or_default());
    printable_excerpt(&if version.is_empty() { name } else { format!("{name}/{version}") })
}

fn hash(value: &Raw) -> String {
    digest(&canonical(value))
}

fn count(count: usize) -> u64 {
    u64::try_from(count).unwrap_or(u64::MAX)
}

/// Converts to milliseconds with three decimals, because most of the gateway's overhead is microseconds.
pub(crate) fn milliseconds(elapsed: Duration) -> f64 {
    (elapsed.as_secs_f64() * 1e6).round() / 1e3
}

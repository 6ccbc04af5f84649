//! Parts of an audit record as the path of a call hands them over: shared, not inspected. The record is built from them
//! off that path.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::audit::{Record, digest, short};
use hikite_core::caller::{Caller, Session};
use hikite_core::json::{Object, Raw, canonical};
use hikite_core::source::{Method, Origin};
use tokio::time::Instant;

use super::search::SEARCH;
use super::{BATCH, CANCELLED, bytes_of};
use crate::command::{Command, Target};
use crate::request::without_query;

const ALLOWED: &str = "allowed";
const REFUSED: &str = "refused";
/// Request bytes that a queued entry may keep in memory.
const LIGHT_BYTES: usize = 4096;

#[derive(Debug)]
pub(crate) struct Entry {
    pub(super) who: Who,
    pub(super) origin: Origin,
    pub(super) surface: &'static str,
    pub(super) asked: Asked,
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
    pub(super) searched: Option<Box<Searched>>,
    pub(super) account: String,
}

#[derive(Debug)]
pub(super) enum Who {
    In(Arc<Session>),
    /// A caller outside any session.
    Alone(Caller),
}

/// The request in the caller's own terms.
#[derive(Debug, Default)]
pub(super) struct Asked {
    pub(super) kind: &'static str,
    pub(super) method: &'static str,
    name: Name,
    arguments: Arguments,
    /// Bytes of the request buffer that this entry keeps in memory.
    weight: usize,
}

/// Arguments, which are recorded only as a hash.
#[derive(Debug, Default)]
enum Arguments {
    #[default]
    None,
    Sent(Raw),
    Hashed {
        hash: String,
        bytes: usize,
    },
}

#[derive(Debug, Default)]
enum Name {
    #[default]
    None,
    Target(Target),
    Text(Raw),
    Address(Raw),
}

#[derive(Debug)]
pub(super) struct Searched {
    pub(super) provider: &'static str,
    pub(super) queries: Vec<String>,
    pub(super) results: usize,
}

impl Who {
    pub(super) fn caller(&self) -> &Caller {
        match self {
            Self::In(session) => &session.caller,
            Self::Alone(caller) => caller,
        }
    }

    pub(super) fn session(&self) -> Option<u64> {
        match self {
            Self::In(session) => Some(session.id.0),
            Self::Alone(_) => None,
        }
    }
}

impl Asked {
    /// Describes a command. Returns `None` for commands that are no invocation.
    pub(super) fn of(command: &Command) -> Option<Self> {
        let resource = |kind, method, params: &Object| {
            let uri = params.get("uri").cloned();
            let name = uri.clone().map_or(Name::None, Name::Address);
            Self::new(kind, method, name, uri, params)
        };
        Some(match command {
            Command::Describe { .. } | Command::Open(_) => return None,
            Command::Call { target, params, .. } => {
                Self::new("call", Method::CallTool, Name::of(target, params), arguments(params), params)
            }
            Command::Execute { target, params, .. } => {
                Self::new("call", Method::CallTool, Name::Target(target.clone()), arguments(params), params)
            }
            Command::Search { .. } => {
                Self { kind: SEARCH, method: Method::CallTool.name(), ..Self::default() }
            }
            Command::Batch(batch) => {
                let commands = batch.commands.clone();
                let weight = commands.bytes().len();
                let asked = Self::new(BATCH, Method::CallTool, Name::None, commands, &batch.params);
                Self { weight: asked.weight + weight, ..asked }
            }
            Command::Fetch { uri, params, .. } => {
                let uri = Raw::from(uri.as_str());
                Self::new("read", Method::ReadResource, Name::Address(uri.clone()), uri, params)
            }
            Command::Recite { name, params, .. } => {
                let name = Name::Text(Raw::from(name.as_str()));
                Self::new("prompt", Method::GetPrompt, name, arguments(params), params)
            }
            Command::Prompt { params } => {
                let name = params.get("name").cloned().map_or(Name::None, Name::Text);
                Self::new("prompt", Method::GetPrompt, name, arguments(params), params)
            }
            Command::Complete { params } => {
                let argument = params.get("argument").cloned();
                Self::new("complete", Method::Complete, Name::None, argument, params)
            }
            Command::Task { method, params } => {
                let answers = params.get("inputResponses").cloned();
                Self::new("task", *method, Name::None, answers, params)
            }
            Command::Read { params } => resource("read", Method::ReadResource, params),
            Command::Skill { params } => resource("read", Method::GetSkill, params),
            Command::Directory { params } => resource("read", Method::ReadDirectory, params),
            Command::Subscribe { params } => resource("subscribe", Method::Subscribe, params),
            Command::Unsubscribe { params } => resource("subscribe", Method::Unsubscribe, params),
        })
    }

    fn new(
        kind: &'static str,
        method: Method,
        name: Name,
        sent: impl Into<Option<Raw>>,
        params: &Object,
    ) -> Self {
        Self { kind, method: method.name(), name, arguments: sent.into().into(), weight: bytes_of(params) }
    }

    /// Describes a `tools/call` that could not be parsed.
    pub(super) fn misread(params: &Object) -> Self {
        Self {
            kind: "call",
            method: Method::CallTool.name(),
            name: params.get("name").cloned().map_or(Name::None, Name::Text),
            arguments: params.get("arguments").cloned().into(),
            weight: bytes_of(params),
        }
    }

    /// Describes an action outside MCP: its kind, an identifier of ours and the affected object.
    pub(super) fn ours(kind: &'static str, method: &'static str, what: &str) -> Self {
        let name = if what.is_empty() { Name::None } else { Name::Text(Raw::from(what)) };
        Self { kind, method, name, ..Self::default() }
    }
}

fn arguments(params: &Object) -> Raw {
    params.get("arguments").cloned().unwrap_or_else(Raw::empty_object)
}

impl From<Option<Raw>> for Arguments {
    fn from(sent: Option<Raw>) -> Self {
        sent.map_or(Self::None, Self::Sent)
    }
}

impl Arguments {
    /// Returns the hash and the size in bytes.
    fn hashed(&self) -> (String, usize) {
        match self {
            Self::None => Default::default(),
            Self::Sent(sent) => (hash(sent), sent.bytes().len()),
            Self::Hashed { hash, bytes } => (hash.clone(), *bytes),
        }
    }
}

impl Entry {
    pub(super) fn new(who: Who, origin: &Origin) -> Self {
        Self {
            who,
            origin: origin.clone(),
            surface: "",
            asked: Asked::default(),
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
    pub(super) fn is_heavy(&self) -> bool {
        self.asked.weight > LIGHT_BYTES
    }

    /// Computes the needed values now and releases the request buffer.
    pub(super) fn lighten(&mut self) {
        let (hash, bytes) = self.asked.arguments.hashed();
        self.asked.arguments = Arguments::Hashed { hash, bytes };
        if let Name::Text(name) | Name::Address(name) = &mut self.asked.name {
            *name = name.copied();
        }
        self.origin.client = self.origin.client.as_ref().map(Raw::copied);
    }

    /// Builds the record. `now` is one instant on both the wall clock and the monotonic clock.
    pub(super) fn record(&self, now: (u64, Instant), clients: &mut Clients) -> Record {
        let caller = self.who.caller();
        let is_named = self.tool.is_some() && !self.what.is_empty();
        let (what, tool) = if is_named { Default::default() } else { self.asked.name.words() };
        let (arguments_hash, bytes_in) = self.asked.arguments.hashed();
        let known = |known: Option<&Arc<str>>| known.map(|name| short(name)).unwrap_or_default();
        let record = Record {
            at: began(self.started, now),
            kind: self.asked.kind,
            decision: if self.allowed { ALLOWED } else { REFUSED },
            outcome: self.outcome,
            request_id: known(self.origin.request_id.as_ref()),
            subject: short(&caller.subject),
            token: known(caller.token.as_ref()),
            client: self.origin.client.as_ref().map(|info| clients.name(info)).unwrap_or_default(),
            project: known(caller.project.as_ref()),
            session: self.who.session(),
            surface: self.surface,
            method: self.asked.method,
            account: short(&self.account),
            module: known(self.module.as_ref()),
            tool: if self.tool.is_some() { known(self.tool.as_ref()) } else { short(&tool) },
            what: short(if self.what.is_empty() { &what } else { &self.what }),
            arguments_hash,
            ms: milliseconds(self.elapsed),
            attempts: self.attempts.into(),
            cached: self.cached,
            bytes_in: count(bytes_in),
            bytes_out: count(self.bytes_out),
            trace_id: self.origin.trace_id().map(short).unwrap_or_default(),
            ..Record::default()
        };
        self.with_search(record).with_tokens()
    }

    fn with_search(&self, record: Record) -> Record {
        let Some(searched) = &self.searched else { return record };
        Record {
            provider: searched.provider,
            queries: count(searched.queries.len()),
            queries_hash: hash(&Raw::of(&searched.queries)),
            results: Some(count(searched.results)),
            ..record
        }
    }
}

impl Name {
    /// Shares the name in the params where there is one, which costs nothing; any other target is copied.
    fn of(target: &Target, params: &Object) -> Self {
        match (target, params.get("name")) {
            (Target::Named(_), Some(name)) => Self::Text(name.clone()),
            _ => Self::Target(target.clone()),
        }
    }

    /// Returns the full text and the tool name in it.
    fn words(&self) -> (String, String) {
        match self {
            Self::None => Default::default(),
            Self::Target(Target::Named(name)) => (name.clone(), name.clone()),
            Self::Target(Target::Keyed(key)) => (key.to_string(), key.tool.to_string()),
            Self::Target(Target::InCategory { category, name }) => {
                (format!("{category}/{name}"), name.clone())
            }
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
fn began(started: Instant, (now_ms, now): (u64, Instant)) -> u64 {
    let since = now.saturating_duration_since(started).as_millis();
    now_ms.saturating_sub(u64::try_from(since).unwrap_or(u64::MAX))
}

/// Cache of the last client name: one client makes many calls.
#[derive(Debug, Default)]
pub(super) struct Clients(Option<(Raw, String)>);

impl Clients {
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
    short(&if version.is_empty() { name } else { format!("{name}/{version}") })
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

//! Revision 2026-07-28, which has no sessions: every request carries its client's revision, capabilities and log level
//! in `_meta`. Names, codes and bodies of that revision; no decisions are made here.

use std::sync::LazyLock;

use hikite_core::caller::ClientCapabilities;
use hikite_core::json::{Object, Raw};
use hikite_core::log_level::LogLevel;
use memchr::memmem::Finder;

use crate::handshake::{CLIENT_BYTES, InitializeResult, own_info};

pub const REVISION: &str = "2026-07-28";

pub const META_REVISION: &str = "io.modelcontextprotocol/protocolVersion";
pub const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";
pub const META_CLIENT: &str = "io.modelcontextprotocol/clientInfo";
pub const META_LEVEL: &str = "io.modelcontextprotocol/logLevel";
pub const META_SERVER: &str = "io.modelcontextprotocol/serverInfo";
pub const META_SUBSCRIPTION: &str = "io.modelcontextprotocol/subscriptionId";

pub use hikite_core::caller::TASKS;

pub const HEADER_MISMATCH: i32 = -32020;
pub const MISSING_CAPABILITY: i32 = -32021;
pub const UNSUPPORTED_REVISION: i32 = -32022;

/// Client metadata in the `_meta` of a request.
#[derive(Clone, Debug)]
pub struct RequestClaim {
    pub revision: String,
    pub client_capabilities: ClientCapabilities,
    /// Lowest level of log messages to send; none if absent.
    pub level: Option<LogLevel>,
    pub progress_token: Option<Raw>,
    /// `clientInfo`.
    pub client: Option<Raw>,
}

/// Returns `true` if a message may be of this revision: a fast search that spares other messages the parsing.
pub fn may_be_stateless(body: &[u8]) -> bool {
    static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(META_REVISION));
    NAME.find(body).is_some()
}

/// Returns `true` if a request names its revision in `_meta`, as only this revision does, whether or not it is valid.
pub fn claims(params: &Object) -> bool {
    params.get("_meta").and_then(Raw::object).is_some_and(|meta| meta.get(META_REVISION).is_some())
}

impl RequestClaim {
    /// Reads `_meta`. The error says why it is not valid in this revision.
    pub fn read(params: &Object) -> Result<Self, String> {
        let meta = params.get("_meta").and_then(Raw::object).ok_or("`params._meta` is missing")?;
        let missing = |name: &str| format!("`params._meta[\"{name}\"]` is missing or of the wrong type");
        let revision = meta.text(META_REVISION).ok_or_else(|| missing(META_REVISION))?;
        let capabilities =
            meta.get(META_CAPABILITIES).and_then(Raw::object).ok_or_else(|| missing(META_CAPABILITIES))?;
        let level = match meta.get(META_LEVEL).map(|level| level.text().unwrap_or_default()) {
            Some(name) => Some(LogLevel::parse(&name).ok_or_else(|| format!("`{name}` is not a log level"))?),
            None => None,
        };
        let client_capabilities = ClientCapabilities::read(&capabilities);
        let client = meta.get(META_CLIENT).map_or(0, |client| client.bytes().len());
        if client_capabilities.bytes() + client > CLIENT_BYTES {
            return Err("what `params._meta` says of the client is larger than 8 KiB".into());
        }
        Ok(Self {
            revision,
            client_capabilities,
            level,
            progress_token: meta.get("progressToken").cloned(),
            client: meta.get(META_CLIENT).cloned(),
        })
    }
}

/// Writes our own client metadata into `_meta`, replacing that of another client.
pub fn claim(meta: Object, client_capabilities: &ClientCapabilities, level: Option<LogLevel>) -> Object {
    let mut meta = meta
        .with(META_REVISION, REVISION)
        .with(META_CLIENT, own_info())
        .with(META_CAPABILITIES, capabilities(client_capabilities));
    match level {
        Some(level) => meta.set(META_LEVEL, level.name()),
        None => drop(meta.remove(META_LEVEL)),
    }
    meta
}

/// Returns the capabilities in the form of this revision, which has no `roots.listChanged`.
fn capabilities(client_capabilities: &ClientCapabilities) -> Object {
    let mut capabilities = client_capabilities.capabilities();
    if let Some(roots) = client_capabilities.roots.as_ref().and_then(Raw::object) {
        let mut roots = roots;
        roots.remove("listChanged");
        capabilities.set("roots", roots);
    }
    capabilities
}

/// Reads the result of `server/discover`: the supported revisions, and the server's capabilities and info.
pub fn read_discovery(result: &Raw) -> Option<(Vec<String>, InitializeResult)> {
    let body = result.object()?;
    let revisions = body.get("supportedVersions")?.decode().ok()?;
    let meta = body.get("_meta").and_then(Raw::object).unwrap_or_default();
    // Early servers of this revision put `serverInfo` beside the capabilities.
    let info = meta.get(META_SERVER).or_else(|| body.get("serverInfo"));
    let initialize_result = InitializeResult {
        protocol_version: REVISION.into(),
        capabilities: body.get("capabilities").and_then(Raw::object).unwrap_or_default(),
        info: info.and_then(Raw::object).unwrap_or_default(),
        instructions: body.text("instructions"),
    };
    Some((revisions, initialize_result))
}

/// Result type, for revisions that state it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultType {
    Complete,
    InputRequired,
    Task,
    Unknown,
}

impl ResultType {
    /// Returns the type of a result; complete if it states none.
    pub fn of(result: &Object) -> Self {
        match result.get("resultType").map(|kind| kind.text().unwrap_or_default()).as_deref() {
            None | Some("complete") => Self::Complete,
            Some("input_required") => Self::InputRequired,
            Some("task") => Self::Task,
            Some(_) => Self::Unknown,
        }
    }
}

/// Returns the supported revisions from an "unsupported revision" error.
pub fn supported_revisions(error: &Object) -> Option<Vec<String>> {
    let code: i32 = error.get("code")?.decode().ok()?;
    if code != UNSUPPORTED_REVISION {
        return None;
    }
    error.get("data")?.object()?.get("supported")?.decode().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn params(meta: &str) -> Object {
        Raw::parse(format!(r#"{{"_meta":{meta}}}"#)).expect("valid").object().expect("an object")
    }

    #[test]
    fn our_own_claim_reads_back() {
        let client_capabilities =
            ClientCapabilities { extensions: Some(Raw::empty_object()), ..ClientCapabilities::all() };
        let meta = claim(Object::default().with("x", "y"), &client_capabilities, LogLevel::parse("warning"));
        let claim = RequestClaim::read(&Object::default().with("_meta", meta)).expect("a claim");
        assert_eq!(claim.revision, REVISION);
        assert_eq!(claim.level, LogLevel::parse("warning"));
        assert_eq!(claim.client_capabilities.roots.map(|roots| roots.as_str().into_owned()).as_deref(), Some("{}"));
        assert_eq!(claim.client_capabilities.sampling, client_capabilities.sampling);
    }

    #[test]
    fn a_claim_needs_revision_and_capabilities() {
        assert!(RequestClaim::read(&Object::default()).is_err());
        assert!(RequestClaim::read(&params("{}")).is_err());
        assert!(RequestClaim::read(&params(&format!(r#"{{"{META_REVISION}":"{REVISION}"}}"#))).is_err());
        let level = format!(r#"{{"{META_REVISION}":"x","{META_CAPABILITIES}":{{}},"{META_LEVEL}":"loud"}}"#);
        assert!(RequestClaim::read(&params(&level)).is_err());
        assert!(claims(&params(&format!(r#"{{"{META_REVISION}":7}}"#))));
        assert!(!claims(&params("{}")));
    }

    #[test]
    fn a_result_without_a_type_is_complete() {
        assert_eq!(ResultType::of(&Object::default()), ResultType::Complete);
        assert_eq!(ResultType::of(&Object::default().with("resultType", "new")), ResultType::Unknown);
    }
}

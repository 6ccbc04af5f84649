//! Detects whether a server speaks a revision with sessions or the stateless one. The result is cached with the lists
//! and invalidated when a later response does not fit.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::listing::Listing;
use hikite_wire::handshake::InitializeResult;
use hikite_wire::stateless::{self, HEADER_MISMATCH, UNSUPPORTED_REVISION};

use crate::error::{FailureReason, UpstreamError};

/// Handshake to try first on a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HandshakeMode {
    /// `server/discover`, then `initialize` if that fails.
    Probe,
    /// Like `Probe`, for a server that answered `server/discover` before: silence means that it is slow.
    Stateless,
    /// `server/discover` only.
    StatelessOnly,
    /// `initialize`, then `server/discover` if that is refused.
    Sessions,
    /// `initialize` only.
    SessionsOnly,
}

/// Kind of revision that the server last spoke.
#[derive(Debug)]
pub(crate) struct RevisionCache {
    kind: AtomicU8,
    /// Set if a stateless server refused `initialize`.
    refuses_sessions: AtomicBool,
}

const UNKNOWN: u8 = 0;
const SESSIONS: u8 = 1;
const STATELESS: u8 = 2;

impl RevisionCache {
    /// Reads the revision from a cached listing.
    pub(crate) fn of(listing: Option<&Listing>) -> Self {
        let known = match listing.and_then(|listing| listing.revision.as_deref()) {
            None => UNKNOWN,
            Some(stateless::REVISION) => STATELESS,
            Some(_) => SESSIONS,
        };
        Self { kind: AtomicU8::new(known), refuses_sessions: AtomicBool::new(false) }
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.kind.load(Ordering::Relaxed) == STATELESS
    }

    /// Returns `true` if a stateless server may support sessions as well. Few servers declare it, so it is tried.
    pub(crate) fn may_support_sessions(&self) -> bool {
        self.is_stateless() && !self.refuses_sessions.load(Ordering::Relaxed)
    }

    pub(crate) fn mark_stateless_only(&self) {
        self.refuses_sessions.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_known(&self) -> bool {
        self.kind.load(Ordering::Relaxed) != UNKNOWN
    }

    pub(crate) fn record_revision(&self, is_stateless: bool) {
        self.kind.store(if is_stateless { STATELESS } else { SESSIONS }, Ordering::Relaxed);
    }

    /// Forgets the revision. Returns `true` if one was known.
    pub(crate) fn forget(&self) -> bool {
        self.refuses_sessions.store(false, Ordering::Relaxed);
        self.kind.swap(UNKNOWN, Ordering::Relaxed) != UNKNOWN
    }

    pub(crate) fn handshake_mode(&self) -> HandshakeMode {
        match self.kind.load(Ordering::Relaxed) {
            SESSIONS => HandshakeMode::Sessions,
            STATELESS => HandshakeMode::Stateless,
            _ => HandshakeMode::Probe,
        }
    }
}

/// Result of `server/discover`.
#[derive(Debug)]
pub(crate) enum DiscoverOutcome {
    Stateless(InitializeResult),
    /// The error lists our revision as supported: retry.
    Again(UpstreamError),
    /// The server does not support the stateless revision.
    Sessions,
    /// Inconclusive: no response, no access, or a server failure.
    Nothing(UpstreamError),
}

pub(crate) fn classify_discovery(answer: Result<Raw, UpstreamError>) -> DiscoverOutcome {
    match answer {
        Ok(result) => match stateless::read_discovery(&result) {
            Some((revisions, initialize_result)) if includes_ours(&revisions) => {
                DiscoverOutcome::Stateless(initialize_result)
            }
            _ => DiscoverOutcome::Sessions,
        },
        Err(error) => match error.error.relayed.as_ref().map(|relayed| relayed.object().unwrap_or_default()) {
            Some(relayed) if stateless::supported_revisions(&relayed).is_some_and(|r| includes_ours(&r)) => {
                DiscoverOutcome::Again(error)
            }
            Some(_) => DiscoverOutcome::Sessions,
            None if matches!(
                error.reason,
                FailureReason::TransportRefused
                    | FailureReason::RequestDeclined
                    | FailureReason::NoResponse
                    | FailureReason::RevisionChanged
            ) =>
            {
                DiscoverOutcome::Sessions
            }
            None => DiscoverOutcome::Nothing(error),
        },
    }
}

fn includes_ours(revisions: &[String]) -> bool {
    revisions.iter().any(|revision| revision == stateless::REVISION)
}

/// Returns `true` if this `initialize` error may come from a stateless server.
pub(crate) fn refuses_sessions(error: &UpstreamError) -> bool {
    error.error.relayed.is_some() || matches!(error.reason, FailureReason::TransportRefused)
}

/// Tells a refusal that shows that the server speaks a different revision from the request's. Valid only for requests
/// refused at the HTTP level: any other may have run.
pub(crate) fn classify_refusal(error: Error, sent_stateless: bool) -> UpstreamError {
    let relayed = error.relayed.as_ref().and_then(Raw::object).unwrap_or_default();
    let code = code_of(&relayed);
    if sent_stateless && code == Some(HEADER_MISMATCH) {
        return UpstreamError::new(FailureReason::HeadersRefused, error);
    }
    let lost = match code {
        Some(UNSUPPORTED_REVISION) => true,
        // An invalid request or unknown method that mentions a session: nothing can have run.
        Some(-32600 | -32601) if sent_stateless => mentions_session(&error.message),
        Some(-32600 | -32602 | HEADER_MISMATCH) if !sent_stateless => mentions_missing_meta(&error.message),
        _ => false,
    };
    if lost { UpstreamError::new(FailureReason::RevisionChanged, error) } else { error.into() }
}

/// Returns `true` if a refusal mentions sessions, which stateless requests do not have.
pub(crate) fn mentions_session(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("session") || text.contains("initializ")
}

/// Returns `true` if a refusal names a missing header or `_meta` member of the stateless revision.
fn mentions_missing_meta(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["io.modelcontextprotocol/protocolversion", "mcp-protocol-version", "mcp-method"]
        .iter()
        .any(|word| text.contains(word))
}

/// Returns `true` if this error means that the server no longer speaks the stateless revision.
pub(crate) fn is_revision_change(error: &UpstreamError) -> bool {
    matches!(error.reason, FailureReason::RevisionChanged | FailureReason::TransportRefused)
}

/// Returns the code of a JSON-RPC error object.
pub(crate) fn code_of(error: &Object) -> Option<i32> {
    error.get("code")?.decode().ok()
}

/// Returns the JSON-RPC error code that the upstream sent.
pub(crate) fn upstream_code(error: &Error) -> Option<i32> {
    code_of(&error.relayed.as_ref()?.object()?)
}

#[cfg(test)]
mod tests {
    use hikite_core::error::ErrorKind;

    use super::*;

    fn refusal(code: i32, message: &str, data: &str) -> Error {
        let text = format!(r#"{{"code":{code},"message":"{message}","data":{data}}}"#);
        Error::from_upstream(Raw::parse(text).expect("valid"))
    }

    fn verdict(answer: Result<Raw, UpstreamError>) -> &'static str {
        match classify_discovery(answer) {
            DiscoverOutcome::Stateless(_) => "stateless",
            DiscoverOutcome::Again(_) => "again",
            DiscoverOutcome::Sessions => "sessions",
            DiscoverOutcome::Nothing(_) => "nothing",
        }
    }

    #[track_caller]
    fn found(result: &str, expected: &str) {
        assert_eq!(verdict(Ok(Raw::parse(result.to_owned()).expect("valid"))), expected, "{result}");
    }

    #[test]
    fn what_a_server_says_of_itself_decides() {
        found(r#"{"supportedVersions":["2026-07-28"],"capabilities":{}}"#, "stateless");
        found(r#"{"supportedVersions":["2025-11-25","2026-07-28"]}"#, "stateless");
        found(r#"{"supportedVersions":["2025-11-25"],"capabilities":{}}"#, "sessions");
        found(r#"{"capabilities":{}}"#, "sessions");
        found("[]", "sessions");
    }

    #[test]
    fn only_an_error_that_names_our_revision_speaks_for_it() {
        let named = refusal(-32022, "no", r#"{"supported":["2026-07-28"],"requested":"x"}"#);
        assert_eq!(verdict(Err(named.into())), "again");
        let older = refusal(-32022, "no", r#"{"supported":["2025-11-25"]}"#);
        assert_eq!(verdict(Err(older.into())), "sessions");
        for code in [-32601, -32600, -32602, -32020, -32021, -32000, 1] {
            assert_eq!(verdict(Err(refusal(code, "no", "null").into())), "sessions", "{code}");
        }
    }

    #[test]
    fn trouble_is_no_verdict_and_a_refusal_is() {
        let failure = || Box::new(Error::new(ErrorKind::UpstreamUnavailable, "it answered 503"));
        assert_eq!(verdict(Err(UpstreamError::new(FailureReason::Other, failure()))), "nothing");
        assert_eq!(verdict(Err(UpstreamError::new(FailureReason::TransportRefused, failure()))), "sessions");
        assert_eq!(verdict(Err(UpstreamError::new(FailureReason::NoResponse, failure()))), "sessions");
    }

    #[test]
    fn a_complaint_about_sessions_loses_the_era_and_a_plain_error_does_not() {
        let told = |code: i32, message: &str, sent_stateless| {
            classify_refusal(refusal(code, message, "null"), sent_stateless).reason
        };
        assert_eq!(told(-32022, "no", false), FailureReason::RevisionChanged);
        assert_eq!(told(-32600, "Missing session ID", true), FailureReason::RevisionChanged);
        assert_eq!(told(-32600, "Missing session ID", false), FailureReason::Other);
        assert_eq!(told(-32601, "Method not found", true), FailureReason::Other);
        assert_eq!(told(-32602, "no such session", true), FailureReason::Other);
        assert_eq!(told(-32020, "Missing header: Mcp-Method", false), FailureReason::RevisionChanged);
        assert_eq!(told(-32602, "`name` is missing", false), FailureReason::Other);
        assert_eq!(told(-32020, "Missing header: Mcp-Param-X", true), FailureReason::HeadersRefused);
    }

    #[test]
    fn a_listing_remembers_the_era() {
        let of = |revision: Option<&str>| {
            let revision = revision.map(Into::into);
            RevisionCache::of(Some(&Listing { revision, ..Listing::default() })).handshake_mode()
        };
        assert_eq!(of(None), HandshakeMode::Probe);
        assert_eq!(of(Some("2026-07-28")), HandshakeMode::Stateless);
        assert_eq!(of(Some("2025-06-18")), HandshakeMode::Sessions);
    }
}

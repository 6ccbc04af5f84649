//! Detects whether a server speaks a revision with sessions or the stateless one. The result is cached with the lists
//! and invalidated when a later response does not fit.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::listing::Listing;
use hikite_wire::handshake::Welcome;
use hikite_wire::stateless::{self, HEADER_MISMATCH, UNSUPPORTED_REVISION};

use crate::http::{DECLINED, MISFIT, NO_ANSWER, REFUSED};

/// Error name: the server speaks another revision now, and nothing ran.
pub(crate) const ERA_LOST: &str = "EraLost";

/// Handshake to try first on a new connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Opening {
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
pub(crate) struct Memory {
    kind: AtomicU8,
    /// Set if a stateless server refused `initialize`.
    refuses_sessions: AtomicBool,
}

const UNKNOWN: u8 = 0;
const SESSIONS: u8 = 1;
const STATELESS: u8 = 2;

impl Memory {
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
    pub(crate) fn may_speak_both(&self) -> bool {
        self.is_stateless() && !self.refuses_sessions.load(Ordering::Relaxed)
    }

    pub(crate) fn speaks_one(&self) {
        self.refuses_sessions.store(true, Ordering::Relaxed);
    }

    pub(crate) fn is_known(&self) -> bool {
        self.kind.load(Ordering::Relaxed) != UNKNOWN
    }

    pub(crate) fn learn(&self, is_stateless: bool) {
        self.kind.store(if is_stateless { STATELESS } else { SESSIONS }, Ordering::Relaxed);
    }

    /// Forgets the revision. Returns `true` if one was known.
    pub(crate) fn forget(&self) -> bool {
        self.refuses_sessions.store(false, Ordering::Relaxed);
        self.kind.swap(UNKNOWN, Ordering::Relaxed) != UNKNOWN
    }

    pub(crate) fn opening(&self) -> Opening {
        match self.kind.load(Ordering::Relaxed) {
            SESSIONS => Opening::Sessions,
            STATELESS => Opening::Stateless,
            _ => Opening::Probe,
        }
    }
}

/// Result of `server/discover`.
#[derive(Debug)]
pub(crate) enum Verdict {
    Stateless(Welcome),
    /// The error lists our revision as supported: retry.
    Again(Error),
    /// The server does not support the stateless revision.
    Sessions,
    /// Inconclusive: no response, no access, or a server failure.
    Nothing(Error),
}

pub(crate) fn judge(answer: Result<Raw, Error>) -> Verdict {
    match answer {
        Ok(result) => match stateless::read_discovery(&result) {
            Some((revisions, welcome)) if names_ours(&revisions) => Verdict::Stateless(welcome),
            _ => Verdict::Sessions,
        },
        Err(error) => match error.relayed.as_ref().map(|relayed| relayed.object().unwrap_or_default()) {
            Some(relayed) if stateless::supported_revisions(&relayed).is_some_and(|r| names_ours(&r)) => {
                Verdict::Again(error)
            }
            Some(_) => Verdict::Sessions,
            None if matches!(error.name, Some(REFUSED | DECLINED | NO_ANSWER | ERA_LOST)) => {
                Verdict::Sessions
            }
            None => Verdict::Nothing(error),
        },
    }
}

fn names_ours(revisions: &[String]) -> bool {
    revisions.iter().any(|revision| revision == stateless::REVISION)
}

/// Returns `true` if this `initialize` error may come from a stateless server.
pub(crate) fn refuses_sessions(error: &Error) -> bool {
    error.relayed.is_some() || error.name == Some(REFUSED)
}

/// Names an error that shows that the server speaks a different revision from the request's. Valid only for requests
/// refused at the HTTP level: any other may have run.
pub(crate) fn recognise(error: Error, sent_stateless: bool) -> Error {
    let relayed = error.relayed.as_ref().and_then(Raw::object).unwrap_or_default();
    let code = code_of(&relayed);
    if sent_stateless && code == Some(HEADER_MISMATCH) {
        return error.named(MISFIT);
    }
    let lost = match code {
        Some(UNSUPPORTED_REVISION) => true,
        // An invalid request or unknown method that mentions a session: nothing can have run.
        Some(-32600 | -32601) if sent_stateless => complains(&error.message),
        Some(-32600 | -32602 | HEADER_MISMATCH) if !sent_stateless => misses_claim(&error.message),
        _ => false,
    };
    if lost { error.named(ERA_LOST) } else { error }
}

/// Returns `true` if a refusal mentions sessions, which stateless requests do not have.
pub(crate) fn complains(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    text.contains("session") || text.contains("initializ")
}

/// Returns `true` if a refusal names a missing header or `_meta` member of the stateless revision.
fn misses_claim(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    ["io.modelcontextprotocol/protocolversion", "mcp-protocol-version", "mcp-method"]
        .iter()
        .any(|word| text.contains(word))
}

/// Returns `true` if this error means that the server no longer speaks the stateless revision.
pub(crate) fn casts_doubt(error: &Error) -> bool {
    matches!(error.name, Some(ERA_LOST | REFUSED))
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
    use hikite_core::error::Kind;

    use super::*;

    fn refusal(code: i32, message: &str, data: &str) -> Error {
        let text = format!(r#"{{"code":{code},"message":"{message}","data":{data}}}"#);
        Error::from_upstream(Raw::parse(text).expect("valid"))
    }

    fn verdict(answer: Result<Raw, Error>) -> &'static str {
        match judge(answer) {
            Verdict::Stateless(_) => "stateless",
            Verdict::Again(_) => "again",
            Verdict::Sessions => "sessions",
            Verdict::Nothing(_) => "nothing",
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
        assert_eq!(verdict(Err(named)), "again");
        let older = refusal(-32022, "no", r#"{"supported":["2025-11-25"]}"#);
        assert_eq!(verdict(Err(older)), "sessions");
        for code in [-32601, -32600, -32602, -32020, -32021, -32000, 1] {
            assert_eq!(verdict(Err(refusal(code, "no", "null"))), "sessions", "{code}");
        }
    }

    #[test]
    fn trouble_is_no_verdict_and_a_refusal_is() {
        let failure = || Error::new(Kind::UpstreamUnavailable, "it answered 503");
        assert_eq!(verdict(Err(failure())), "nothing");
        assert_eq!(verdict(Err(failure().named(REFUSED))), "sessions");
        assert_eq!(verdict(Err(failure().named(NO_ANSWER))), "sessions");
    }

    #[test]
    fn a_complaint_about_sessions_loses_the_era_and_a_plain_error_does_not() {
        let name = |error: Error, sent_stateless| recognise(error, sent_stateless).name;
        assert_eq!(name(refusal(-32022, "no", "null"), false), Some(ERA_LOST));
        assert_eq!(name(refusal(-32600, "Missing session ID", "null"), true), Some(ERA_LOST));
        assert_eq!(name(refusal(-32600, "Missing session ID", "null"), false), None);
        assert_eq!(name(refusal(-32601, "Method not found", "null"), true), None);
        assert_eq!(name(refusal(-32602, "no such session", "null"), true), None);
        assert_eq!(name(refusal(-32020, "Missing header: Mcp-Method", "null"), false), Some(ERA_LOST));
        assert_eq!(name(refusal(-32602, "`name` is missing", "null"), false), None);
        assert_eq!(name(refusal(-32020, "Missing header: Mcp-Param-X", "null"), true), Some(MISFIT));
    }

    #[test]
    fn a_listing_remembers_the_era() {
        let of = |revision: Option<&str>| {
            let revision = revision.map(Into::into);
            Memory::of(Some(&Listing { revision, ..Listing::default() })).opening()
        };
        assert_eq!(of(None), Opening::Probe);
        assert_eq!(of(Some("2026-07-28")), Opening::Stateless);
        assert_eq!(of(Some("2025-06-18")), Opening::Sessions);
    }
}

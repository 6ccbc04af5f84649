//! The token of a forwarded request: names the caller, sealed with the cluster key over method, path, headers and body;
//! valid for one node, for seconds and once. Everything else is refused.

use std::collections::HashSet;
use std::time::Duration;

use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::hex::hex;
use hikite_core::signer::HmacSigner;
use http::Method;
use http::header::{HeaderMap, HeaderName};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::mcp::random_id;
use crate::request_context::CallerProof;

pub(super) const HEADER: HeaderName = HeaderName::from_static("hikite-pass");
/// Purpose of the seal.
const PURPOSE: &[u8] = b"node";
/// Maximum clock difference between two nodes, including the transfer time.
const LEEWAY: Duration = Duration::from_secs(10);
/// Maximum nonces remembered within that time; more requests are refused.
const NONCES_MAX: usize = 1_000_000;

/// Hop-by-hop headers and those that nodes do not forward, by name and by prefix.
const HOP_BY_HOP: [&str; 13] = [
    "authorization",
    "connection",
    "content-length",
    "cookie",
    "expect",
    "forwarded",
    "host",
    "keep-alive",
    "origin",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];
const HOP_BY_HOP_PREFIXES: [&str; 4] = ["hikite-", "proxy-", "x-forwarded-", "access-control-"];

/// Returns `true` if a header is forwarded between nodes.
pub(super) fn is_end_to_end(name: &HeaderName) -> bool {
    let name = name.as_str();
    !HOP_BY_HOP.contains(&name) && !HOP_BY_HOP_PREFIXES.iter().any(|family| name.starts_with(family))
}

#[derive(Debug, Deserialize, Serialize)]
struct PeerToken<'a> {
    /// The recipient node.
    to: &'a str,
    /// Milliseconds since 1970.
    at: u64,
    once: String,
    subject: String,
    project: Option<String>,
    token: Option<String>,
    scopes: Vec<String>,
    /// `true` if the caller was authenticated by a token.
    shown: bool,
}

/// The reason for refusing a request as not from another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum PeerRejection {
    /// The token is missing or invalid.
    Invalid(&'static str),
    /// The token is genuine, but the clocks of the nodes differ too much to detect a replay.
    Clock { apart: Duration, is_ahead: bool },
}

impl PeerRejection {
    /// Returns the error for the other node's client.
    pub(super) fn error(self) -> Error {
        match self {
            Self::Invalid(_) => Error::new(ErrorKind::Authorization, "This address is reserved for the other nodes."),
            Self::Clock { apart, .. } => {
                let (apart, most) = (apart.as_secs(), LEEWAY.as_secs());
                let error = Error::new(
                    ErrorKind::Overloaded,
                    format!("The clocks of two nodes differ by {apart} s; the limit is {most} s."),
                );
                let hint = "The administrator must synchronize the clocks of all nodes, for example with NTP. Until then, \
                 sessions only work on the node where they started.";
                error.hint(hint).after(LEEWAY)
            }
        }
    }
}

impl std::fmt::Display for PeerRejection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Invalid(why) => f.write_str(why),
            Self::Clock { apart, is_ahead } => {
                let (seconds, side) = (apart.as_secs(), if *is_ahead { "ahead of" } else { "behind" });
                let most = LEEWAY.as_secs();
                write!(f, "the clock here is {seconds} s {side} that of the other node; the limit is {most} s")
            }
        }
    }
}

/// Method, path, headers and body of a request.
pub(super) type SignedRequest<'a> = (&'a Method, &'a str, &'a HeaderMap, &'a [u8]);

/// Issues and verifies peer tokens.
pub(super) struct PeerAuthenticator {
    seal: HmacSigner,
    nonces: Mutex<NonceWindow>,
}

/// The nonces of the current and the previous time window.
struct NonceWindow {
    before: HashSet<String>,
    now: HashSet<String>,
    since: Instant,
}

impl PeerAuthenticator {
    pub(super) fn new(key: [u8; 32]) -> Self {
        let nonces = NonceWindow { before: HashSet::new(), now: HashSet::new(), since: Instant::now() };
        Self { seal: HmacSigner::new(key), nonces: Mutex::new(nonces) }
    }

    /// Issues a token for one request to one node. `request` has only the headers that are forwarded.
    pub(super) fn issue(
        &self,
        request: SignedRequest<'_>,
        to: &str,
        (caller, proof): (&Caller, CallerProof),
        now: u64,
    ) -> Result<String, Error> {
        let pass = PeerToken {
            to,
            at: now,
            once: random_id()?,
            subject: caller.subject.to_string(),
            project: caller.project.as_deref().map(ToOwned::to_owned),
            token: caller.token.as_deref().map(ToOwned::to_owned),
            scopes: caller.scopes.names().map(ToOwned::to_owned).collect(),
            shown: proof != CallerProof::Unauthenticated,
        };
        let payload = serde_json::to_vec(&pass).unwrap_or_default();
        Ok(self.seal.put(&payload, &sealed_parts(request).each_ref().map(Vec::as_slice)))
    }

    /// Verifies the token of a request and returns the caller.
    pub(super) fn admit(
        &self,
        request: SignedRequest<'_>,
        own: &str,
        now: u64,
    ) -> Result<(Caller, CallerProof), PeerRejection> {
        let mut shown = request.2.get_all(HEADER).iter();
        let (Some(text), None) = (shown.next().and_then(|text| text.to_str().ok()), shown.next()) else {
            return Err(PeerRejection::Invalid("it has no peer token, or more than one"));
        };
        let payload = self.seal.open(text, &sealed_parts(request).each_ref().map(Vec::as_slice));
        let payload = payload.ok_or(PeerRejection::Invalid("its peer token is not valid, or not for this request"))?;
        let pass: PeerToken<'_> =
            serde_json::from_slice(&payload).map_err(|_| PeerRejection::Invalid("its peer token cannot be read"))?;
        if pass.to != own {
            return Err(PeerRejection::Invalid("its peer token is for another node"));
        }
        let apart = Duration::from_millis(pass.at.abs_diff(now));
        if apart > LEEWAY {
            return Err(PeerRejection::Clock { apart, is_ahead: now > pass.at });
        }
        self.nonces.lock().take(&pass.once).map_err(PeerRejection::Invalid)?;
        let scopes = pass.scopes.iter().filter_map(|name| Scopes::parse(name));
        let caller = Caller {
            subject: pass.subject.as_str().into(),
            project: pass.project.as_deref().map(Into::into),
            token: pass.token.as_deref().map(Into::into),
            scopes: scopes.fold(Scopes::NONE, Scopes::with),
        };
        Ok((caller, if pass.shown { CallerProof::Token } else { CallerProof::Unauthenticated }))
    }
}

impl NonceWindow {
    /// Records a nonce; fails if it was used before. A token older than both windows is refused for its age.
    fn take(&mut self, once: &str) -> Result<(), &'static str> {
        if self.since.elapsed() > LEEWAY * 2 {
            self.before = std::mem::take(&mut self.now);
            if self.since.elapsed() > LEEWAY * 4 {
                self.before.clear();
            }
            self.since = Instant::now();
        }
        if self.before.contains(once) || self.now.contains(once) {
            return Err("its peer token was already used");
        }
        if self.now.len() >= NONCES_MAX {
            return Err("too many peer tokens are in use");
        }
        self.now.insert(once.to_owned());
        Ok(())
    }
}

/// Returns the parts of the request that the token is sealed over.
fn sealed_parts((method, path, headers, body): SignedRequest<'_>) -> [Vec<u8>; 5] {
    let mut travelling: Vec<_> = headers.iter().filter(|(name, _)| is_end_to_end(name)).collect();
    // The sort is stable: repeated headers keep their order.
    travelling.sort_by(|(one, _), (other, _)| one.as_str().cmp(other.as_str()));
    let mut digest = Sha256::new();
    for (name, value) in travelling {
        for part in [name.as_str().as_bytes(), value.as_bytes()] {
            digest.update((part.len() as u64).to_be_bytes());
            digest.update(part);
        }
    }
    let headers = hex(&digest.finalize()).into_bytes();
    let body = hex(&Sha256::digest(body)).into_bytes();
    [PURPOSE.to_vec(), method.as_str().as_bytes().to_vec(), path.as_bytes().to_vec(), headers, body]
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    const NOW: u64 = 1_000_000;

    fn headers(pass: Option<&str>, session: &str) -> HeaderMap {
        let mut headers = HeaderMap::new();
        headers.insert("mcp-session-id", HeaderValue::from_str(session).expect("a value"));
        headers.insert("host", HeaderValue::from_static("differs.example"));
        if let Some(pass) = pass {
            headers.insert(HEADER, HeaderValue::from_str(pass).expect("a value"));
        }
        headers
    }

    fn issue(authenticator: &PeerAuthenticator, caller: &Caller) -> String {
        let sent = headers(None, "s");
        let request = (&Method::POST, "/mcp?surface=direct", &sent, &b"{}"[..]);
        authenticator.issue(request, "b", (caller, CallerProof::Token), NOW).expect("a pass")
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_says_who_asks() {
        let authenticator = PeerAuthenticator::new([7; 32]);
        for caller in [
            Caller::owner(),
            Caller::owner().within("仕事".into()),
            Caller { token: Some("tok_1".into()), scopes: Scopes::READ, ..Caller::named("alice") },
        ] {
            let sent = headers(Some(&issue(&authenticator, &caller)), "s");
            let request = (&Method::POST, "/mcp?surface=direct", &sent, &b"{}"[..]);
            assert_eq!(authenticator.admit(request, "b", NOW), Ok((caller, CallerProof::Token)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_pass_is_good_for_one_request_to_one_node_for_seconds_and_once() {
        let authenticator = PeerAuthenticator::new([7; 32]);
        let text = issue(&authenticator, &Caller::owner());
        let good = headers(Some(&text), "s");
        let path = "/mcp?surface=direct";
        let mut twice = good.clone();
        twice.append(HEADER, HeaderValue::from_str(&text).expect("a value"));
        let later = NOW + 10_001;
        let (bare, other, forged) = (headers(None, "s"), headers(Some(&text), "t"), PeerAuthenticator::new([8; 32]));
        let forged = headers(Some(&issue(&forged, &Caller::owner())), "s");
        let mut tampered = text.clone().into_bytes();
        tampered[10] ^= 1;
        let tampered = headers(Some(&String::from_utf8_lossy(&tampered)), "s");
        for (request, own, now, why) in [
            ((&Method::POST, path, &bare, &b"{}"[..]), "b", NOW, "no pass"),
            ((&Method::POST, path, &twice, b"{}"), "b", NOW, "two passes"),
            ((&Method::POST, path, &forged, b"{}"), "b", NOW, "another key"),
            ((&Method::POST, path, &tampered, b"{}"), "b", NOW, "another caller"),
            ((&Method::GET, path, &good, b"{}"), "b", NOW, "another method"),
            ((&Method::POST, "/mcp", &good, b"{}"), "b", NOW, "another address"),
            ((&Method::POST, path, &other, b"{}"), "b", NOW, "another header"),
            ((&Method::POST, path, &good, b"{ }"), "b", NOW, "another body"),
            ((&Method::POST, path, &good, b"{}"), "c", NOW, "another node"),
            ((&Method::POST, path, &good, b"{}"), "b", later, "too late"),
            ((&Method::POST, path, &good, b"{}"), "b", NOW - 10_001, "too early"),
        ] {
            assert!(authenticator.admit(request, own, now).is_err(), "{why}");
        }
        let request = (&Method::POST, path, &good, &b"{}"[..]);
        assert!(authenticator.admit(request, "b", NOW).is_ok());
        assert_eq!(
            authenticator.admit(request, "b", NOW),
            Err(PeerRejection::Invalid("its peer token was already used"))
        );
        tokio::time::advance(LEEWAY * 2 + Duration::from_secs(1)).await;
        assert_eq!(
            authenticator.admit(request, "b", NOW),
            Err(PeerRejection::Invalid("its peer token was already used"))
        );
    }

    #[tokio::test(start_paused = true)]
    async fn clocks_that_differ_are_told_from_strangers() {
        let authenticator = PeerAuthenticator::new([7; 32]);
        let sent = headers(Some(&issue(&authenticator, &Caller::owner())), "s");
        let request = (&Method::POST, "/mcp?surface=direct", &sent, &b"{}"[..]);
        for (now, side) in [(NOW + 42_000, "42 s ahead of"), (NOW - 42_000, "42 s behind")] {
            let refused = authenticator.admit(request, "b", now).expect_err("too far apart");
            assert!(refused.to_string().contains(side), "{refused}");
            let error = refused.error();
            assert_eq!(error.kind, ErrorKind::Overloaded);
            assert!(error.message.contains("42 s") && error.message.contains("10 s"), "{error}");
            assert!(error.hint.is_some_and(|hint| hint.contains("NTP")));
        }
        let stranger = PeerRejection::Invalid("it has no peer token, or more than one").error();
        assert_eq!(stranger.kind, ErrorKind::Authorization);
    }

    #[test]
    fn what_a_client_proves_itself_with_stays_here() {
        for name in ["authorization", "cookie", "x-forwarded-for", "hikite-pass", "hikite-project", "host"] {
            assert!(!is_end_to_end(&HeaderName::from_static(name)), "{name}");
        }
        for name in ["mcp-session-id", "accept", "last-event-id", "mcp-param-x", "traceparent"] {
            assert!(is_end_to_end(&HeaderName::from_static(name)), "{name}");
        }
    }
}

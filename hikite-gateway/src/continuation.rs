//! Continuation tokens that sessionless clients return as `requestState`: a reference to a suspended call, or the
//! state of the upstream server. A token is valid for one caller, one request and a limited time; all other tokens
//! are rejected with the same message.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Caller;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, canonical};
use hikite_core::signer::HmacSigner;
use sha2::{Digest, Sha256};

/// Content of a continuation token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ContinuationToken {
    /// A suspended call and the process that holds it.
    SuspendedCall { process: Arc<str>, id: u64 },
    /// State of the upstream server that handles this request.
    Server(String),
}

#[derive(Debug)]
pub(crate) struct ContinuationTokens {
    seal: HmacSigner,
    lifetime: Duration,
}

/// The request that a token is bound to.
#[derive(Clone, Copy, Debug)]
pub struct TokenBinding<'a> {
    pub caller: &'a Caller,
    pub method: &'a str,
    pub params: &'a Object,
}

const SUSPENDED: u8 = b'p';
const SERVER: u8 = b's';

impl ContinuationTokens {
    pub(crate) fn new(seal: HmacSigner, lifetime: Duration) -> Self {
        Self { seal, lifetime }
    }

    /// Issues a token. Any process may read it, so its expiry is wall-clock time.
    pub(crate) fn issue(&self, continuation: &ContinuationToken, purpose: TokenBinding<'_>, now: u64) -> String {
        let lifetime = u64::try_from(self.lifetime.as_millis()).unwrap_or(u64::MAX);
        let mut payload = now.saturating_add(lifetime).to_be_bytes().to_vec();
        match continuation {
            ContinuationToken::SuspendedCall { process, id } => {
                payload.push(SUSPENDED);
                payload.extend(id.to_be_bytes());
                payload.extend(process.as_bytes());
            }
            ContinuationToken::Server(state) => {
                payload.push(SERVER);
                payload.extend(state.as_bytes());
            }
        }
        let [subject, project] = purpose.caller.parts();
        self.seal.put(&payload, &[subject, project, &purpose.digest()])
    }

    pub(crate) fn read(&self, text: &str, purpose: TokenBinding<'_>, now: u64) -> Result<ContinuationToken, Error> {
        self.open(text, purpose, now).ok_or_else(refused)
    }

    fn open(&self, text: &str, purpose: TokenBinding<'_>, now: u64) -> Option<ContinuationToken> {
        let [subject, project] = purpose.caller.parts();
        let payload = self.seal.open(text, &[subject, project, &purpose.digest()])?;
        let (until, rest) = payload.split_first_chunk::<8>()?;
        if now > u64::from_be_bytes(*until) {
            return None;
        }
        match rest.split_first()? {
            (&SUSPENDED, place) => {
                let (id, process) = place.split_first_chunk::<8>()?;
                let process = std::str::from_utf8(process).ok()?.into();
                Some(ContinuationToken::SuspendedCall { process, id: u64::from_be_bytes(*id) })
            }
            (&SERVER, state) => Some(ContinuationToken::Server(String::from_utf8(state.to_vec()).ok()?)),
            _ => None,
        }
    }
}

/// Builds the error for an invalid token, the same for every reason.
pub(crate) fn refused() -> Error {
    Error::new(ErrorKind::Validation, "`requestState` is not valid for this request.")
        .hint("Send the request again without `requestState` and `inputResponses`.")
}

impl TokenBinding<'_> {
    /// Hashes the parts of the request that must stay the same, in canonical form.
    fn digest(&self) -> [u8; 32] {
        let own = |name: &str| ["_meta", "inputResponses", "requestState"].contains(&name);
        let rest = self.params.filtered(|name| !own(name));
        // Method names contain no line feed, so the concatenation is unambiguous.
        Sha256::new()
            .chain_update(self.method)
            .chain_update("\n")
            .chain_update(canonical(&rest.raw()))
            .finalize()
            .into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ticket_is_good_for_its_caller_its_request_and_its_time() {
        let tickets = ContinuationTokens::new(HmacSigner::new([7; 32]), Duration::from_secs(60));
        let (owner, stranger) = (Caller::owner(), Caller::named("stranger"));
        let elsewhere = Caller { project: Some("p".into()), ..Caller::owner() };
        let arguments = |text: &str| hikite_core::json::Raw::parse(text.to_owned()).expect("valid");
        let params = Object::default().with("name", "t").with("arguments", arguments(r#"{"a":2,"b":[1]}"#));
        let purpose = TokenBinding { caller: &owner, method: "tools/call", params: &params };
        for continuation in [
            ContinuationToken::SuspendedCall { process: "here".into(), id: 7 },
            ContinuationToken::Server("日本".into()),
        ] {
            let text = tickets.issue(&continuation, purpose, 5);
            let again = params.clone().with("_meta", "x").with("requestState", "y").with("inputResponses", "z");
            assert_eq!(
                tickets.read(&text, TokenBinding { params: &again, ..purpose }, 60_005).ok(),
                Some(continuation)
            );
            let order = Object::default().with("arguments", arguments(r#"{ "b": [1], "a": 2 }"#)).with("name", "t");
            assert!(tickets.read(&text, TokenBinding { params: &order, ..purpose }, 60_005).is_ok());
            let changed = params.clone().with("arguments", arguments(r#"{"a":2,"b":[1,1]}"#));
            assert!(tickets.read(&text, TokenBinding { params: &changed, ..purpose }, 60_005).is_err());
            let other = Object::default().with("name", "u");
            assert!(tickets.read(&text, TokenBinding { params: &other, ..purpose }, 60_005).is_err());
            for caller in [&stranger, &elsewhere] {
                assert!(tickets.read(&text, TokenBinding { caller, ..purpose }, 60_005).is_err());
            }
            assert!(tickets.read(&text, TokenBinding { method: "prompts/get", ..purpose }, 60_005).is_err());
            assert!(tickets.read(&format!("{text}x"), purpose, 60_005).is_err());
        }
        let late = tickets.issue(&ContinuationToken::SuspendedCall { process: "here".into(), id: 7 }, purpose, 5);
        assert!(tickets.read(&late, purpose, 60_006).is_err());
    }
}

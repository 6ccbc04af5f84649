//! The context of a request: caller, proof of identity, request id, trace and transport.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use axum::response::Response;
use hikite_core::caller::Caller;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::secret::Secret;
use hikite_core::source::CallOrigin;
use hikite_core::trace::TraceContext;
use http::header::{HeaderMap, HeaderName};
use http::request::Parts;

use crate::error_response::error_response;
use crate::request_id::RequestId;

/// HTTP, as named by the OpenTelemetry conventions (`network.transport`).
pub(crate) const TCP: &str = "tcp";
/// Stdin and stdout.
pub(crate) const PIPE: &str = "pipe";

const PARENT: HeaderName = HeaderName::from_static("traceparent");
const STATE: HeaderName = HeaderName::from_static("tracestate");

/// The proof of a caller's identity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallerProof {
    /// A bearer token of a program: a personal token, an access token, or a token of another issuer.
    Token,
    /// The local token, which is stored beside the database.
    Local,
    /// The login session of a browser.
    Login,
    /// No proof: with stdio, or in auth mode `none`, whoever connects is the owner. A message may name another caller
    /// in its `_meta`.
    Unauthenticated,
}

impl CallerProof {
    /// Returns `true` if a person is present, as opposed to a program that acts for one.
    pub(crate) fn is_person(self) -> bool {
        self != Self::Token
    }
}

/// The request extension that the guard inserts for every route that needs a caller; handlers extract it.
#[derive(Clone, Debug)]
pub(crate) struct RequestContext {
    pub(crate) caller: Caller,
    pub(crate) proof: CallerProof,
    pub(crate) origin: CallOrigin,
    pub(crate) transport: &'static str,
    /// Set if another node forwarded the request; it is not forwarded again.
    pub(crate) is_forwarded: bool,
    /// The login session of the browser, if there is one.
    pub(crate) login: Option<BrowserLogin>,
}

/// A browser's login session.
#[derive(Clone, Debug)]
pub(crate) struct BrowserLogin {
    /// The secret in the cookie.
    pub(crate) secret: Secret,
    /// Start of the login, in milliseconds since 1970.
    pub(crate) since: u64,
}

impl RequestContext {
    pub(crate) fn over_http(caller: Caller, proof: CallerProof, origin: CallOrigin) -> Self {
        Self { caller, proof, origin, transport: TCP, is_forwarded: false, login: None }
    }

    /// Builds the context of a message that has no HTTP request around it.
    pub(crate) fn bare(caller: Caller, proof: CallerProof, transport: &'static str) -> Self {
        let request_id = Some(RequestId::random().0);
        let origin = CallOrigin { request_id, ..CallOrigin::default() };
        Self { caller, proof, origin, transport, is_forwarded: false, login: None }
    }
}

impl<S: Sync> FromRequestParts<S> for RequestContext {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let no_guard = || {
            error_response(Error::new(
                ErrorKind::Internal,
                "A handler that needs a caller is not behind the authentication layer.",
            ))
        };
        parts.extensions.remove().ok_or_else(no_guard)
    }
}

/// Reads the request id and the trace context from the headers of a request.
pub(crate) fn origin(id: &RequestId, headers: &HeaderMap) -> CallOrigin {
    let request_id = Some(Arc::clone(&id.0));
    let Some(context) = context(headers) else { return CallOrigin { request_id, ..CallOrigin::default() } };
    let traceparent = Some(context.to_string().into());
    CallOrigin { request_id, traceparent, tracestate: context.state, client: None }
}

fn context(headers: &HeaderMap) -> Option<TraceContext> {
    // Nearly all requests have no `traceparent`, so `tracestate` is read only after it.
    let mut parents = headers.get_all(PARENT).iter();
    let (Some(parent), None) = (parents.next(), parents.next()) else { return None };
    let context = TraceContext::parse(parent.to_str().ok()?)?;
    // The `tracestate` header may be repeated; its values are joined.
    let states: Vec<&str> = headers.get_all(STATE).iter().filter_map(|state| state.to_str().ok()).collect();
    Some(context.with_state(Some(&states.join(","))))
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    #[test]
    fn the_trace_of_a_client_is_taken_only_where_it_is_well_formed() {
        const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        let of = |all: &[(&HeaderName, &str)]| {
            let mut headers = HeaderMap::new();
            for (name, value) in all {
                headers.append(*name, HeaderValue::from_str(value).expect("a value"));
            }
            origin(&RequestId("r".into()), &headers)
        };
        let told = of(&[(&PARENT, GOOD), (&STATE, "a=1"), (&STATE, "b=2")]);
        assert_eq!((told.traceparent.as_deref(), told.tracestate.as_deref()), (Some(GOOD), Some("a=1,b=2")));
        assert_eq!(told.trace_id(), Some("4bf92f3577b34da6a3ce929d0e0e4736"));
        for bad in [vec![(&PARENT, "x")], vec![(&PARENT, GOOD), (&PARENT, GOOD)], vec![(&STATE, "a=1")]] {
            let told = of(&bad);
            assert_eq!((told.traceparent, told.tracestate), (None, None), "{bad:?}");
        }
    }
}

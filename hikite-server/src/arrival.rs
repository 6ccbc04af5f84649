//! How a request came in: its id, the trace it says it belongs to, and over what.

use std::sync::Arc;

use hikite_core::source::Origin;
use hikite_core::trace::TraceContext;
use http::header::{HeaderMap, HeaderName};

use crate::request_id::RequestId;

/// Over HTTP, as the conventions for traces name it.
pub(crate) const TCP: &str = "tcp";
/// Over stdin and stdout.
pub(crate) const PIPE: &str = "pipe";

const PARENT: HeaderName = HeaderName::from_static("traceparent");
const STATE: HeaderName = HeaderName::from_static("tracestate");

#[derive(Clone, Debug)]
pub(crate) struct Arrival {
    pub(crate) origin: Origin,
    pub(crate) transport: &'static str,
}

impl Arrival {
    pub(crate) fn over_http(origin: Origin) -> Self {
        Self { origin, transport: TCP }
    }

    /// A message that came with nothing around it.
    pub(crate) fn bare(transport: &'static str) -> Self {
        let request_id = Some(RequestId::random().0);
        Self { origin: Origin { request_id, ..Origin::default() }, transport }
    }
}

/// What the headers of a request say of its origin.
pub(crate) fn origin(id: Option<&RequestId>, headers: &HeaderMap) -> Origin {
    let request_id = id.map(|id| Arc::clone(&id.0));
    let Some(context) = context(headers) else { return Origin { request_id, ..Origin::default() } };
    let traceparent = Some(context.to_string().into());
    Origin { request_id, traceparent, tracestate: context.state, client: None }
}

fn context(headers: &HeaderMap) -> Option<TraceContext> {
    // Nearly every request has none, and is asked for nothing else.
    let mut parents = headers.get_all(PARENT).iter();
    let (Some(parent), None) = (parents.next(), parents.next()) else { return None };
    let context = TraceContext::parse(parent.to_str().ok()?)?;
    // It may come in several headers, which belong together.
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
            origin(None, &headers)
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

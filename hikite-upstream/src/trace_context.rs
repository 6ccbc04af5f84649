//! Propagates the W3C trace context of a call to its server: in `_meta` of the request, and over HTTP in headers too.
//! Calls without a trace send nothing.

use hikite_core::json::Object;
use hikite_core::source::CallOrigin;
use http::header::{HeaderMap, HeaderName, HeaderValue};

const PARENT: HeaderName = HeaderName::from_static("traceparent");
const STATE: HeaderName = HeaderName::from_static("tracestate");

pub(crate) fn into_meta(mut meta: Object, origin: &CallOrigin) -> Object {
    let Some(parent) = &origin.traceparent else { return meta };
    meta.set("traceparent", &**parent);
    match &origin.tracestate {
        Some(state) => meta.set("tracestate", &**state),
        // A client's `tracestate` belongs to a different span.
        None => drop(meta.remove("tracestate")),
    }
    meta
}

pub(crate) fn into_headers(headers: &mut HeaderMap, origin: &CallOrigin) {
    let Some(parent) = &origin.traceparent else { return };
    for (name, text) in [(PARENT, Some(parent)), (STATE, origin.tracestate.as_ref())] {
        if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
            headers.insert(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_call_with_a_trace_tells_of_it() {
        let meta = Object::default().with("traceparent", "old").with("tracestate", "old").with("x", "y");
        let mut headers = HeaderMap::new();
        assert_eq!(into_meta(meta.clone(), &CallOrigin::default()).raw(), meta.raw());
        into_headers(&mut headers, &CallOrigin::default());
        assert!(headers.is_empty());
        let mut origin = CallOrigin { traceparent: Some("00-a-b-01".into()), ..CallOrigin::default() };
        assert_eq!(into_meta(meta.clone(), &origin).raw().as_str(), r#"{"traceparent":"00-a-b-01","x":"y"}"#);
        origin.tracestate = Some("v=1".into());
        let told = into_meta(meta, &origin);
        assert_eq!(told.text("tracestate").as_deref(), Some("v=1"));
        into_headers(&mut headers, &origin);
        assert_eq!(headers[PARENT], "00-a-b-01");
        assert_eq!(headers[STATE], "v=1");
    }
}

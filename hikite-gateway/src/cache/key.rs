//! What makes two calls the same: who calls, what is called, and everything in the request that may change the
//! answer.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::json::{Object, Raw, write_string};
use hikite_core::source::{CallContext, Method};
use sha2::{Digest, Sha256};

/// Where one call's result is kept, and for how long at most.
#[derive(Clone, Debug)]
pub(crate) struct Keep {
    pub(super) key: Key,
    pub(super) ttl: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    caller: Arc<str>,
    pub(super) module: Arc<str>,
    /// Which state of the module: its tools may mean something else after a change.
    pub(super) generation: u64,
    /// The tool's own name, or the address of the resource.
    subject: Arc<str>,
    is_resource: bool,
    digest: [u8; 32],
}

/// Members of params that belong to one conversation with the server and no other.
const OF_ITS_OWN: [&str; 3] = ["task", "inputResponses", "requestState"];
/// Members of `_meta` that say nothing of what is asked for.
const NOTHING: [&str; 4] = ["progressToken", "traceparent", "tracestate", "baggage"];

impl Keep {
    /// `None` for a request that is not like any other.
    pub(crate) fn new(
        module: (&Arc<str>, u64),
        method: Method,
        params: &Object,
        context: &CallContext,
        ttl: Duration,
    ) -> Option<Self> {
        if ttl.is_zero() || OF_ITS_OWN.iter().any(|name| params.get(name).is_some()) {
            return None;
        }
        let is_resource = method == Method::ReadResource;
        let subject = params.text(if is_resource { "uri" } else { "name" })?;
        let mut params = params.clone();
        if let Some(mut meta) = params.get("_meta").and_then(Raw::object) {
            for name in NOTHING {
                meta.remove(name);
            }
            params.remove("_meta");
            if !meta.is_empty() {
                params.set("_meta", meta);
            }
        }
        let mut bytes = canonical(&params.raw());
        // To those who take rounds a result looks different.
        bytes.push(u8::from(context.takes_rounds));
        let key = Key {
            caller: Arc::clone(&context.session.caller.subject),
            module: Arc::clone(module.0),
            generation: module.1,
            subject: subject.into(),
            is_resource,
            digest: Sha256::digest(&bytes).into(),
        };
        Some(Self { key, ttl })
    }
}

impl Key {
    pub(super) fn bytes(&self) -> u32 {
        let bytes = size_of::<Self>() + self.caller.len() + self.subject.len();
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// Whether it is a reading of this resource, or of a part of it, or of what it is a part of.
    pub(super) fn reads(&self, uri: &str) -> bool {
        let is_part = |whole: &str, part: &str| {
            part.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '#', '?']))
        };
        self.is_resource && (is_part(uri, &self.subject) || is_part(&self.subject, uri))
    }
}

/// Deeper parts count as they are written.
const DEPTH: usize = 64;

/// The same bytes for the same value: members sorted, no blanks, strings in one spelling.
fn canonical(raw: &Raw) -> Vec<u8> {
    let mut out = Vec::with_capacity(raw.bytes().len());
    write_canonical(raw, DEPTH, &mut out);
    out
}

fn write_canonical(raw: &Raw, depth: usize, out: &mut Vec<u8>) {
    if depth == 0 {
        out.extend_from_slice(raw.bytes());
    } else if let Some(object) = raw.object() {
        let mut members: Vec<(&str, &Raw)> = object.iter().collect();
        members.sort_unstable_by_key(|(name, _)| *name);
        out.push(b'{');
        for (name, value) in members {
            write_string(name, out);
            out.push(b':');
            write_canonical(value, depth - 1, out);
            out.push(b',');
        }
        out.push(b'}');
    } else if let Some(items) = raw.items() {
        out.push(b'[');
        for item in items {
            write_canonical(&item, depth - 1, out);
            out.push(b',');
        }
        out.push(b']');
    } else if let Some(text) = raw.text() {
        write_string(&text, out);
    } else {
        out.extend_from_slice(raw.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_that_are_the_same_have_the_same_bytes() {
        let of = |text: &str| canonical(&Raw::parse(text.to_owned()).expect("valid"));
        assert_eq!(of(r#"{"a":1, "b":[ "\u0041", {} ]}"#), of(r#"{"b":["A",{}],"a":1}"#));
        for other in [r#"{"a":1,"b":["A",[]]}"#, r#"{"a":"1","b":["A",{}]}"#, r#"{"b":["A",{}]}"#] {
            assert_ne!(of(other), of(r#"{"b":["A",{}],"a":1}"#), "{other}");
        }
        assert_ne!(of("12345678901234567890123"), of("12345678901234567890124"));
        assert_ne!(of("[[],[]]"), of("[[[]]]"));
    }
}

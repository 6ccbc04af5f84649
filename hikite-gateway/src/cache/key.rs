//! What makes two calls the same: who calls, what is called, and everything in the request that may change the
//! answer.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Caller;
use hikite_core::json::{Object, Raw, canonical};
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
    caller: Caller,
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
        // What one account sees is not for another.
        bytes.extend(context.account.as_deref().unwrap_or_default().as_bytes());
        let key = Key {
            caller: context.session.caller.clone(),
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
        let bytes = size_of::<Self>() + self.caller.subject.len() + self.subject.len();
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

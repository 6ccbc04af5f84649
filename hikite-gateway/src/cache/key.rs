//! Cache keys: two calls are the same if the caller, the target and everything in the request that may change the
//! answer are the same.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Caller;
use hikite_core::json::{Object, Raw, canonical};
use hikite_core::source::{CallContext, SourceMethod};
use sha2::{Digest, Sha256};

/// The cache key of a call and the longest lifetime of its result.
#[derive(Clone, Debug)]
pub(crate) struct CacheRequest {
    pub(super) key: CacheKey,
    pub(super) ttl: Duration,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct CacheKey {
    caller: Caller,
    pub(super) module: Arc<str>,
    /// Generation of the module: its tools may mean something else after a change.
    pub(super) generation: u64,
    /// The tool's own name, or the URI of the resource.
    subject: Arc<str>,
    is_resource: bool,
    digest: [u8; 32],
}

/// Members of params that tie a request to one exchange with the server.
const SESSION_MEMBERS: [&str; 3] = ["task", "inputResponses", "requestState"];
/// Members of `_meta` that do not change the answer.
const IGNORED_META: [&str; 4] = ["progressToken", "traceparent", "tracestate", "baggage"];

impl CacheRequest {
    /// Returns `None` if the request cannot be cached.
    pub(crate) fn new(
        module: (&Arc<str>, u64),
        method: SourceMethod,
        params: &Object,
        context: &CallContext,
        ttl: Duration,
    ) -> Option<Self> {
        if ttl.is_zero() || SESSION_MEMBERS.iter().any(|name| params.get(name).is_some()) {
            return None;
        }
        let is_resource = method == SourceMethod::ReadResource;
        let subject = params.text(if is_resource { "uri" } else { "name" })?;
        let mut params = params.clone();
        if let Some(mut meta) = params.get("_meta").and_then(Raw::object) {
            for name in IGNORED_META {
                meta.remove(name);
            }
            params.remove("_meta");
            if !meta.is_empty() {
                params.set("_meta", meta);
            }
        }
        let mut bytes = canonical(&params.raw());
        // Stateless clients may get a different result.
        bytes.push(u8::from(context.accepts_input_required));
        // Accounts do not share results.
        bytes.extend(context.account.as_deref().unwrap_or_default().as_bytes());
        let key = CacheKey {
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

impl CacheKey {
    pub(super) fn bytes(&self) -> u32 {
        let bytes = size_of::<Self>() + self.caller.subject.len() + self.subject.len();
        u32::try_from(bytes).unwrap_or(u32::MAX)
    }

    /// Returns `true` if this key reads the resource, a part of it, or a resource that contains it.
    pub(super) fn reads(&self, uri: &str) -> bool {
        let is_part = |whole: &str, part: &str| {
            part.strip_prefix(whole).is_some_and(|rest| rest.is_empty() || rest.starts_with(['/', '#', '?']))
        };
        self.is_resource && (is_part(uri, &self.subject) || is_part(&self.subject, uri))
    }
}

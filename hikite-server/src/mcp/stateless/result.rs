//! Results and errors in the format of 2026-07-28.

use std::sync::LazyLock;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::source::InputRequestKind;
use hikite_wire::encode::{self, error_object};
use hikite_wire::handshake::own_info;
use hikite_wire::message::MessageId;
use hikite_wire::stateless::{META_SERVER, MISSING_CAPABILITY};
use http::StatusCode;
use memchr::memmem;

use crate::mcp::rpc_response::RpcResponse;

/// Freshness of a list; changes are announced on a `subscriptions/listen` stream.
const LIST_TTL_MS: u32 = 60_000;

/// An error response to a request.
#[derive(Debug)]
pub(crate) struct StatelessError {
    status: StatusCode,
    error: Raw,
    /// The error code for metrics.
    code: &'static str,
    insufficient_scope: bool,
}

impl StatelessError {
    pub(crate) fn new(status: StatusCode, code: i32, message: &str) -> Self {
        let (error, kind) = (error_object(code, message), ErrorKind::Validation);
        Self { status, error, code: kind.definition().code, insufficient_scope: false }
    }

    pub(crate) fn with_data(mut self, data: Object) -> Self {
        let error = self.error.object().unwrap_or_default();
        self.error = error.with("data", data).raw();
        self
    }

    /// Builds the error for a capability that the client has not declared.
    pub(crate) fn missing_capability(required: &Object) -> Self {
        let names = required.iter().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
        let message = format!("The client must declare the capability {names} for this request.");
        Self::new(StatusCode::BAD_REQUEST, MISSING_CAPABILITY, &message)
            .with_data(Object::default().with("requiredCapabilities", required.clone()))
    }

    pub(crate) fn cannot_ask(kind: InputRequestKind) -> Self {
        let name = match kind {
            InputRequestKind::Sampling => "sampling",
            InputRequestKind::Elicitation => "elicitation",
            InputRequestKind::Roots => "roots",
        };
        Self::missing_capability(&Object::default().with(name, Raw::empty_object()))
    }

    /// Converts an error of the gateway or an upstream. A missing resource has another code than in older revisions.
    pub(crate) fn of(error: &Error, uri: Option<&str>) -> Self {
        let object = error.rpc();
        let members = object.object().unwrap_or_default();
        let code: i32 = members.get("code").and_then(|code| code.decode().ok()).unwrap_or_default();
        match (code, uri) {
            (code, Some(uri)) if code == ErrorKind::NotFound.definition().rpc => {
                Self::new(StatusCode::OK, ErrorKind::Validation.definition().rpc, &error.message)
                    .with_data(Object::default().with("uri", uri))
            }
            (code, _) => {
                let is_missing = code == MISSING_CAPABILITY;
                let status = if is_missing { StatusCode::BAD_REQUEST } else { StatusCode::OK };
                let insufficient_scope = error.insufficient_scope;
                Self { status, error: object, code: error.code(), insufficient_scope }
            }
        }
    }

    /// Returns the error code for metrics and the JSON-RPC code.
    pub(crate) fn codes(&self) -> (&'static str, i64) {
        let number = self.error.object().and_then(|error| error.get("code")?.decode().ok());
        (self.code, number.unwrap_or_default())
    }

    pub(crate) fn answer(&self, id: &MessageId) -> RpcResponse {
        let body = encode::error(Some(id), &self.error);
        RpcResponse { status: self.status, body, insufficient_scope: self.insufficient_scope }
    }
}

/// Adds the members that every result of this revision has; those of an upstream are kept.
pub(crate) fn complete(result: Raw) -> Raw {
    static PREFIX: LazyLock<Vec<u8>> = LazyLock::new(|| {
        let meta = Object::default().with(META_SERVER, own_info());
        let mut head = Vec::new();
        Object::default().with("resultType", "complete").with("_meta", meta).write(&mut head);
        head.pop();
        head
    });
    let bytes = result.bytes();
    let has = |name: &str| memmem::find(bytes, name.as_bytes()).is_some();
    if has("\"resultType\"") || has("\"_meta\"") || !bytes.starts_with(b"{\"") {
        return complete_parsed(result);
    }
    // Neither member is present, so both are prepended and the rest is copied unchanged.
    let mut out = Vec::with_capacity(PREFIX.len() + bytes.len());
    out.extend_from_slice(&PREFIX);
    out.push(b',');
    out.extend_from_slice(&bytes[1..]);
    Raw::trusted(out)
}

fn complete_parsed(result: Raw) -> Raw {
    let mut body = result.object().unwrap_or_default();
    let meta = body.get("_meta").and_then(Raw::object).unwrap_or_default();
    let typed = body.get("resultType").is_some();
    if typed && meta.get(META_SERVER).is_some() {
        return result;
    }
    if !typed {
        body.set("resultType", "complete");
    }
    if meta.get(META_SERVER).is_none() {
        body.set("_meta", meta.with(META_SERVER, own_info()));
    }
    body.raw()
}

/// Adds cache hints. A list depends on the caller and is fresh for a while; a resource only as long as its server says.
pub(crate) fn cacheable(result: &Raw, is_list: bool) -> Raw {
    let mut body = result.object().unwrap_or_default();
    if body.get("ttlMs").is_none() {
        body.set("ttlMs", Raw::of(&if is_list { LIST_TTL_MS } else { 0 }));
    }
    if body.get("cacheScope").is_none() {
        body.set("cacheScope", "private");
    }
    complete(body.raw())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Raw {
        Raw::parse(text.to_owned()).expect("valid")
    }

    #[test]
    fn a_result_keeps_its_bytes_and_gains_what_it_lacks() {
        let plain = complete(parse(r#"{"content":[ 1.50 ]}"#));
        assert!(plain.as_str().ends_with(r#","content":[ 1.50 ]}"#));
        let members = plain.object().expect("an object");
        assert_eq!(members.text("resultType").as_deref(), Some("complete"));
        assert!(members.get("_meta").and_then(Raw::object).is_some_and(|meta| meta.get(META_SERVER).is_some()));
        let empty = complete(parse("{}")).object().expect("an object");
        assert_eq!(empty.len(), 2);
    }

    #[test]
    fn what_the_upstream_said_stays() {
        let said = format!(r#"{{"resultType":"task","_meta":{{"{META_SERVER}":{{"name":"u"}},"x":1}}}}"#);
        assert_eq!(complete(parse(&said)).as_str(), said);
        let meta = complete(parse(r#"{"_meta":{"x":1}}"#)).object().expect("an object");
        assert!(meta.get("_meta").is_some_and(|meta| meta.as_str().starts_with(r#"{"x":1,"#)));
    }
}

//! What can go wrong: one table of kinds with every face an error shows (code, HTTP status, JSON-RPC number),
//! and the one error value that travels from where it happens to the edge that renders it.

use std::fmt;
use std::time::Duration;

use crate::json::{Object, Raw};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    ToolNotFound,
    ToolDisabled,
    ToolExecution,
    Validation,
    NotFound,
    Timeout,
    Cancelled,
    Authentication,
    Authorization,
    RateLimit,
    UpstreamUnavailable,
    AccountRequired,
    PayloadTooLarge,
    Conflict,
    Overloaded,
    MethodNotFound,
    Internal,
}

/// Who has to change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Caller,
    Upstream,
    Gateway,
}

#[derive(Clone, Copy, Debug)]
pub struct Face {
    pub kind: Kind,
    pub code: &'static str,
    pub http: u16,
    pub rpc: i32,
    pub fault: Fault,
    /// Whether the same request may succeed later without a change.
    pub retry: bool,
}

#[rustfmt::skip]
pub const TABLE: &[Face] = &[
    Face { kind: Kind::ToolNotFound,        code: "TOOL_NOT_FOUND",        http: 404, rpc: -32602, fault: Fault::Caller,   retry: false },
    Face { kind: Kind::ToolDisabled,        code: "TOOL_DISABLED",         http: 403, rpc: -32602, fault: Fault::Caller,   retry: false },
    Face { kind: Kind::ToolExecution,       code: "TOOL_EXECUTION_ERROR",  http: 500, rpc: -32603, fault: Fault::Upstream, retry: false },
    Face { kind: Kind::Validation,          code: "VALIDATION_ERROR",      http: 400, rpc: -32602, fault: Fault::Caller,   retry: false },
    Face { kind: Kind::NotFound,            code: "NOT_FOUND",             http: 404, rpc: -32002, fault: Fault::Caller,   retry: false },
    Face { kind: Kind::Timeout,             code: "TIMEOUT",               http: 408, rpc: -32603, fault: Fault::Upstream, retry: true },
    Face { kind: Kind::Cancelled,           code: "CANCELLED",             http: 499, rpc: -32800, fault: Fault::Caller,   retry: false },
    Face { kind: Kind::Authentication,      code: "AUTHENTICATION_ERROR",  http: 401, rpc: -32001, fault: Fault::Caller,   retry: false },
    Face { kind: Kind::Authorization,       code: "AUTHORIZATION_ERROR",   http: 403, rpc: -32003, fault: Fault::Caller,   retry: false },
    Face { kind: Kind::RateLimit,           code: "RATE_LIMIT_EXCEEDED",   http: 429, rpc: -32603, fault: Fault::Caller,   retry: true },
    Face { kind: Kind::UpstreamUnavailable, code: "UPSTREAM_UNAVAILABLE",  http: 502, rpc: -32603, fault: Fault::Upstream, retry: true },
    Face { kind: Kind::AccountRequired,     code: "ACCOUNT_REQUIRED",      http: 403, rpc: -32603, fault: Fault::Caller,   retry: false },
    Face { kind: Kind::PayloadTooLarge,     code: "PAYLOAD_TOO_LARGE",     http: 413, rpc: -32600, fault: Fault::Caller,   retry: false },
    Face { kind: Kind::Conflict,            code: "CONFLICT",              http: 409, rpc: -32602, fault: Fault::Caller,   retry: false },
    Face { kind: Kind::Overloaded,          code: "OVERLOADED",            http: 503, rpc: -32603, fault: Fault::Gateway,  retry: true },
    Face { kind: Kind::MethodNotFound,      code: "METHOD_NOT_FOUND",      http: 404, rpc: -32601, fault: Fault::Caller,   retry: false },
    Face { kind: Kind::Internal,            code: "INTERNAL_ERROR",        http: 500, rpc: -32603, fault: Fault::Gateway,  retry: false },
];

impl Kind {
    pub fn face(self) -> &'static Face {
        // The table lists every kind, in the order of the enum (see the test below).
        &TABLE[self as usize]
    }
}

/// A failure with a message that is safe to show and a hint that says what to do next.
#[derive(Clone, Debug)]
pub struct Error {
    pub kind: Kind,
    pub message: Box<str>,
    pub hint: Option<Box<str>>,
    /// The name a surface gives to this failure where its specification has one (`UnknownCategory`, …).
    pub name: Option<&'static str>,
    /// The schema the arguments should have followed, so that a model can correct itself.
    pub schema: Option<Raw>,
    /// Every single fault, where there may be several: `[{pointer, message}]`.
    pub details: Option<Raw>,
    /// How long to wait before the same request may succeed.
    pub retry_after: Option<Duration>,
    /// The JSON-RPC error object of an upstream, relayed as it came where the surface relays.
    pub relayed: Option<Raw>,
}

impl Error {
    pub fn new(kind: Kind, message: impl Into<Box<str>>) -> Self {
        Self {
            kind,
            message: message.into(),
            hint: None,
            name: None,
            schema: None,
            details: None,
            retry_after: None,
            relayed: None,
        }
    }

    /// A task that is over, lost or another caller's looks like one that never was.
    pub fn unknown_task() -> Self {
        Self::new(Kind::Validation, "there is no such task").hint("tasks end some time after they are done")
    }

    #[must_use]
    pub fn hint(mut self, hint: impl Into<Box<str>>) -> Self {
        self.hint = Some(hint.into());
        self
    }

    #[must_use]
    pub fn named(mut self, name: &'static str) -> Self {
        self.name = Some(name);
        self
    }

    /// An upstream's own JSON-RPC error: its message is shown, its object relayed.
    pub fn from_upstream(error: Raw) -> Self {
        let members = error.object().unwrap_or_default();
        let message = members.text("message").unwrap_or_else(|| "the upstream answered with an error".into());
        let kind = match members.get("code").and_then(|code| code.decode::<i64>().ok()) {
            Some(-32602) => Kind::Validation,
            Some(-32002) => Kind::NotFound,
            Some(-32601) => Kind::MethodNotFound,
            _ => Kind::ToolExecution,
        };
        Self { relayed: Some(error), ..Self::new(kind, message) }
    }

    /// The JSON-RPC number that an upstream gave its error.
    pub fn upstream_code(&self) -> Option<i64> {
        self.relayed.as_ref()?.object()?.get("code")?.decode().ok()
    }

    /// The error as the log may show it: an upstream's own words may repeat what it was sent.
    pub fn guarded(&self) -> String {
        match &self.relayed {
            Some(_) => format!("it answered with the error {}", self.upstream_code().unwrap_or_default()),
            None => self.to_string(),
        }
    }

    pub fn code(&self) -> &'static str {
        self.kind.face().code
    }

    /// The `structuredContent.error` of a meta tool's answer.
    pub fn detail(&self) -> Object {
        let mut detail = Object::default().with("code", self.code());
        if let Some(name) = self.name {
            detail.set("name", name);
        }
        detail.set("message", &*self.message);
        if let Some(hint) = &self.hint {
            detail.set("hint", &**hint);
        }
        if let Some(schema) = &self.schema {
            detail.set("schema", schema.clone());
        }
        if let Some(details) = &self.details {
            detail.set("details", details.clone());
        }
        detail
    }

    /// The JSON-RPC error object: the upstream's own where there is one.
    pub fn rpc(&self) -> Raw {
        if let Some(relayed) = &self.relayed {
            return relayed.clone();
        }
        let mut data = Object::default().with("code", self.code());
        if let Some(hint) = &self.hint {
            data.set("hint", &**hint);
        }
        Object::default()
            .with("code", Raw::of(&self.kind.face().rpc))
            .with("message", &*self.message)
            .with("data", data)
            .raw()
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.hint {
            Some(hint) => write!(f, " (hint: {hint})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_lists_every_kind_in_order() {
        for (index, face) in TABLE.iter().enumerate() {
            assert_eq!(face.kind as usize, index, "{}", face.code);
        }
        assert_eq!(Kind::Internal as usize + 1, TABLE.len());
    }

    #[test]
    fn an_upstream_error_is_relayed_as_it_came() {
        let sent = Raw::parse(r#"{"code":-32602,"message":"no","data":{"x":1}}"#).expect("valid");
        let error = Error::from_upstream(sent.clone());
        assert_eq!(error.kind, Kind::Validation);
        assert_eq!(error.rpc(), sent);
    }
}

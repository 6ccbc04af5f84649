//! Errors: one table of kinds with their code, HTTP status and JSON-RPC number, and the one error value that travels
//! from its origin to the edge that renders it.

use std::fmt;
use std::num::NonZeroU32;
use std::time::Duration;

use crate::json::{Object, Raw};

#[cfg(test)]
mod page;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
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
    MethodNotAllowed,
    MediaType,
    Internal,
}

/// The party that has to change something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultParty {
    Caller,
    Upstream,
    Gateway,
}

#[derive(Clone, Copy, Debug)]
pub struct ErrorDefinition {
    pub kind: ErrorKind,
    pub code: &'static str,
    pub http: u16,
    pub rpc: i32,
    pub fault: FaultParty,
    /// `true` if the same request may succeed later without a change.
    pub retry: bool,
    pub meaning: &'static str,
    pub cure: &'static str,
}

#[rustfmt::skip]
pub const TABLE: &[ErrorDefinition] = &[
    ErrorDefinition { kind: ErrorKind::ToolNotFound,        code: "TOOL_NOT_FOUND",        http: 404, rpc: -32602, fault: FaultParty::Caller,   retry: false,
        meaning: "No tool with this name is visible to the caller.",
        cure: "Use the similar name in the hint, or list the tools." },
    ErrorDefinition { kind: ErrorKind::ToolDisabled,        code: "TOOL_DISABLED",         http: 403, rpc: -32602, fault: FaultParty::Caller,   retry: false,
        meaning: "The tool is disabled, or it is held back because its definition is not approved.",
        cure: "Use another tool, enable this one in the config or with `enable`, or approve its definition with `hikite \
         pin approve`." },
    ErrorDefinition { kind: ErrorKind::ToolExecution,       code: "TOOL_EXECUTION_ERROR",  http: 500, rpc: -32603, fault: FaultParty::Upstream, retry: false,
        meaning: "The tool ran, or its server accepted the request, and failed.",
        cure: "Read the message; it comes from the tool. The same call will most likely fail again." },
    ErrorDefinition { kind: ErrorKind::Validation,          code: "VALIDATION_ERROR",      http: 400, rpc: -32602, fault: FaultParty::Caller,   retry: false,
        meaning: "The request is not valid.",
        cure: "Correct what the message and the details describe. The response often includes the schema." },
    ErrorDefinition { kind: ErrorKind::NotFound,            code: "NOT_FOUND",             http: 404, rpc: -32002, fault: FaultParty::Caller,   retry: false,
        meaning: "The requested object, for example a resource, does not exist.",
        cure: "List what exists and choose one of it." },
    ErrorDefinition { kind: ErrorKind::Timeout,             code: "TIMEOUT",               http: 408, rpc: -32603, fault: FaultParty::Upstream, retry: true,
        meaning: "The call did not finish in time. It may have run.",
        cure: "Ask for less, or increase `timeout` of the call, the tool or the server." },
    ErrorDefinition { kind: ErrorKind::Cancelled,           code: "CANCELLED",             http: 499, rpc: -32800, fault: FaultParty::Caller,   retry: false,
        meaning: "The caller disconnected or cancelled the call.",
        cure: "Nothing, or send the same call again." },
    ErrorDefinition { kind: ErrorKind::Authentication,      code: "AUTHENTICATION_ERROR",  http: 401, rpc: -32001, fault: FaultParty::Caller,   retry: false,
        meaning: "The request has no valid credentials.",
        cure: "Send the token as `Authorization: Bearer …`." },
    ErrorDefinition { kind: ErrorKind::Authorization,       code: "AUTHORIZATION_ERROR",   http: 403, rpc: -32003, fault: FaultParty::Caller,   retry: false,
        meaning: "The caller is not allowed to do this.",
        cure: "Ask the owner for permission." },
    ErrorDefinition { kind: ErrorKind::RateLimit,           code: "RATE_LIMIT_EXCEEDED",   http: 429, rpc: -32603, fault: FaultParty::Caller,   retry: true,
        meaning: "Too many calls in too short a time, here or at the upstream server.",
        cure: "Wait as long as the hint or `Retry-After` says." },
    ErrorDefinition { kind: ErrorKind::UpstreamUnavailable, code: "UPSTREAM_UNAVAILABLE",  http: 502, rpc: -32603, fault: FaultParty::Upstream, retry: true,
        meaning: "The tool's server cannot be reached, closed the connection, reports that it is unavailable, or its \
         circuit breaker is open. The call may have run.",
        cure: "Wait as long as the hint or `Retry-After` says. `hikite doctor` checks the server." },
    ErrorDefinition { kind: ErrorKind::AccountRequired,     code: "ACCOUNT_REQUIRED",      http: 403, rpc: -32603, fault: FaultParty::Caller,   retry: false,
        meaning: "The tool needs an account that is not connected.",
        cure: "Connect the account as the hint says." },
    ErrorDefinition { kind: ErrorKind::PayloadTooLarge,     code: "PAYLOAD_TOO_LARGE",     http: 413, rpc: -32600, fault: FaultParty::Caller,   retry: false,
        meaning: "The request or the response exceeds its size limit.",
        cure: "Ask for less, or raise `limits.body_bytes` or `limits.answer_bytes`." },
    ErrorDefinition { kind: ErrorKind::Conflict,            code: "CONFLICT",              http: 409, rpc: -32602, fault: FaultParty::Caller,   retry: false,
        meaning: "An object with this name already exists, it is managed by the config file, or it has changed in the \
         meantime.",
        cure: "Choose another name, set `overwrite`, change the config file, or read the object again." },
    ErrorDefinition { kind: ErrorKind::Overloaded,          code: "OVERLOADED",            http: 503, rpc: -32603, fault: FaultParty::Gateway,  retry: true,
        meaning: "hikite is at the limit of its load.",
        cure: "Try again in a moment, or raise the limit that the hint names." },
    ErrorDefinition { kind: ErrorKind::MethodNotFound,      code: "METHOD_NOT_FOUND",      http: 404, rpc: -32601, fault: FaultParty::Caller,   retry: false,
        meaning: "The requested method does not exist.",
        cure: "Correct the method." },
    ErrorDefinition { kind: ErrorKind::MethodNotAllowed,    code: "METHOD_NOT_ALLOWED",    http: 405, rpc: -32600, fault: FaultParty::Caller,   retry: false,
        meaning: "The address is correct, but it does not support this HTTP method.",
        cure: "Use one of the methods in the `Allow` header." },
    ErrorDefinition { kind: ErrorKind::MediaType,           code: "UNSUPPORTED_MEDIA_TYPE", http: 415, rpc: -32600, fault: FaultParty::Caller,  retry: false,
        meaning: "The media type of the body is not supported.",
        cure: "Send JSON with `Content-Type: application/json`." },
    ErrorDefinition { kind: ErrorKind::Internal,            code: "INTERNAL_ERROR",        http: 500, rpc: -32603, fault: FaultParty::Gateway,  retry: false,
        meaning: "hikite itself failed.",
        cure: "Try once more. If it fails again, report it with the `requestId`; the log has details under this id." },
];

impl ErrorKind {
    pub fn definition(self) -> &'static ErrorDefinition {
        // The table lists every kind, in the order of the enum (see the test below).
        &TABLE[self as usize]
    }
}

/// A failure with a message that is safe to show and a hint that says what to do next.
#[derive(Clone, Debug)]
pub struct Error {
    pub kind: ErrorKind,
    pub message: Box<str>,
    pub hint: Option<Box<str>>,
    /// Error name from the surface's specification, if it has one (`UnknownCategory`, …).
    pub name: Option<&'static str>,
    /// Schema that the arguments violate, so that a model can correct itself.
    pub schema: Option<Raw>,
    /// All violations, where there may be several: `[{pointer, message}]`.
    pub details: Option<Raw>,
    /// Time to wait before the same request may succeed.
    pub retry_after: Option<Duration>,
    /// Timeout that expired, in milliseconds. A `NonZeroU32` keeps `Error` small.
    pub timeout_ms: Option<NonZeroU32>,
    /// Private cause, for the log and never for a client.
    pub cause: Option<Box<str>>,
    /// `true` if nothing was sent because there is no connection; the connection logic paces the attempts.
    pub unsent: bool,
    /// `true` if the caller's scopes do not allow the request.
    pub insufficient_scope: bool,
    /// JSON-RPC error object of an upstream, relayed unchanged by surfaces that relay errors.
    pub relayed: Option<Raw>,
}

/// Maximum bytes of a message that blames the caller, since it may quote the request.
const MESSAGE_MAX: usize = 16 * 1024;

impl Error {
    /// Builds an error. Messages of tools are kept whole; messages that may quote the caller are truncated.
    pub fn new(kind: ErrorKind, message: impl Into<Box<str>>) -> Self {
        let mut message = message.into();
        if message.len() > MESSAGE_MAX && kind.definition().fault == FaultParty::Caller {
            let mut text = String::from(message);
            crate::violation::cut(&mut text, MESSAGE_MAX);
            message = text.into();
        }
        Self {
            kind,
            message,
            hint: None,
            name: None,
            schema: None,
            details: None,
            retry_after: None,
            timeout_ms: None,
            cause: None,
            unsent: false,
            insufficient_scope: false,
            relayed: None,
        }
    }

    /// Returns the error for a task that is expired, lost or owned by another caller: all look like an unknown task.
    pub fn unknown_task() -> Self {
        Self::new(ErrorKind::Validation, "There is no such task.").hint("Finished tasks are deleted after a while.")
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

    /// Sets the private cause, for the log only.
    #[must_use]
    pub fn because(mut self, cause: impl Into<Box<str>>) -> Self {
        self.cause = Some(cause.into());
        self
    }

    /// Sets the time after which the same request may succeed.
    #[must_use]
    pub fn after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(wait);
        self
    }

    /// Converts an upstream's JSON-RPC error: its message is shown, its object relayed.
    pub fn from_upstream(error: Raw) -> Self {
        let members = error.object().unwrap_or_default();
        let message = members.text("message").unwrap_or_else(|| "The upstream returned an error.".into());
        let kind = match members.get("code").and_then(|code| code.decode::<i64>().ok()) {
            Some(-32602) => ErrorKind::Validation,
            Some(-32002) => ErrorKind::NotFound,
            Some(-32601) => ErrorKind::MethodNotFound,
            _ => ErrorKind::ToolExecution,
        };
        Self { relayed: Some(error), ..Self::new(kind, message) }
    }

    /// Returns the JSON-RPC error code of the upstream.
    pub fn upstream_code(&self) -> Option<i64> {
        self.relayed.as_ref()?.object()?.get("code")?.decode().ok()
    }

    /// Returns a text for the log. An upstream's message is left out, since it may quote what it was sent.
    pub fn log_text(&self) -> String {
        match &self.relayed {
            Some(_) => format!("it returned the error {}", self.upstream_code().unwrap_or_default()),
            None => self.to_string(),
        }
    }

    pub fn code(&self) -> &'static str {
        self.kind.definition().code
    }

    /// Returns the `structuredContent.error` of a meta tool's result.
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

    /// Returns the JSON-RPC error object; the upstream's own if there is one.
    pub fn rpc(&self) -> Raw {
        if let Some(relayed) = &self.relayed {
            return relayed.clone();
        }
        let mut data = Object::default().with("code", self.code());
        if let Some(hint) = &self.hint {
            data.set("hint", &**hint);
        }
        Object::default()
            .with("code", Raw::of(&self.kind.definition().rpc))
            .with("message", &*self.message)
            .with("data", data)
            .raw()
    }
}

/// Formats the error with its private cause, for the log only.
impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            Some(cause) => write!(f, "{}; {cause}", self.message.trim_end_matches('.'))?,
            None => f.write_str(&self.message)?,
        }
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
        for (index, definition) in TABLE.iter().enumerate() {
            assert_eq!(definition.kind as usize, index, "{}", definition.code);
        }
        assert_eq!(ErrorKind::Internal as usize + 1, TABLE.len());
    }

    #[test]
    fn a_cause_is_for_the_log_alone() {
        let error = Error::new(ErrorKind::UpstreamUnavailable, "`a` failed").because("10.0.0.1 refused").hint("wait");
        assert_eq!(error.to_string(), "`a` failed; 10.0.0.1 refused (hint: wait)");
        assert!(!error.detail().raw().as_str().contains("10.0.0.1"));
        assert!(!error.rpc().as_str().contains("10.0.0.1"));
    }

    #[test]
    fn a_long_message_is_cut_where_it_repeats_what_was_sent() {
        let long = "x".repeat(1 << 20);
        assert!(Error::new(ErrorKind::ToolNotFound, &*long).message.len() < 2 * MESSAGE_MAX);
        assert_eq!(Error::new(ErrorKind::ToolExecution, &*long).message.len(), long.len());
    }

    #[test]
    fn an_upstream_error_is_relayed_as_it_came() {
        let sent = Raw::parse(r#"{"code":-32602,"message":"no","data":{"x":1}}"#).expect("valid");
        let error = Error::from_upstream(sent.clone());
        assert_eq!(error.kind, ErrorKind::Validation);
        assert_eq!(error.rpc(), sent);
    }
}

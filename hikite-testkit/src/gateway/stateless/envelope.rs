//! The client description of a 2026-07-28 request, in `_meta` and in headers. Every part can be omitted or wrong.

use base64::Engine;
use serde_json::{Value, json};

pub const REVISION: &str = "2026-07-28";
const PREFIX: &str = "io.modelcontextprotocol/";

/// Client description, valid by default; a test breaks the parts it wants.
#[derive(Debug, Clone)]
pub struct StatelessEnvelope {
    revision: String,
    capabilities: Value,
    client_info: Value,
    /// Additional `_meta` members; null removes one.
    meta: Vec<(String, Value)>,
    /// Header overrides; `None` removes a header.
    headers: Vec<(String, Option<String>)>,
    pub(super) validated: bool,
}

impl Default for StatelessEnvelope {
    fn default() -> Self {
        Self {
            revision: REVISION.to_owned(),
            capabilities: json!({}),
            client_info: json!({ "name": "test", "version": "1" }),
            meta: Vec::new(),
            headers: Vec::new(),
            validated: true,
        }
    }
}

impl StatelessEnvelope {
    /// Creates an envelope that declares every client capability.
    pub fn capable() -> Self {
        Self::default().capabilities(json!({ "sampling": {}, "elicitation": {}, "roots": {} }))
    }

    #[must_use]
    pub fn revision(mut self, revision: &str) -> Self {
        revision.clone_into(&mut self.revision);
        self
    }

    #[must_use]
    pub fn capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    #[must_use]
    pub fn client_info(mut self, info: Value) -> Self {
        self.client_info = info;
        self
    }

    /// Declares the tasks extension, too.
    #[must_use]
    pub fn with_tasks(mut self) -> Self {
        self.capabilities["extensions"]["io.modelcontextprotocol/tasks"] = json!({});
        self
    }

    /// Sets a member of `_meta`; null removes it. Protocol names need no prefix.
    #[must_use]
    pub fn meta(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.meta.push((full_name(name), value.into()));
        self
    }

    #[must_use]
    pub fn progress_token(self, token: impl Into<Value>) -> Self {
        self.meta("progressToken", token)
    }

    #[must_use]
    pub fn log_level(self, level: &str) -> Self {
        self.meta("logLevel", level)
    }

    /// Overrides a header.
    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.to_ascii_lowercase(), Some(value.to_owned())));
        self
    }

    #[must_use]
    pub fn without_header(mut self, name: &str) -> Self {
        self.headers.push((name.to_ascii_lowercase(), None));
        self
    }

    /// Accepts responses that violate the schema.
    #[must_use]
    pub fn unvalidated(mut self) -> Self {
        self.validated = false;
        self
    }

    /// Returns the params with `_meta`.
    pub(super) fn with_meta(&self, mut params: Value) -> Value {
        let mut meta = json!({
            full_name("protocolVersion"): self.revision,
            full_name("clientCapabilities"): self.capabilities,
            full_name("clientInfo"): self.client_info,
        });
        let own = params.get("_meta").and_then(Value::as_object).cloned().unwrap_or_default();
        for (name, value) in self.meta.iter().cloned().chain(own) {
            meta[name] = value;
        }
        if let Some(meta) = meta.as_object_mut() {
            meta.retain(|_, value| !value.is_null());
        }
        params["_meta"] = meta;
        params
    }

    /// Returns the headers of a request.
    pub(super) fn headers(&self, method: &str, params: &Value) -> Vec<(String, String)> {
        let mut headers = vec![
            ("mcp-protocol-version".to_owned(), self.revision.clone()),
            ("mcp-method".to_owned(), method.to_owned()),
        ];
        let named = match method {
            "tools/call" | "prompts/get" => params["name"].as_str(),
            "resources/read" => params["uri"].as_str(),
            "tasks/get" | "tasks/update" | "tasks/cancel" => params["taskId"].as_str(),
            _ => None,
        };
        headers.extend(named.map(|name| ("mcp-name".to_owned(), encode(name))));
        for (name, value) in &self.headers {
            headers.retain(|(known, _)| known != name);
            headers.extend(value.clone().map(|value| (name.clone(), value)));
        }
        headers
    }
}

fn full_name(name: &str) -> String {
    match name {
        "protocolVersion" | "clientCapabilities" | "clientInfo" | "logLevel" => format!("{PREFIX}{name}"),
        _ => name.to_owned(),
    }
}

/// Encodes a value for a header.
pub fn encode(text: &str) -> String {
    let plain = text.bytes().all(|byte| (0x20..=0x7e).contains(&byte))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    if plain {
        return text.to_owned();
    }
    format!("=?base64?{}?=", base64::engine::general_purpose::STANDARD.encode(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_header_cannot_carry_is_encoded() {
        assert_eq!(encode("a b"), "a b");
        assert_eq!(encode("é"), "=?base64?w6k=?=");
        assert_eq!(encode(" padded "), "=?base64?IHBhZGRlZCA=?=");
        assert_eq!(encode("=?base64?literal?="), "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?=");
    }

    #[test]
    fn every_part_can_be_left_out_or_be_wrong() {
        let envelope = StatelessEnvelope::default()
            .meta("clientInfo", Value::Null)
            .header("Mcp-Name", "other")
            .without_header("Mcp-Method");
        let params = envelope.with_meta(json!({ "name": "t", "_meta": { "traceparent": "x" } }));
        assert_eq!(
            params["_meta"],
            json!({
                "io.modelcontextprotocol/protocolVersion": REVISION,
                "io.modelcontextprotocol/clientCapabilities": {},
                "traceparent": "x",
            })
        );
        let headers = envelope.headers("tools/call", &params);
        let expected = [("mcp-protocol-version", REVISION), ("mcp-name", "other")];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(headers, expected);
    }
}

//! Validation of messages against the published JSON Schemas of the protocol. The definition of a method is looked up
//! in the schemas themselves; unknown methods (extensions) are validated against the envelope only.

mod revision_schema;

use std::fmt;

use serde_json::Value;

use revision_schema::RevisionSchema;

/// Sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MessageSender {
    Client,
    Server,
}

impl fmt::Display for MessageSender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if *self == Self::Client { "client" } else { "server" })
    }
}

/// Requests whose response may be a question.
const QUESTION_METHODS: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];
/// JSON-RPC errors for messages whose id could not be read.
const NO_ID_ERRORS: [i64; 2] = [-32700, -32600];

/// Validates a message or a batch against the schema of a revision. `answered` is the method of the request that a
/// response answers, if known.
pub fn check(revision: &str, sender: MessageSender, message: &Value, answered: Option<&str>) -> Result<(), String> {
    let revision_schema = revision_schema::of_revision(revision);
    if let Value::Array(batch) = message {
        if !revision_schema.has_batches() {
            return Err(format!("{revision} has no batches"));
        }
        return batch.iter().try_for_each(|message| check(revision, sender, message, answered));
    }
    let checked = match (message.get("method"), message.get("error"), message.get("result")) {
        (Some(Value::String(method)), ..) => check_method(revision_schema, sender, method, message),
        (None, Some(_), None) => check_error(revision_schema, message),
        (None, None, Some(result)) => check_result(revision_schema, sender, result, message, answered),
        _ => Err("neither request, notification, result nor error".to_owned()),
    };
    checked.map_err(|violation| format!("{revision}: {violation}: {message}"))
}

fn check_method(
    revision_schema: &RevisionSchema,
    sender: MessageSender,
    method: &str,
    message: &Value,
) -> Result<(), String> {
    let is_request = message.get("id").is_some();
    if is_request && revision_schema.is_stateless() && sender == MessageSender::Server {
        return Err(format!("a server sends no request, and not `{method}`"));
    }
    revision_schema.validate(if is_request { "JSONRPCRequest" } else { "JSONRPCNotification" }, message)?;
    let Some(definition) = revision_schema.of_method(method) else {
        return Ok(());
    };
    if definition.ends_with("Request") != is_request {
        return Err(format!("`{method}` with or without id"));
    }
    if !revision_schema.may_send(sender, definition) {
        return Err(format!("`{method}` is nothing a {sender} sends"));
    }
    revision_schema.validate(definition, message)
}

fn check_error(revision_schema: &RevisionSchema, message: &Value) -> Result<(), String> {
    let code = message["error"]["code"].as_i64().unwrap_or_default();
    let mut message = message.clone();
    if message.get("id").is_some_and(Value::is_null) && !revision_schema.is_stateless() && NO_ID_ERRORS.contains(&code)
    {
        // JSON-RPC requires the null that the schema lacks.
        message["id"] = 0.into();
    }
    revision_schema.validate(revision_schema.error(), &message)?;
    revision_schema.of_code(code).map_or(Ok(()), |definition| revision_schema.validate(definition, &message))
}

fn check_result(
    revision_schema: &RevisionSchema,
    sender: MessageSender,
    result: &Value,
    message: &Value,
    answered: Option<&str>,
) -> Result<(), String> {
    if revision_schema.is_stateless() && sender == MessageSender::Client {
        return Err("a client answers nothing".to_owned());
    }
    revision_schema.validate(revision_schema.response(), message)?;
    let Some(method) = answered else {
        return Ok(());
    };
    let definition = if revision_schema.is_stateless() {
        stateless_result(revision_schema, result, method)?
    } else {
        match revision_schema.result_of(method) {
            // A task was requested.
            Some(_) if result.get("task").is_some_and(Value::is_object) && revision_schema.has("CreateTaskResult") => {
                Some("CreateTaskResult")
            }
            other => other,
        }
    };
    let held = definition.map_or(Ok(()), |definition| revision_schema.validate(definition, result));
    held.map_err(|violation| format!("{violation} (answer to `{method}`)"))
}

/// Returns the definition of a stateless result, by its `resultType`.
fn stateless_result<'a>(
    revision_schema: &'a RevisionSchema,
    result: &Value,
    method: &str,
) -> Result<Option<&'a str>, String> {
    match result["resultType"].as_str() {
        Some("complete") => Ok(revision_schema.result_of(method)),
        Some("input_required") if QUESTION_METHODS.contains(&method) => {
            if result.get("inputRequests").is_none() && result.get("requestState").is_none() {
                return Err("`input_required` with neither questions nor state".to_owned());
            }
            Ok(Some("InputRequiredResult"))
        }
        // Defined by the tasks extension.
        Some("task") if method == "tools/call" => Ok(None),
        other => Err(format!("`{method}` is answered with the resultType {other:?}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const SESSIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
    const STATELESS: &str = "2026-07-28";

    #[track_caller]
    fn accepts(revision: &str, sender: MessageSender, message: &Value, answered: Option<&str>, expected: bool) {
        let checked = check(revision, sender, message, answered);
        assert_eq!(checked.is_ok(), expected, "{revision} {message}: {checked:?}");
    }

    fn request(method: &str, params: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
    }

    fn result(result: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": 1, "result": result})
    }

    fn meta() -> Value {
        json!({
            "io.modelcontextprotocol/protocolVersion": STATELESS,
            "io.modelcontextprotocol/clientCapabilities": {},
        })
    }

    #[test]
    fn a_request_is_held_against_its_method() {
        for revision in SESSIONS {
            accepts(revision, MessageSender::Client, &request("tools/call", &json!({"name": "t"})), None, true);
            accepts(revision, MessageSender::Client, &request("tools/call", &json!({})), None, false);
            accepts(revision, MessageSender::Server, &request("tools/call", &json!({"name": "t"})), None, false);
            accepts(revision, MessageSender::Server, &request("roots/list", &json!({})), None, true);
            accepts(revision, MessageSender::Client, &request("vendor/own", &json!({"any": 1})), None, true);
            accepts(revision, MessageSender::Client, &json!({"id": 1, "method": "ping"}), None, false);
        }
    }

    #[test]
    fn a_request_without_sessions_says_who_asks() {
        let with = |params: Value| request("tools/list", &params);
        accepts(STATELESS, MessageSender::Client, &with(json!({"_meta": meta()})), None, true);
        accepts(STATELESS, MessageSender::Client, &with(json!({})), None, false);
        accepts(STATELESS, MessageSender::Server, &request("roots/list", &json!({})), None, false);
        accepts(STATELESS, MessageSender::Client, &result(&json!({"resultType": "complete"})), None, false);
    }

    #[test]
    fn a_result_is_held_against_what_it_answers() {
        let list = result(&json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}));
        let broken = result(&json!({"tools": [{"name": "t"}]}));
        for revision in SESSIONS {
            accepts(revision, MessageSender::Server, &list, Some("tools/list"), true);
            accepts(revision, MessageSender::Server, &broken, Some("tools/list"), false);
            accepts(revision, MessageSender::Server, &broken, None, true);
            accepts(revision, MessageSender::Server, &result(&json!({})), Some("ping"), true);
        }
        let task = json!({"task": {"taskId": "t", "status": "working", "createdAt": "2026-07-28T00:00:00Z",
            "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttl": null}});
        accepts("2025-11-25", MessageSender::Server, &result(&task), Some("tools/call"), true);
        accepts("2025-06-18", MessageSender::Server, &result(&task), Some("tools/call"), false);
    }

    #[test]
    fn a_result_without_sessions_has_a_kind_that_fits_its_method() {
        let kind = |kind: &str, rest: Value| {
            let mut value = rest;
            value["resultType"] = kind.into();
            result(&value)
        };
        let call = Some("tools/call");
        accepts(STATELESS, MessageSender::Server, &kind("complete", json!({"content": []})), call, true);
        accepts(STATELESS, MessageSender::Server, &result(&json!({"content": []})), call, false);
        accepts(STATELESS, MessageSender::Server, &kind("odd", json!({"content": []})), call, false);
        let asks = json!({"inputRequests": {"k": {"method": "roots/list"}}});
        accepts(STATELESS, MessageSender::Server, &kind("input_required", asks.clone()), call, true);
        accepts(STATELESS, MessageSender::Server, &kind("input_required", asks), Some("tools/list"), false);
        accepts(STATELESS, MessageSender::Server, &kind("input_required", json!({})), call, false);
        accepts(STATELESS, MessageSender::Server, &kind("task", json!({"taskId": "t"})), call, true);
        let list = json!({"tools": [], "ttlMs": 1, "cacheScope": "public"});
        accepts(STATELESS, MessageSender::Server, &kind("complete", list), Some("tools/list"), true);
        accepts(STATELESS, MessageSender::Server, &kind("complete", json!({"tools": []})), Some("tools/list"), false);
    }

    #[test]
    fn an_error_is_held_against_its_code() {
        let error = |id: Value, code: i64, data: Value| json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "m", "data": data}});
        let unknown = json!({"supported": [STATELESS], "requested": "x"});
        accepts(STATELESS, MessageSender::Server, &error(json!(1), -32022, unknown), None, true);
        accepts(STATELESS, MessageSender::Server, &error(json!(1), -32022, json!({})), None, false);
        accepts(STATELESS, MessageSender::Server, &error(json!(null), -32700, json!({})), None, false);
        accepts("2025-11-25", MessageSender::Server, &error(json!(null), -32700, json!({})), None, true);
        accepts("2025-11-25", MessageSender::Server, &error(json!(null), -32602, json!({})), None, false);
        accepts("2025-11-25", MessageSender::Server, &json!({"jsonrpc": "2.0", "id": 1, "error": "no"}), None, false);
    }

    #[test]
    fn only_the_revision_that_has_batches_takes_them() {
        let batch = json!([request("ping", &json!({}))]);
        accepts("2025-03-26", MessageSender::Client, &batch, None, true);
        accepts("2025-11-25", MessageSender::Client, &batch, None, false);
    }
}

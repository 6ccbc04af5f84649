//! Validation of messages against the published JSON Schemas of the protocol. The definition of a method is looked up
//! in the schemas themselves; unknown methods (extensions) are validated against the envelope only.

mod book;

use std::fmt;

use serde_json::Value;

use book::Book;

/// Sender of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender {
    Client,
    Server,
}

impl fmt::Display for Sender {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(if *self == Self::Client { "client" } else { "server" })
    }
}

/// Requests whose response may be a question.
const ASKING: [&str; 3] = ["tools/call", "prompts/get", "resources/read"];
/// JSON-RPC errors for messages whose id could not be read.
const UNREADABLE: [i64; 2] = [-32700, -32600];

/// Validates a message or a batch against the schema of a revision. `answered` is the method of the request that a
/// response answers, if known.
pub fn check(revision: &str, sender: Sender, message: &Value, answered: Option<&str>) -> Result<(), String> {
    let book = book::of_revision(revision);
    if let Value::Array(batch) = message {
        if !book.has_batches() {
            return Err(format!("{revision} has no batches"));
        }
        return batch.iter().try_for_each(|message| check(revision, sender, message, answered));
    }
    let checked = match (message.get("method"), message.get("error"), message.get("result")) {
        (Some(Value::String(method)), ..) => check_method(book, sender, method, message),
        (None, Some(_), None) => check_error(book, message),
        (None, None, Some(result)) => check_result(book, sender, result, message, answered),
        _ => Err("neither request, notification, result nor error".to_owned()),
    };
    checked.map_err(|violation| format!("{revision}: {violation}: {message}"))
}

fn check_method(book: &Book, sender: Sender, method: &str, message: &Value) -> Result<(), String> {
    let is_request = message.get("id").is_some();
    if is_request && book.is_stateless() && sender == Sender::Server {
        return Err(format!("a server sends no request, and not `{method}`"));
    }
    book.hold(if is_request { "JSONRPCRequest" } else { "JSONRPCNotification" }, message)?;
    let Some(definition) = book.of_method(method) else {
        return Ok(());
    };
    if definition.ends_with("Request") != is_request {
        return Err(format!("`{method}` with or without id"));
    }
    if !book.may_send(sender, definition) {
        return Err(format!("`{method}` is nothing a {sender} sends"));
    }
    book.hold(definition, message)
}

fn check_error(book: &Book, message: &Value) -> Result<(), String> {
    let code = message["error"]["code"].as_i64().unwrap_or_default();
    let mut message = message.clone();
    if message.get("id").is_some_and(Value::is_null) && !book.is_stateless() && UNREADABLE.contains(&code) {
        // JSON-RPC requires the null that the schema lacks.
        message["id"] = 0.into();
    }
    book.hold(book.error(), &message)?;
    book.of_code(code).map_or(Ok(()), |definition| book.hold(definition, &message))
}

fn check_result(
    book: &Book,
    sender: Sender,
    result: &Value,
    message: &Value,
    answered: Option<&str>,
) -> Result<(), String> {
    if book.is_stateless() && sender == Sender::Client {
        return Err("a client answers nothing".to_owned());
    }
    book.hold(book.response(), message)?;
    let Some(method) = answered else {
        return Ok(());
    };
    let definition = if book.is_stateless() {
        stateless_result(book, result, method)?
    } else {
        match book.result_of(method) {
            // A task was requested.
            Some(_) if result.get("task").is_some_and(Value::is_object) && book.has("CreateTaskResult") => {
                Some("CreateTaskResult")
            }
            other => other,
        }
    };
    let held = definition.map_or(Ok(()), |definition| book.hold(definition, result));
    held.map_err(|violation| format!("{violation} (answer to `{method}`)"))
}

/// Returns the definition of a stateless result, by its `resultType`.
fn stateless_result<'a>(book: &'a Book, result: &Value, method: &str) -> Result<Option<&'a str>, String> {
    match result["resultType"].as_str() {
        Some("complete") => Ok(book.result_of(method)),
        Some("input_required") if ASKING.contains(&method) => {
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
    fn holds(revision: &str, sender: Sender, message: &Value, answered: Option<&str>, expected: bool) {
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
            holds(revision, Sender::Client, &request("tools/call", &json!({"name": "t"})), None, true);
            holds(revision, Sender::Client, &request("tools/call", &json!({})), None, false);
            holds(revision, Sender::Server, &request("tools/call", &json!({"name": "t"})), None, false);
            holds(revision, Sender::Server, &request("roots/list", &json!({})), None, true);
            holds(revision, Sender::Client, &request("vendor/own", &json!({"any": 1})), None, true);
            holds(revision, Sender::Client, &json!({"id": 1, "method": "ping"}), None, false);
        }
    }

    #[test]
    fn a_request_without_sessions_says_who_asks() {
        let with = |params: Value| request("tools/list", &params);
        holds(STATELESS, Sender::Client, &with(json!({"_meta": meta()})), None, true);
        holds(STATELESS, Sender::Client, &with(json!({})), None, false);
        holds(STATELESS, Sender::Server, &request("roots/list", &json!({})), None, false);
        holds(STATELESS, Sender::Client, &result(&json!({"resultType": "complete"})), None, false);
    }

    #[test]
    fn a_result_is_held_against_what_it_answers() {
        let list = result(&json!({"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}));
        let broken = result(&json!({"tools": [{"name": "t"}]}));
        for revision in SESSIONS {
            holds(revision, Sender::Server, &list, Some("tools/list"), true);
            holds(revision, Sender::Server, &broken, Some("tools/list"), false);
            holds(revision, Sender::Server, &broken, None, true);
            holds(revision, Sender::Server, &result(&json!({})), Some("ping"), true);
        }
        let task = json!({"task": {"taskId": "t", "status": "working", "createdAt": "2026-07-28T00:00:00Z",
            "lastUpdatedAt": "2026-07-28T00:00:00Z", "ttl": null}});
        holds("2025-11-25", Sender::Server, &result(&task), Some("tools/call"), true);
        holds("2025-06-18", Sender::Server, &result(&task), Some("tools/call"), false);
    }

    #[test]
    fn a_result_without_sessions_has_a_kind_that_fits_its_method() {
        let kind = |kind: &str, rest: Value| {
            let mut value = rest;
            value["resultType"] = kind.into();
            result(&value)
        };
        let call = Some("tools/call");
        holds(STATELESS, Sender::Server, &kind("complete", json!({"content": []})), call, true);
        holds(STATELESS, Sender::Server, &result(&json!({"content": []})), call, false);
        holds(STATELESS, Sender::Server, &kind("odd", json!({"content": []})), call, false);
        let asks = json!({"inputRequests": {"k": {"method": "roots/list"}}});
        holds(STATELESS, Sender::Server, &kind("input_required", asks.clone()), call, true);
        holds(STATELESS, Sender::Server, &kind("input_required", asks), Some("tools/list"), false);
        holds(STATELESS, Sender::Server, &kind("input_required", json!({})), call, false);
        holds(STATELESS, Sender::Server, &kind("task", json!({"taskId": "t"})), call, true);
        let list = json!({"tools": [], "ttlMs": 1, "cacheScope": "public"});
        holds(STATELESS, Sender::Server, &kind("complete", list), Some("tools/list"), true);
        holds(STATELESS, Sender::Server, &kind("complete", json!({"tools": []})), Some("tools/list"), false);
    }

    #[test]
    fn an_error_is_held_against_its_code() {
        let error = |id: Value, code: i64, data: Value| json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "m", "data": data}});
        let unknown = json!({"supported": [STATELESS], "requested": "x"});
        holds(STATELESS, Sender::Server, &error(json!(1), -32022, unknown), None, true);
        holds(STATELESS, Sender::Server, &error(json!(1), -32022, json!({})), None, false);
        holds(STATELESS, Sender::Server, &error(json!(null), -32700, json!({})), None, false);
        holds("2025-11-25", Sender::Server, &error(json!(null), -32700, json!({})), None, true);
        holds("2025-11-25", Sender::Server, &error(json!(null), -32602, json!({})), None, false);
        holds("2025-11-25", Sender::Server, &json!({"jsonrpc": "2.0", "id": 1, "error": "no"}), None, false);
    }

    #[test]
    fn only_the_revision_that_has_batches_takes_them() {
        let batch = json!([request("ping", &json!({}))]);
        holds("2025-03-26", Sender::Client, &batch, None, true);
        holds("2025-11-25", Sender::Client, &batch, None, false);
    }
}

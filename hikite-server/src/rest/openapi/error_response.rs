//! OpenAPI: error responses, generated from the error table.

use std::collections::BTreeMap;

use hikite_core::error::TABLE;
use serde_json::{Map, Value, json};

/// Statuses that any authenticated request may return.
pub(crate) const ALWAYS: &[u16] = &[400, 401, 403, 404, 429, 500];
/// Additional statuses of requests with a body.
pub(crate) const WITH_BODY: &[u16] = &[408, 413, 415];

/// Builds the response components by status.
pub(crate) fn responses() -> Value {
    let mut codes: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for definition in TABLE {
        codes.entry(definition.http).or_default().push(definition.code);
    }
    let used = super::operation::statuses();
    let all = codes.iter().filter(|(status, _)| used.contains(status));
    all.map(|(status, codes)| (name(*status), response(*status, codes))).collect::<Map<_, _>>().into()
}

/// Returns the entry of `responses` that references a component.
pub(crate) fn reference(status: u16) -> (String, Value) {
    (status.to_string(), json!({ "$ref": format!("#/components/responses/{}", name(status)) }))
}

fn name(status: u16) -> String {
    format!("Refused{status}")
}

fn response(status: u16, codes: &[&str]) -> Value {
    let header = |name: &str| (name.to_owned(), json!({ "$ref": format!("#/components/headers/{name}") }));
    let mut headers: Map<String, Value> = [header("X-Request-Id")].into_iter().collect();
    match status {
        401 => headers.extend([header("WWW-Authenticate")]),
        429 | 502 | 503 => headers.extend([header("Retry-After")]),
        _ => {}
    }
    json!({
        "description": format!("{}: {}.", meaning(status), codes.join(", ")),
        "headers": headers,
        "content": { "application/json": { "schema": { "$ref": "#/components/schemas/Error" } } },
    })
}

fn meaning(status: u16) -> &'static str {
    match status {
        400 => "The request is not valid; `details` lists what and where",
        401 => "The token is missing or wrong",
        403 => "The tool is disabled, or this Host, Origin or caller may not do it",
        404 => "There is no such tool, project, token or address",
        408 => "The tool or the body took too long",
        409 => "The name is already used, or the object is managed by the config file",
        413 => "The body is too large",
        415 => "The body is not application/json",
        429 => "Too many requests; `Retry-After` gives the time to wait",
        499 => "The call was cancelled",
        502 => "The server of the tool cannot be reached",
        503 => "Too many calls are waiting; try again in a moment",
        _ => "The tool or the gateway failed",
    }
}

//! The OpenAPI 3.1 document, rendered once. Written by hand from the constants that the handlers use (limits, error
//! table), because relayed data has no types to generate it from.

mod account;
mod control;
mod error_response;
mod identity;
mod operation;
mod pin;
mod schema;

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use serde_json::{Map, Value, json};

static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| document().to_string().into());

pub(crate) async fn openapi() -> Response {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache")];
    (headers, DOCUMENT.clone()).into_response()
}

pub(crate) fn document() -> Value {
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "hikite",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "All tools of this gateway over plain HTTP.",
            "description": "List, search and run tools. A tool's key is `module:tool`; its bare name is enough if only one tool \
             has it. All requests except health, this description and `/docs` need a bearer token. Every response \
             has `X-Request-Id`; every error has the same shape and one of the codes of `Error`.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "security": [{ "bearer": [] }],
        "tags": [
            { "name": "Tools", "description": "List, search and run tools." },
            { "name": "Registry", "description": "Register, change and remove tools; for admins." },
            { "name": "Overview", "description": "Sources and groups of tools." },
            { "name": "Upstreams", "description": "Remote servers configured at runtime; for admins." },
            { "name": "Projects", "description": "The caller, and projects that separate callers; for admins." },
            { "name": "Tokens", "description": "Access tokens; for admins." },
            { "name": "Accounts", "description": "Accounts used to call services." },
            { "name": "Users", "description": "Users who log in; for admins." },
            { "name": "Clients", "description": "OAuth clients of users; for admins." },
            { "name": "Pins", "description": "Approval of tool definitions; for admins." },
            { "name": "Presence", "description": "Sessions, consents and logins; for admins." },
            { "name": "Audit", "description": "Records of all actions; for admins." },
            { "name": "Health", "description": "Health of the gateway." },
        ],
        "paths": operation::paths(),
        "components": {
            "securitySchemes": {
                "bearer": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "The token of the config, or the one in the file `token` of the data folder; a personal token; \
                     or an access token that a client obtained for a user.",
                },
            },
            "headers": headers(),
            "parameters": parameters(),
            "responses": error_response::responses(),
            "schemas": schemas(),
        },
    })
}

fn schemas() -> Value {
    let mut all = schema::schemas();
    let parts = [identity::schemas(), account::schemas(), control::schemas(), pin::schemas().into()];
    for (name, schema) in parts.into_iter().flatten() {
        all[name] = schema;
    }
    all
}

fn parameters() -> Value {
    let key = json!({
        "name": "key",
        "in": "path",
        "required": true,
        "description": "`module:tool`, or the bare name if only one tool has it; percent-encoded.",
        "schema": { "type": "string", "minLength": 1 },
        "example": "files:read_file",
    });
    let all = identity::parameters()
        .into_iter()
        .chain(account::parameters())
        .chain(control::parameters())
        .chain([("Key", key), ("Pin", pin::parameter())]);
    all.map(|(name, parameter)| (name.to_owned(), parameter)).collect::<Map<_, _>>().into()
}

fn headers() -> Value {
    let whole = json!({ "type": "integer", "minimum": 0 });
    json!({
        "X-Request-Id": {
            "description": "Id of this request in logs and traces: the client's own if it sent a valid one.",
            "required": true,
            "schema": { "type": "string", "minLength": 1, "maxLength": 128 },
        },
        "RateLimit-Limit": { "description": "Requests per window, if there is a limit.", "schema": whole },
        "RateLimit-Remaining": { "description": "Remaining requests.", "schema": whole },
        "RateLimit-Reset": { "description": "Seconds until the limit is fully reset.", "schema": whole },
        "RateLimit-Policy": {
            "description": "The limit and its window in seconds, for example `100;w=60`.",
            "schema": { "type": "string" },
        },
        "Retry-After": { "description": "Seconds to wait before trying again.", "schema": whole },
        "WWW-Authenticate": { "description": "The required authentication.", "required": true, "schema": { "type": "string" } },
        "Location": {
            "description": "Address of the new object.",
            "required": true,
            "schema": { "type": "string", "format": "uri-reference" },
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects all `$ref` values.
    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere_and_nothing_is_left_unused() {
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        for reference in &found {
            let pointer = reference.strip_prefix('#').expect("inside the document");
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
        for (kind, parts) in document["components"].as_object().expect("components") {
            for name in parts.as_object().into_iter().flatten().map(|(name, _)| name) {
                let reference = format!("#/components/{kind}/{name}");
                assert!(kind == "securitySchemes" || found.contains(&reference.as_str()), "{reference} is unused");
            }
        }
    }

    #[test]
    fn operations_have_names_of_their_own() {
        let document = document();
        let paths = document["paths"].as_object().expect("paths");
        let mut names: Vec<&str> = paths
            .values()
            .flat_map(|path| path.as_object().into_iter().flatten())
            .map(|(method, operation)| operation["operationId"].as_str().unwrap_or_else(|| panic!("{method}")))
            .collect();
        let count = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), count);
    }
}

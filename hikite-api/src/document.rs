//! The OpenAPI 3.1 document: operations, types, and the statuses of the error table.

use std::collections::{BTreeMap, BTreeSet};

use hikite_core::error::TABLE;
use schemars::generate::{Contract, SchemaSettings};
use schemars::transform::RecursiveTransform;
use serde_json::{Map, Value, json};

use crate::ErrorAnswer;
use crate::operation::{Operation, header, operations, path_parameters, tags};
use crate::schema::without_number_formats;

/// Builds the document.
pub fn document() -> Value {
    let mut settings = SchemaSettings::draft2020_12();
    settings.definitions_path = "/components/schemas".into();
    settings.contract = Contract::Serialize;
    settings.meta_schema = None;
    settings.transforms.push(Box::new(RecursiveTransform(without_number_formats)));
    let mut generator = settings.into_generator();
    let operations = operations();
    let mut paths = Map::new();
    for operation in &operations {
        let path = paths.entry(operation.path).or_insert_with(|| json!({}));
        path[operation.method] = operation.render(&mut generator);
    }
    generator.subschema_for::<ErrorAnswer>();
    let used = operations.iter().flat_map(Operation::statuses).collect();
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
        "tags": tags(),
        "paths": paths,
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
            "parameters": path_parameters(),
            "responses": refusals(&used),
            "schemas": generator.take_definitions(true),
        },
    })
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

/// Builds the error responses by status.
fn refusals(used: &BTreeSet<u16>) -> Map<String, Value> {
    let mut codes: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for definition in TABLE.iter().filter(|definition| used.contains(&definition.http)) {
        codes.entry(definition.http).or_default().push(definition.code);
    }
    codes.iter().map(|(status, codes)| (format!("Refused{status}"), refusal(*status, codes))).collect()
}

fn refusal(status: u16, codes: &[&str]) -> Value {
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

#[cfg(test)]
mod comparison;
#[cfg(test)]
mod tests;

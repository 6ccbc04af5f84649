//! REST types: registration.

use std::collections::BTreeMap;

use hikite_core::json::Raw;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::schema::never_null;
use crate::tool::Example;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(extend("examples" = [{"name": "sunrise", "description": "When the sun rises over a city.", "parameters": [{"name": "city", "type": "string", "description": "The city.", "required": true}], "tags": ["sky"], "http": {"method": "GET", "url": "https://api.example/sunrise/{city}", "result": "today.at"}, "overwrite": true}]))]
pub struct Registration {
    #[schemars(length(max = 128), extend("pattern" = r"^[a-z][a-z0-9-]*$"))]
    pub name: String,
    #[schemars(extend("pattern" = r"\S"))]
    pub description: String,
    /// Display name.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub title: Option<String>,
    /// Module of the tool; `registered` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128), extend("pattern" = r"^[A-Za-z0-9_-]+$"))]
    pub module: Option<String>,
    /// Parameters in the simple form. Not together with `inputSchema`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<Vec<Parameter>>,
    /// Parameters as a JSON Schema of type `object`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "input_schema")]
    pub input_schema: Option<Raw>,
    /// Result as a JSON Schema.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub output_schema: Option<Raw>,
    /// Annotations of the tool, for example `readOnlyHint` or `idempotentHint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub annotations: Option<Raw>,
    /// `1.0.0` by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub version: Option<String>,
    /// Keywords for search.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(regex(pattern = r"\S")))]
    pub tags: Option<Vec<String>>,
    /// Category under which it is listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub category: Option<String>,
    /// Author.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub examples: Option<Vec<Example>>,
    /// Tools that it needs; if one is missing or disabled, it cannot be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(regex(pattern = r"\S")))]
    pub dependencies: Option<Vec<String>>,
    /// Timeout of a call in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout: Option<u32>,
    /// Number of retries after a failure that allows them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<u32>,
    /// Milliseconds before the first retry.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry_delay: Option<u32>,
    /// Milliseconds for which a result may be cached; only for read-only tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache_ttl: Option<u32>,
    pub http: HttpRequest,
    /// Replaces a registered tool of the same name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub overwrite: Option<bool>,
}

/// A parameter in the simple form. Names are unique; `default` and `enum` hold values of the type, `pattern` is for
/// strings, `minimum` and `maximum` are for numbers.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = never_null)]
pub struct Parameter {
    #[schemars(length(min = 1))]
    pub name: String,
    #[serde(rename = "type")]
    #[schemars(extend("enum" = ["string", "number", "integer", "boolean", "object", "array"]))]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub required: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub default: Option<Raw>,
    #[serde(rename = "enum", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Value>>", length(min = 1))]
    pub allowed: Option<Vec<Raw>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("format" = "regex"))]
    pub pattern: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub minimum: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum: Option<f64>,
}

/// The HTTP request of the tool. `{name}` inserts a parameter: in the path of the address, in values of the query and
/// of headers, and in strings of the body. Parameters that are not inserted go into the query, or into the body if
/// the request has one.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = never_null, transform = body_needs_method)]
pub struct HttpRequest {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"], "default" = "GET"))]
    pub method: Option<String>,
    /// The address, with `{name}` in its path.
    #[schemars(extend("pattern" = r"^https?://"))]
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub headers: Option<BTreeMap<String, String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub query: Option<Raw>,
    /// JSON; a string that is a single reference keeps the type of its value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub body: Option<Raw>,
    /// Path of the result in the response, for example `data.items[0]` or `/data/items/0`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<String>,
}

fn input_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": ["object", "null"],
        "required": ["type"],
        "properties": {
            "type": { "const": "object" },
            "properties": { "type": "object", "additionalProperties": { "type": ["object", "boolean"] } },
        },
    })
}

/// Only some methods have a body.
fn body_needs_method(schema: &mut Schema) {
    let methods = json!({ "enum": ["POST", "PUT", "PATCH", "DELETE"] });
    schema.insert("if".into(), json!({ "required": ["method"], "properties": { "method": methods } }));
    schema.insert("else".into(), json!({ "not": { "required": ["body"] } }));
}

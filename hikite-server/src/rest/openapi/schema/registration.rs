//! OpenAPI: schema of a tool registration.

use serde_json::{Value, json};

/// Builds the schema of an optional member; `null` counts as absent.
fn optional(kind: &str, description: &str) -> Value {
    json!({ "type": [kind, "null"], "description": description })
}

pub(crate) fn form() -> Value {
    let word = |description: &str| json!({ "type": ["string", "null"], "maxLength": 128, "description": description });
    let list = |description: &str| {
        json!({
            "type": ["array", "null"],
            "maxItems": 64,
            "items": { "type": "string", "pattern": "\\S" },
            "description": description,
        })
    };
    let whole = |minimum: u32, description: &str| json!({ "type": ["integer", "null"], "minimum": minimum, "maximum": u32::MAX, "description": description });
    json!({
        "type": "object",
        "required": ["name", "description", "http"],
        "additionalProperties": false,
        "properties": {
            "name": { "type": "string", "pattern": "^[a-z][a-z0-9-]*$", "maxLength": 128 },
            "description": { "type": "string", "pattern": "\\S" },
            "title": word("Display name."),
            "module": {
                "type": ["string", "null"],
                "pattern": "^[A-Za-z0-9_-]+$",
                "maxLength": 128,
                "description": "Module of the tool; `registered` by default.",
            },
            "parameters": {
                "type": ["array", "null"],
                "items": { "$ref": "#/components/schemas/Parameter" },
                "description": "Parameters in the simple form. Not together with `inputSchema`.",
            },
            "inputSchema": {
                "type": ["object", "null"],
                "required": ["type"],
                "properties": {
                    "type": { "const": "object" },
                    "properties": { "type": "object", "additionalProperties": { "type": ["object", "boolean"] } },
                },
                "description": "Parameters as a JSON Schema of type `object`.",
            },
            "outputSchema": optional("object", "Result as a JSON Schema."),
            "annotations": optional("object", "Annotations of the tool, for example `readOnlyHint` or `idempotentHint`."),
            "version": word("`1.0.0` by default."),
            "tags": list("Keywords for search."),
            "category": word("Category under which it is listed."),
            "author": word("Author."),
            "examples": {
                "type": ["array", "null"],
                "maxItems": 64,
                "items": { "$ref": "#/components/schemas/Example" },
            },
            "dependencies": list("Tools that it needs; if one is missing or disabled, it cannot be called."),
            "timeout": whole(1, "Timeout of a call in milliseconds."),
            "retry": whole(0, "Number of retries after a failure that allows them."),
            "retryDelay": whole(0, "Milliseconds before the first retry."),
            "cacheTtl": whole(0, "Milliseconds for which a result may be cached; only for read-only tools."),
            "http": { "$ref": "#/components/schemas/HttpRequest" },
            "overwrite": optional("boolean", "Replaces a registered tool of the same name."),
        },
        "examples": [{
            "name": "sunrise",
            "description": "When the sun rises over a city.",
            "parameters": [{ "name": "city", "type": "string", "description": "The city.", "required": true }],
            "tags": ["sky"],
            "http": { "method": "GET", "url": "https://api.example/sunrise/{city}", "result": "today.at" },
            "overwrite": true,
        }],
    })
}

pub(crate) fn parameter() -> Value {
    json!({
        "type": "object",
        "required": ["name", "type"],
        "additionalProperties": false,
        "description": "A parameter in the simple form. Names are unique; `default` and `enum` hold values of the type, `pattern` \
         is for strings, `minimum` and `maximum` are for numbers.",
        "properties": {
            "name": { "type": "string", "minLength": 1 },
            "type": { "enum": ["string", "number", "integer", "boolean", "object", "array"] },
            "description": { "type": "string" },
            "required": { "type": "boolean", "default": false },
            "default": {},
            "enum": { "type": "array", "minItems": 1 },
            "pattern": { "type": "string", "format": "regex" },
            "minimum": { "type": "number" },
            "maximum": { "type": "number" },
        },
    })
}

pub(crate) fn http_request() -> Value {
    json!({
        "type": "object",
        "required": ["url"],
        "additionalProperties": false,
        "if": { "required": ["method"], "properties": { "method": { "enum": ["POST", "PUT", "PATCH", "DELETE"] } } },
        "else": { "not": { "required": ["body"] } },
        "description": "The HTTP request of the tool. `{name}` inserts a parameter: in the path of the address, in values of the \
         query and of headers, and in strings of the body. Parameters that are not inserted go into the query, or \
         into the body if the request has one.",
        "properties": {
            "method": { "enum": ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"], "default": "GET" },
            "url": { "type": "string", "pattern": "^https?://", "description": "The address, with `{name}` in its path." },
            "headers": { "type": "object", "additionalProperties": { "type": "string" } },
            "query": { "type": "object" },
            "body": { "description": "JSON; a string that is a single reference keeps the type of its value." },
            "result": {
                "type": "string",
                "description": "Path of the result in the response, for example `data.items[0]` or `/data/items/0`.",
            },
        },
    })
}

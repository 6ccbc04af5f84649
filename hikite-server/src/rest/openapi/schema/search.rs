//! OpenAPI: schemas of the Search API.

use serde_json::{Value, json};

use crate::rest::search::{CONTEXT_CHARS, QUERIES_MAX, RESULTS_DEFAULT, RESULTS_MAX, TOOLS_MAX};
use crate::rest::tools::QUERY_CHARS;

pub(super) fn request() -> Value {
    let query = json!({ "type": "string", "minLength": 1, "maxLength": QUERY_CHARS, "pattern": "\\S" });
    json!({
        "type": "object",
        "required": ["query", "tools"],
        "additionalProperties": false,
        "properties": {
            "query": {
                "description": "What the tool should do, in one or more phrasings.",
                "anyOf": [query, { "type": "array", "items": query, "minItems": 1, "maxItems": QUERIES_MAX }],
            },
            "context": { "type": "string", "maxLength": CONTEXT_CHARS, "description": "The surrounding task." },
            "tools": {
                "type": "array",
                "maxItems": TOOLS_MAX,
                "description": "The tools to choose from.",
                "items": { "$ref": "#/components/schemas/CatalogTool" },
            },
            "maxResults": { "type": "integer", "minimum": 1, "maximum": RESULTS_MAX, "default": RESULTS_DEFAULT },
        },
        "examples": [{
            "query": ["read a file"],
            "tools": [{ "toolKey": "fs:read_file", "toolName": "read_file", "serverName": "fs" }],
        }],
    })
}

pub(super) fn tool() -> Value {
    json!({
        "type": "object",
        "required": ["toolKey", "toolName", "serverName"],
        "properties": {
            "toolKey": { "type": "string" },
            "toolName": { "type": "string" },
            "serverName": { "type": "string" },
            "description": { "type": ["string", "null"] },
        },
    })
}

pub(super) fn answer() -> Value {
    json!({
        "type": "object",
        "required": ["results"],
        "properties": {
            "results": {
                "type": "array",
                "items": {
                    "allOf": [
                        { "$ref": "#/components/schemas/CatalogTool" },
                        {
                            "type": "object",
                            "required": ["relevance"],
                            "properties": {
                                "relevance": { "type": "number", "minimum": 0, "maximum": 1 },
                                "explanation": { "type": "string", "description": "What matched." },
                            },
                        },
                    ],
                },
            },
            "_meta": { "type": "object", "description": "Details of the match, in `hikite/search`." },
        },
    })
}

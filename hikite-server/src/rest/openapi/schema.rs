//! OpenAPI: the schemas of requests, responses and errors.

mod audit;
mod batch;
mod registration;
mod search;

use hikite_core::error::TABLE;
use serde_json::{Value, json};

use crate::rest::call::{BOTH, DELAY_MS_MAX, NAME_CHARS, RETRY_MAX, SELECT_CHARS, TIMEOUT_MS_MAX};
use crate::rest::tools::{LIMIT_MAX, QUERY_CHARS, SEARCH_LIMIT};

pub(crate) fn schemas() -> Value {
    json!({
        "Tool": tool(),
        "FoundTool": {
            "allOf": [
                { "$ref": "#/components/schemas/Tool" },
                {
                    "type": "object",
                    "required": ["relevance"],
                    "properties": {
                        "relevance": { "type": "number", "minimum": 0, "maximum": 1, "description": "How well it fits." },
                        "explanation": { "type": "string", "description": "What matched." },
                    },
                },
            ],
        },
        "Example": example(),
        "ToolPage": tool_page(),
        "CallRequest": call_request(),
        "CallAnswer": call_answer(),
        "BatchRequest": batch::request(),
        "BatchTask": batch::task(),
        "BatchAnswer": batch::answer(),
        "BatchReport": batch::report(),
        "BatchPreview": batch::preview(),
        "SearchRequest": search_request(),
        "SearchAnswer": search_answer(),
        "CatalogRequest": search::request(),
        "CatalogAnswer": search::answer(),
        "CatalogTool": search::tool(),
        "Registration": registration::form(),
        "Parameter": registration::parameter(),
        "HttpRequest": registration::http_request(),
        "Categories": categories(),
        "ToolTexts": texts(),
        "AuditRecord": audit::record(),
        "AuditPage": audit::page(),
        "AuditVerdict": audit::verdict(),
        "Health": health(),
        "Error": error(),
        "Fault": fault(),
    })
}

fn list_of(schema: &str) -> Value {
    json!({ "type": "array", "items": { "$ref": format!("#/components/schemas/{schema}") } })
}

fn words() -> Value {
    json!({ "type": "array", "items": { "type": "string" } })
}

fn moment() -> Value {
    json!({ "type": "string", "format": "date-time", "examples": ["2026-11-15T08:30:00.000Z"] })
}

fn milliseconds(description: &str) -> Value {
    json!({ "type": "number", "minimum": 0, "description": description })
}

fn tool() -> Value {
    json!({
        "type": "object",
        "required": ["key", "name", "module", "description", "inputSchema", "version", "tags", "enabled", "registeredAt"],
        "properties": {
            "key": { "type": "string", "description": "`module:tool`; names the tool everywhere." },
            "name": { "type": "string" },
            "module": { "type": "string" },
            "title": { "type": "string" },
            "description": { "type": "string" },
            "overrides": { "type": "object", "description": "For admins, of a single tool: texts that were written in place of its own." },
            "original": { "type": "object", "description": "For admins, of a single tool: its own texts." },
            "inputSchema": { "type": "object", "description": "The JSON Schema of its parameters." },
            "outputSchema": { "type": "object", "description": "The JSON Schema of its result." },
            "annotations": { "type": "object", "description": "What its maker promises: `readOnlyHint` and the like." },
            "version": { "type": "string", "description": "Its own, else that of its server." },
            "category": { "type": "string" },
            "tags": words(),
            "author": { "type": "string" },
            "examples": list_of("Example"),
            "dependencies": words(),
            "enabled": { "type": "boolean" },
            "disabledReason": { "type": "string", "description": "Why it cannot be called, where it cannot." },
            "registeredAt": moment(),
        },
    })
}

fn example() -> Value {
    json!({
        "type": "object",
        "required": ["description", "parameters"],
        "properties": {
            "description": { "type": "string" },
            "parameters": { "type": "object" },
            "expectedResult": {},
        },
    })
}

fn tool_page() -> Value {
    let count = |minimum: u32| json!({ "type": "integer", "minimum": minimum });
    json!({
        "type": "object",
        "required": ["tools", "pagination"],
        "properties": {
            "tools": list_of("Tool"),
            "pagination": {
                "type": "object",
                "required": ["page", "limit", "total", "totalPages"],
                "properties": { "page": count(1), "limit": count(1), "total": count(0), "totalPages": count(0) },
            },
        },
    })
}

fn call_request() -> Value {
    let whole = |minimum: u32, maximum: u32, description: &str| json!({ "type": "integer", "minimum": minimum, "maximum": maximum, "description": description });
    json!({
        "type": "object",
        "required": ["name"],
        "additionalProperties": false,
        "properties": {
            "name": {
                "type": "string",
                "minLength": 1,
                "maxLength": NAME_CHARS,
                "description": "The tool's key, or its bare name where only one tool has it; or the address of an answer that was kept.",
            },
            "parameters": {
                "type": "object",
                "description": "What the tool's `inputSchema` asks for. Text that holds such an object is understood too.",
            },
            "options": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "timeout": whole(1, TIMEOUT_MS_MAX, "Milliseconds the call may take."),
                    "retry": whole(0, RETRY_MAX, "Further attempts after a failure that allows them; only tools that are read-only or idempotent are run again."),
                    "retryDelay": whole(0, DELAY_MS_MAX, "Milliseconds before the first further attempt; later ones wait longer."),
                    "format": {
                        "enum": ["compact", "raw", BOTH],
                        "description": "`compact`: `result` is a short text for a model, and `answer` tells of it; `raw`, which is the default: the value; `both`: the value, and the text in `compact`.",
                    },
                    "account": {
                        "type": "string", "maxLength": 512,
                        "description": "Which account to use, where a service has several.",
                    },
                    "select": {
                        "type": "string", "minLength": 1, "maxLength": SELECT_CHARS, "pattern": "\\S",
                        "description": "The part of the result that is wanted: fields (`number,title,user.login`), a path (`.items[0]`) or a program in jq.",
                        "examples": ["number,title,user.login", ".items | length"],
                    },
                },
            },
        },
        "examples": [
            { "name": "files:read_file", "parameters": { "path": "notes.txt" }, "options": { "timeout": 5000 } },
        ],
    })
}

fn call_answer() -> Value {
    json!({
        "type": "object",
        "required": ["success", "result", "executionTime", "timestamp"],
        "properties": {
            "success": { "const": true },
            "result": { "description": "The structured result of the tool, else its text, read as JSON where it is." },
            "content": {
                "type": "array",
                "items": { "type": "object" },
                "description": "Pictures, sounds and resources that came beside it, as the protocol has them.",
            },
            "nextCursor": {
                "type": "string",
                "description": "Where the next part of a list begins: the parameter `cursor` of the same tool.",
            },
            "compact": { "type": "string", "description": "With the format `both`: what a model would get." },
            "answer": {
                "type": "object",
                "required": ["form"],
                "description": "Of a compact result: how it is written, its bytes before and after, and where the whole is kept if something was left out.",
                "properties": {
                    "form": { "enum": ["toon", "json", "text"] },
                    "bytes": { "type": "array", "minItems": 2, "maxItems": 2, "items": { "type": "integer", "minimum": 0 } },
                    "handle": { "type": "string", "description": "Call it like a tool, with the parameter `page`, `jq` or `search`." },
                    "page": { "type": "integer", "minimum": 1 },
                    "pages": { "type": "integer", "minimum": 1 },
                },
            },
            "executionTime": milliseconds("Milliseconds it took."),
            "timestamp": moment(),
        },
    })
}

fn search_request() -> Value {
    json!({
        "type": "object",
        "required": ["query"],
        "additionalProperties": false,
        "properties": {
            "query": { "type": "string", "minLength": 1, "maxLength": QUERY_CHARS, "pattern": "\\S" },
            "filters": {
                "type": "object",
                "additionalProperties": false,
                "properties": {
                    "category": { "type": "string" },
                    "tags": { "type": "array", "items": { "type": "string" }, "description": "A tool must have all of them." },
                    "module": { "type": "string" },
                },
            },
            "limit": { "type": "integer", "minimum": 1, "maximum": LIMIT_MAX, "default": SEARCH_LIMIT },
        },
        "examples": [{ "query": "read a file", "filters": { "tags": ["files"] }, "limit": 5 }],
    })
}

fn search_answer() -> Value {
    json!({
        "type": "object",
        "required": ["query", "results", "total"],
        "properties": {
            "query": { "type": "string" },
            "results": list_of("FoundTool"),
            "total": { "type": "integer", "minimum": 0, "description": "How many fit, shown or not." },
        },
    })
}

fn categories() -> Value {
    json!({ "type": "object", "required": ["categories"], "properties": { "categories": list_of("Category") } })
}

/// Builds the schema of tool text overrides; `null` removes one.
fn texts() -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "properties": {
            "title": { "type": ["string", "null"], "maxLength": 200, "pattern": "\\S" },
            "description": { "type": ["string", "null"], "maxLength": 10_000, "pattern": "\\S" },
        },
        "examples": [{ "title": "Read a file", "description": null }],
    })
}

fn health() -> Value {
    json!({
        "type": "object",
        "required": ["status", "message", "name", "version", "uptime", "timestamp"],
        "properties": {
            "status": { "const": "ok" },
            "message": { "type": "string" },
            "name": { "const": "hikite" },
            "version": { "type": "string" },
            "uptime": { "type": "number", "minimum": 0, "description": "Seconds since the start." },
            "timestamp": moment(),
        },
    })
}

fn error() -> Value {
    let codes: Vec<&str> = TABLE.iter().map(|definition| definition.code).collect();
    json!({
        "type": "object",
        "required": ["success", "error", "code", "requestId", "timestamp"],
        "properties": {
            "success": { "const": false },
            "error": { "type": "string", "description": "What went wrong, in words." },
            "code": { "enum": codes },
            "hint": { "type": "string", "description": "What to do about it." },
            "details": list_of("Fault"),
            "schema": { "description": "What the parameters should have followed." },
            "requestId": { "type": "string" },
            "executionTime": milliseconds("Milliseconds it took, where a tool was to be run."),
            "timestamp": moment(),
        },
        "examples": [{
            "success": false,
            "error": "Tool not found: files:raed_file",
            "code": "TOOL_NOT_FOUND",
            "hint": "Did you mean `files:read_file`?",
            "requestId": "0af7651916cd43dd8448eb211c80319c",
            "executionTime": 0.041,
            "timestamp": "2026-11-15T08:30:00.000Z",
        }],
    })
}

fn fault() -> Value {
    json!({
        "type": "object",
        "required": ["pointer", "message"],
        "properties": {
            "pointer": { "type": "string", "description": "A JSON Pointer into what was sent; empty for the whole." },
            "message": { "type": "string" },
        },
    })
}

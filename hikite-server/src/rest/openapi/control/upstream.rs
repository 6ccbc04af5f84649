//! OpenAPI: upstream servers and categories in the store.

use serde_json::{Value, json};

use super::super::operation::OpenApiOperation;
use super::module::managed_by;
use super::{listed, parameter, reference, text};

pub(super) fn operations() -> Vec<OpenApiOperation> {
    upstreams().into_iter().chain(categories()).collect()
}

fn upstreams() -> Vec<OpenApiOperation> {
    let tag = "Upstreams";
    let new = || OpenApiOperation { tag, ..OpenApiOperation::NEW };
    vec![
        OpenApiOperation {
            path: "/v1/upstreams",
            id: "listUpstreams",
            summary: "Lists the upstream servers of the config file and of the store, secrets masked.",
            answer: (200, "The upstream servers.", Some("Upstreams")),
            errors: &[404],
            ..new()
        },
        OpenApiOperation {
            path: "/v1/upstreams/{name}",
            id: "getUpstream",
            summary: "Shows one upstream server, secrets masked.",
            parameters: vec![parameter("Upstream")],
            answer: (200, "The upstream server.", Some("Upstream")),
            errors: &[404],
            ..new()
        },
        OpenApiOperation {
            method: "put",
            path: "/v1/upstreams/{name}",
            id: "putUpstream",
            summary: "Adds or changes a remote server. Local programs are rejected; they can only be defined in the config \
             file.",
            parameters: vec![parameter("Upstream")],
            body: Some("UpstreamEntry"),
            answer: (200, "The changed upstream server.", Some("Upstream")),
            also: Some((201, "Created.", Some("Upstream"))),
            errors: &[404, 409, 503],
            ..new()
        },
        OpenApiOperation {
            method: "delete",
            path: "/v1/upstreams/{name}",
            id: "deleteUpstream",
            summary: "Removes a server from the store.",
            parameters: vec![parameter("Upstream")],
            answer: (204, "Removed.", None),
            errors: &[404, 409, 503],
            ..new()
        },
        OpenApiOperation {
            method: "post",
            path: "/v1/upstreams/import",
            id: "importUpstreams",
            summary: "Previews or imports the config of another client.",
            body: Some("ImportRequest"),
            answer: (200, "The result for each entry.", Some("ImportAnswer")),
            errors: &[404, 503],
            ..new()
        },
    ]
}

fn categories() -> Vec<OpenApiOperation> {
    let tag = "Overview";
    let new = || OpenApiOperation { tag, parameters: vec![parameter("Category")], ..OpenApiOperation::NEW };
    let path = "/v1/categories/{name}";
    vec![
        OpenApiOperation {
            path,
            id: "getCategory",
            summary: "Shows one category; admins also see the definition of a category in the store.",
            answer: (200, "The category.", Some("Category")),
            errors: &[404],
            ..new()
        },
        OpenApiOperation {
            method: "put",
            path,
            id: "putCategory",
            summary: "Creates or changes a category; for admins.",
            body: Some("CategoryForm"),
            answer: (200, "The changed category.", Some("Category")),
            also: Some((201, "Created.", Some("Category"))),
            errors: &[404, 409, 503],
            ..new()
        },
        OpenApiOperation {
            method: "delete",
            path,
            id: "deleteCategory",
            summary: "Removes a category from the store; for admins.",
            answer: (204, "Removed.", None),
            errors: &[404, 409, 503],
            ..new()
        },
    ]
}

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![
        ("Upstreams", listed("upstreams", "Upstream")),
        ("Upstream", upstream()),
        ("UpstreamEntry", entry()),
        ("ImportRequest", import_request()),
        ("ImportAnswer", import_answer()),
        ("Category", category()),
        ("CategoryForm", category_form()),
    ]
}

fn upstream() -> Value {
    json!({
        "type": "object",
        "required": ["name", "managedBy", "kind", "entry"],
        "properties": {
            "name": { "type": "string" },
            "managedBy": managed_by(),
            "kind": { "enum": ["stdio", "http", "sse"] },
            "entry": { "type": "object", "description": "As in `mcpServers` of the config, secrets shown as `***`." },
        },
    })
}

fn entry() -> Value {
    json!({
        "type": "object",
        "required": ["url"],
        "description": "The members of an entry of `mcpServers` with a `url`, without variables and files. `***` keeps the stored \
         value.",
        "properties": {
            "url": { "type": "string", "examples": ["https://mcp.example.com/mcp"] },
            "type": { "enum": ["http", "streamable-http", "streamableHttp", "sse"] },
            "description": { "type": "string" },
            "headers": { "type": "object", "description": "Sent with every request; stored in the vault." },
            "timeout": { "description": "Timeout of one call: seconds, or `30s`." },
            "auth": { "type": "object", "description": "Login settings that cannot be discovered." },
            "tools": { "type": "object", "description": "Selection of its tools." },
        },
        "examples": [{ "url": "https://mcp.example.com/mcp", "description": "Documents", "headers": { "Authorization": "Bearer abc" } }],
    })
}

fn import_request() -> Value {
    json!({
        "type": "object",
        "required": ["config"],
        "additionalProperties": false,
        "properties": {
            "config": {
                "type": ["object", "string"],
                "description": "The config of a client (`mcpServers`, `servers`, `context_servers`) as an object, or as text with \
                 optional comments.",
            },
            "apply": { "type": "boolean", "default": false },
        },
        "examples": [{ "config": { "mcpServers": { "docs": { "url": "https://mcp.example.com/mcp" } } }, "apply": false }],
    })
}

fn import_answer() -> Value {
    let line = json!({
        "type": "object",
        "required": ["name", "kind", "action"],
        "properties": {
            "name": { "type": "string" },
            "kind": { "enum": ["http", "stdio"] },
            "action": {
                "enum": ["add", "change", "same", "file", "refused"],
                "description": "`file`: the name is used by the config file or another module.",
            },
            "before": { "type": "object" },
            "after": { "type": "object" },
            "command": text("Command to run on the machine for a local program."),
            "message": { "type": "string" },
        },
    });
    let words = json!({ "type": "array", "items": { "type": "string" } });
    json!({
        "type": "object",
        "required": ["entries", "applied", "notes"],
        "properties": { "entries": { "type": "array", "items": line }, "applied": words, "notes": words },
    })
}

pub(super) fn category() -> Value {
    let words = json!({ "type": "array", "items": { "type": "string" } });
    json!({
        "type": "object",
        "required": ["name", "description", "managedBy", "modules", "tools"],
        "properties": {
            "name": { "type": "string" },
            "description": { "type": "string" },
            "managedBy": managed_by(),
            "modules": words,
            "tools": words,
            "form": reference("CategoryForm"),
        },
    })
}

fn category_form() -> Value {
    json!({
        "type": "object",
        "required": ["server"],
        "additionalProperties": false,
        "description": "The members of an entry of `categories` of the config.",
        "properties": {
            "description": { "type": "string" },
            "server": {
                "anyOf": [{ "type": "string" }, { "type": "array", "minItems": 1, "items": { "type": "string" } }],
                "description": "The module or modules of the tools.",
            },
            "tools": { "type": "object", "description": "Selection of tools; all by default." },
            "skill": { "type": "string" },
        },
        "examples": [{ "description": "Reading files", "server": "files" }],
    })
}

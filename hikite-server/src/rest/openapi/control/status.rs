//! OpenAPI: status overview.

use serde_json::{Value, json};

use super::super::operation::OpenApiOperation;
use super::{reference, text, whole};

pub(super) fn operations() -> Vec<OpenApiOperation> {
    vec![OpenApiOperation {
        path: "/v1/status",
        id: "getStatus",
        tag: "Overview",
        summary: "Shows the state of the gateway, the tokens it saved, and what needs attention; for admins.",
        answer: (200, "The overview.", Some("Status")),
        errors: &[503],
        ..OpenApiOperation::NEW
    }]
}

pub(super) fn schemas() -> Vec<(&'static str, Value)> {
    vec![("Status", status()), ("SavedDay", today()), ("Concern", concern())]
}

fn status() -> Value {
    json!({
        "type": "object",
        "required": ["version", "uptimeSeconds", "sessions", "calls", "saved", "audit", "attention"],
        "properties": {
            "version": { "type": "string" },
            "uptimeSeconds": whole("Uptime of this process in seconds."),
            "sessions": whole("Open MCP sessions in this process."),
            "calls": reference("Calls"),
            "saved": {
                "type": "object",
                "required": ["today", "days"],
                "description": "Tokens saved for models, over all processes on the store; estimated.",
                "properties": { "today": reference("SavedDay"), "days": { "type": "array", "items": day() } },
            },
            "audit": {
                "type": "object",
                "required": ["enabled"],
                "properties": {
                    "enabled": { "type": "boolean" },
                    "durability": { "enum": ["group", "strict"], "description": "Sets if a response waits until its audit record is committed." },
                    "whenFull": { "enum": ["block", "drop-and-count"] },
                    "waiting": whole("Records not yet on disk."),
                    "accepts": { "type": "boolean", "description": "False while no records can be written and calls are rejected." },
                },
            },
            "attention": { "type": "array", "items": reference("Concern") },
        },
    })
}

fn today() -> Value {
    json!({
        "type": "object",
        "required": ["calls", "errors", "tokensRaw", "tokensSent", "tokensFlat", "tokensMenu", "tokensSaved"],
        "properties": {
            "calls": whole("Calls of tools, resources and prompts."),
            "errors": whole("Failed calls among them."),
            "tokensRaw": whole("Tokens of the results before compaction."),
            "tokensSent": whole("Tokens of the same results as sent."),
            "tokensFlat": whole("Tokens of the tool lists if they had contained every tool."),
            "tokensMenu": whole("Tokens of the same tool lists as sent."),
            "tokensSaved": whole("Sum of the tokens saved."),
        },
    })
}

fn day() -> Value {
    json!({
        "type": "object",
        "required": ["day", "calls", "errors", "tokensSaved"],
        "properties": {
            "day": { "type": "string", "format": "date", "description": "In UTC; the last 30 days, oldest first." },
            "calls": whole("As above."),
            "errors": whole("As above."),
            "tokensSaved": whole("As above."),
        },
    })
}

fn concern() -> Value {
    json!({
        "type": "object",
        "required": ["kind", "name", "message", "hint"],
        "description": "Something that needs attention.",
        "properties": {
            "kind": { "enum": ["config", "module", "login", "account", "client", "pin", "audit"] },
            "name": text("The module, the key of the tool, or the id of the account or the client."),
            "message": { "type": "string" },
            "hint": text("What to do about it."),
        },
    })
}

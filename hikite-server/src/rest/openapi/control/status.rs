//! OpenAPI: status overview.

use serde_json::{Value, json};

use super::super::operation::OpenApiOperation;
use super::{reference, text, whole};

pub(super) fn operations() -> Vec<OpenApiOperation> {
    vec![OpenApiOperation {
        path: "/v1/status",
        id: "getStatus",
        tag: "Overview",
        summary: "Tells how the gateway is doing, what it saved, and what needs somebody; for admins.",
        answer: (200, "The whole at a glance.", Some("Status")),
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
            "uptimeSeconds": whole("Seconds since the start of this process."),
            "sessions": whole("Open sessions of MCP clients, in this process."),
            "calls": reference("Calls"),
            "saved": {
                "type": "object",
                "required": ["today", "days"],
                "description": "What models were spared, of all processes on the store; tokens are a guess.",
                "properties": { "today": reference("SavedDay"), "days": { "type": "array", "items": day() } },
            },
            "audit": {
                "type": "object",
                "required": ["enabled"],
                "properties": {
                    "enabled": { "type": "boolean" },
                    "durability": { "enum": ["group", "strict"], "description": "Whether an answer waits for the commit of its record." },
                    "whenFull": { "enum": ["block", "drop-and-count"] },
                    "waiting": whole("Records that are not on the disk yet."),
                    "accepts": { "type": "boolean", "description": "False while nothing can be recorded and calls are refused." },
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
            "errors": whole("Those of them that failed."),
            "tokensRaw": whole("Answers that went out compact, as their tools gave them."),
            "tokensSent": whole("The same as they went out."),
            "tokensFlat": whole("Menus that clients asked for, as they would have been with every tool in them."),
            "tokensMenu": whole("The same as they went out."),
            "tokensSaved": whole("What both spared together."),
        },
    })
}

fn day() -> Value {
    json!({
        "type": "object",
        "required": ["day", "calls", "errors", "tokensSaved"],
        "properties": {
            "day": { "type": "string", "format": "date", "description": "In UTC; the last 30, the oldest first." },
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
        "description": "Something that somebody should look at.",
        "properties": {
            "kind": { "enum": ["config", "module", "login", "account", "client", "pin", "audit"] },
            "name": text("The module, the key of the tool, or the id of the account or the client."),
            "message": { "type": "string" },
            "hint": text("What to do about it."),
        },
    })
}

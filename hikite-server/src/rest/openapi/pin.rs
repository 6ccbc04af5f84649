//! OpenAPI: tool definition pins.

use hikite_core::pin::Pinning;
use hikite_gateway::PinState;
use serde_json::{Value, json};

use super::operation::OpenApiOperation;
use crate::rest::pins::HASH_CHARS;

pub(super) fn operations() -> Vec<OpenApiOperation> {
    let of = |method, path, id, summary| OpenApiOperation {
        method,
        path,
        id,
        tag: "Pins",
        summary,
        parameters: vec![json!({ "$ref": "#/components/parameters/Pin" })],
        answer: (200, "The pin as it is now.", Some("PinDetail")),
        ..OpenApiOperation::NEW
    };
    let filter = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "query", "description": description, "schema": schema });
    vec![
        OpenApiOperation {
            parameters: vec![
                filter("state", "Those in this state alone.", states()),
                filter("module", "Those of this module alone.", json!({ "type": "string" })),
            ],
            answer: (200, "Every tool that is pinned or waits for it.", Some("Pins")),
            ..of("get", "/v1/pins", "listPins", "Lists which tools are approved, and which wait for it.")
        },
        of("get", "/v1/pins/{key}", "getPin", "Shows what was approved, what is offered now, and what differs."),
        OpenApiOperation {
            body: Some("PinApproval"),
            errors: &[404, 409],
            ..of("post", "/v1/pins/{key}/approve", "approvePin", "Approves the definition that was looked at.")
        },
        OpenApiOperation {
            errors: &[404, 409],
            ..of("post", "/v1/pins/{key}/block", "blockPin", "Holds a tool back until it is approved.")
        },
    ]
}

pub(super) fn parameter() -> Value {
    json!({
        "name": "key", "in": "path", "required": true,
        "description": "`module:tool`, or the tool's own name where only one has it; percent-encoded.",
        "schema": { "type": "string", "minLength": 1 }, "example": "files:write_file",
    })
}

pub(super) fn schemas() -> [(&'static str, Value); 4] {
    let listed = json!({ "type": "array", "items": { "$ref": "#/components/schemas/Pin" } });
    let approval = json!({
        "type": "object", "required": ["hash"], "additionalProperties": false,
        "properties": { "hash": hash("Of the definition that was looked at; if it changed since, the answer is 409.") },
    });
    [
        ("Pins", json!({ "type": "object", "required": ["pins"], "properties": { "pins": listed } })),
        ("Pin", pin()),
        ("PinDetail", detail()),
        ("PinApproval", approval),
    ]
}

fn pin() -> Value {
    let policies = [Pinning::Off, Pinning::Tofu, Pinning::Strict].map(Pinning::word);
    json!({
        "type": "object",
        "required": ["key", "module", "name", "state", "policy", "offered"],
        "properties": {
            "key": { "type": "string", "description": "`module:tool`." },
            "module": { "type": "string" },
            "name": { "type": "string", "description": "What its server calls it." },
            "state": states(),
            "policy": { "enum": policies, "description": "What holds for its module; `off` if that is not there." },
            "offered": { "type": "boolean", "description": "Whether its server has it now." },
            "hash": hash("Of the definition that is offered now."),
            "approvedHash": hash("Of the definition that was approved last."),
            "decidedAt": { "type": "string", "format": "date-time", "description": "When it was approved, blocked or first seen." },
        },
    })
}

fn detail() -> Value {
    let definition = |description: &str| json!({ "type": ["object", "null"], "description": description });
    let change = json!({
        "type": "object",
        "required": ["path"],
        "properties": {
            "path": { "type": "string", "description": "A JSON Pointer (RFC 6901)." },
            "before": { "description": "Left out if it was not there." },
            "after": { "description": "Left out if it is not there any more." },
        },
    });
    let more = json!({
        "type": "object",
        "required": ["before", "after", "diff"],
        "properties": {
            "before": definition("What was approved."),
            "after": definition("What is offered now."),
            "diff": { "type": "array", "items": change },
        },
    });
    json!({ "allOf": [{ "$ref": "#/components/schemas/Pin" }, more] })
}

fn states() -> Value {
    json!({
        "enum": PinState::ALL.map(PinState::word),
        "description": "`changed` and `new` wait for approval, `blocked` was blocked by somebody; none of these can be \
            called.",
    })
}

fn hash(description: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^[0-9a-f]{{{HASH_CHARS}}}$"), "description": description })
}

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
        answer: (200, "The changed pin.", Some("PinDetail")),
        ..OpenApiOperation::NEW
    };
    let filter = |name: &str, description: &str, schema: Value| json!({ "name": name, "in": "query", "description": description, "schema": schema });
    vec![
        OpenApiOperation {
            parameters: vec![
                filter("state", "Only pins in this state.", states()),
                filter("module", "Only pins of this module.", json!({ "type": "string" })),
            ],
            answer: (200, "All tools that are pinned or waiting for approval.", Some("Pins")),
            ..of("get", "/v1/pins", "listPins", "Lists approved tools and tools waiting for approval.")
        },
        of("get", "/v1/pins/{key}", "getPin", "Shows the approved and the current definition and their differences."),
        OpenApiOperation {
            body: Some("PinApproval"),
            errors: &[404, 409],
            ..of("post", "/v1/pins/{key}/approve", "approvePin", "Approves the reviewed definition.")
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
        "description": "`module:tool`, or the tool's own name if only one tool has it; percent-encoded.",
        "schema": { "type": "string", "minLength": 1 }, "example": "files:write_file",
    })
}

pub(super) fn schemas() -> [(&'static str, Value); 4] {
    let listed = json!({ "type": "array", "items": { "$ref": "#/components/schemas/Pin" } });
    let approval = json!({
        "type": "object", "required": ["hash"], "additionalProperties": false,
        "properties": { "hash": hash("Hash of the reviewed definition; 409 if the definition has changed since.") },
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
            "name": { "type": "string", "description": "Name on its server." },
            "state": states(),
            "policy": { "enum": policies, "description": "Pin policy of its module; `off` if the module does not exist." },
            "offered": { "type": "boolean", "description": "True if its server currently offers it." },
            "hash": hash("Hash of the current definition."),
            "approvedHash": hash("Hash of the last approved definition."),
            "decidedAt": { "type": "string", "format": "date-time", "description": "Time when it was approved, blocked or first seen." },
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
            "before": { "description": "Left out if it did not exist before." },
            "after": { "description": "Left out if it no longer exists." },
        },
    });
    let more = json!({
        "type": "object",
        "required": ["before", "after", "diff"],
        "properties": {
            "before": definition("The approved definition."),
            "after": definition("The current definition."),
            "diff": { "type": "array", "items": change },
        },
    });
    json!({ "allOf": [{ "$ref": "#/components/schemas/Pin" }, more] })
}

fn states() -> Value {
    json!({
        "enum": PinState::ALL.map(PinState::word),
        "description": "`changed` and `new` wait for approval, `blocked` was blocked by an admin; none of these can be called.",
    })
}

fn hash(description: &str) -> Value {
    json!({ "type": "string", "pattern": format!("^[0-9a-f]{{{HASH_CHARS}}}$"), "description": description })
}

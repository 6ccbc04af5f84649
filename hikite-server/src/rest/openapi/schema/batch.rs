//! What is sent to run a batch and what it answers.

use hikite_core::plan::{OnError, Status};
use hikite_core::risk::Risk;
use serde_json::{Map, Value, json};

use super::{milliseconds, moment, words};
use crate::rest::batch::CONCURRENCY_MAX;

pub(super) fn request() -> Value {
    json!({
        "type": "object",
        "required": ["commands"],
        "additionalProperties": false,
        "properties": {
            "commands": {
                "description": "The tasks; or text with one task per line.",
                "anyOf": [
                    { "type": "array", "items": { "$ref": "#/components/schemas/BatchTask" }, "minItems": 1 },
                    { "type": "string", "pattern": "\\{" },
                ],
            },
            "dry_run": { "type": "boolean", "default": false, "description": "Check everything and run nothing." },
            "concurrency": {
                "type": "integer", "minimum": 1, "maximum": CONCURRENCY_MAX,
                "description": "Calls that run at once; never more than `limits.batch_concurrency`.",
            },
            "on_error": on_error("What a failure means for the rest."),
        },
        "examples": [{
            "commands": [
                { "id": "notes", "module": "files", "tool": "read_file", "params": { "path": "notes.txt" } },
                {
                    "id": "again", "module": "files", "tool": "read_file",
                    "params": { "path": "${notes}" }, "after": "notes", "output": true,
                },
            ],
        }],
    })
}

pub(super) fn task() -> Value {
    let text = |description: &str| json!({ "type": "string", "description": description });
    json!({
        "type": "object",
        "required": ["id"],
        "additionalProperties": false,
        "anyOf": [
            { "required": ["module", "tool"] },
            { "required": ["toolKey"] },
        ],
        "properties": {
            "id": { "type": "string", "minLength": 1, "maxLength": 100, "pattern": "^[A-Za-z0-9_-]+$", "description": "How others refer to it." },
            "module": text("The module of the tool."),
            "tool": text("The tool's own name there."),
            "toolKey": { "type": "string", "pattern": "^[^:]+:.", "description": "`module:tool`, instead of both." },
            "params": { "type": "object", "description": "What the tool's `inputSchema` asks for. `${id.path}` in a text stands for a part of another task's result." },
            "after": {
                "description": "Ids of tasks that must have ended before.",
                "anyOf": [{ "type": "string" }, words()],
            },
            "output": { "type": "boolean", "description": "Give the result in the answer, in its compact form." },
            "raw_output": { "type": "boolean", "description": "Give the result in the answer, as it is." },
            "for_each": {
                "description": "A list, or a reference to one: the tool is run for each element, which is `${item}`.",
                "anyOf": [{ "type": "string" }, { "type": "array" }],
            },
            "if": text("A reference or a comparison; if it does not hold the task is skipped."),
            "select": text("The part of the result that is wanted: fields like `id,title`, or a jq program."),
            "on_error": on_error("What a failure of this task means for the rest."),
            "timeout_ms": { "type": "integer", "minimum": 1, "description": "Milliseconds the task may take." },
            "account": text("Whose credentials are used."),
        },
    })
}

fn on_error(description: &str) -> Value {
    let words: Vec<&str> = OnError::ALL.iter().map(|(word, _)| *word).collect();
    json!({ "enum": words, "default": "skip", "description": description })
}

pub(super) fn answer() -> Value {
    json!({
        "type": "object",
        "required": ["success", "result", "executionTime", "timestamp"],
        "properties": {
            "success": { "const": true },
            "result": {
                "anyOf": [
                    { "$ref": "#/components/schemas/BatchReport" },
                    { "$ref": "#/components/schemas/BatchPreview" },
                ],
            },
            "content": {
                "type": "array",
                "items": { "type": "object" },
                "description": "Pictures, sounds and resources that came beside the results, as the protocol has them.",
            },
            "executionTime": milliseconds("Milliseconds it took."),
            "timestamp": moment(),
        },
    })
}

pub(super) fn report() -> Value {
    let statuses = Status::ALL.map(Status::name);
    let counts: Map<String, Value> = statuses
        .into_iter()
        .map(|name| (name.to_owned(), json!({ "type": "integer", "minimum": 0 })))
        .collect();
    json!({
        "type": "object",
        "required": ["tasks", "summary"],
        "properties": {
            "tasks": {
                "type": "array",
                "description": "In the order they were given.",
                "items": {
                    "type": "object",
                    "required": ["id", "status", "ms"],
                    "properties": {
                        "id": { "type": "string" },
                        "status": { "enum": statuses },
                        "result": { "description": "Text for `output`, the value itself for `raw_output`." },
                        "error": {
                            "type": "object",
                            "required": ["code", "message"],
                            "properties": {
                                "code": { "type": "string" },
                                "message": { "type": "string" },
                                "hint": { "type": "string" },
                            },
                        },
                        "cause": { "type": "string", "description": "The task because of which it did not run, or `if`." },
                        "ms": milliseconds("Milliseconds it took."),
                    },
                },
            },
            "summary": { "type": "object", "required": statuses, "properties": counts },
        },
    })
}

pub(super) fn preview() -> Value {
    let risks = Risk::ALL.map(Risk::name);
    json!({
        "type": "object",
        "required": ["waves", "tasks"],
        "properties": {
            "waves": {
                "type": "array",
                "items": words(),
                "description": "The ids of tasks that run side by side; each waits for earlier ones alone.",
            },
            "tasks": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["id", "tool", "wave", "risk", "params", "after"],
                    "properties": {
                        "id": { "type": "string" },
                        "tool": { "type": "string", "description": "`module:tool`." },
                        "wave": { "type": "integer", "minimum": 0, "description": "Its place in `waves`." },
                        "risk": { "enum": risks },
                        "params": { "type": "object" },
                        "after": words(),
                    },
                },
            },
        },
    })
}

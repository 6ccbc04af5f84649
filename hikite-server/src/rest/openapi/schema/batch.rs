//! OpenAPI: schemas of batch requests and reports.

use hikite_core::plan::{OnError, TaskStatus};
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

/// Pattern of a task id: anything that can appear in a reference unescaped.
const ID: &str = concat!(
    r#"^[^\s.\[\]{}?"'\x00-\x1f\x7f-\x9f]"#,
    r#"([^.\[\]{}?"'\x00-\x1f\x7f-\x9f]*[^\s.\[\]{}?"'\x00-\x1f\x7f-\x9f])?$"#
);

/// Builds the schema of a task; `null` counts as absent.
pub(super) fn task() -> Value {
    let or_null = |kind: &str| json!([kind, "null"]);
    let text = |description: &str| json!({ "type": or_null("string"), "pattern": "\\S", "description": description });
    let flag = |description: &str| json!({ "type": or_null("boolean"), "description": description });
    let named = |name: &str| json!({ "required": [name], "properties": { name: { "type": "string" } } });
    json!({
        "type": "object",
        "required": ["id"],
        "additionalProperties": false,
        "anyOf": [{ "allOf": [named("module"), named("tool")] }, named("toolKey")],
        "properties": {
            "id": {
                "type": "string",
                "maxLength": 100,
                "pattern": ID,
                "not": { "enum": ["item", "index"] },
                "description": "How others refer to it; no two tasks have the same.",
            },
            "module": text("The module of the tool."),
            "tool": text("The tool's own name there."),
            "toolKey": {
                "type": or_null("string"),
                "pattern": r"^[^:]+:[\s\S]",
                "description": "`module:tool`, instead of both.",
            },
            "params": {
                "type": or_null("object"),
                "description": "What the tool's `inputSchema` asks for. `${id.path}` in a text stands for a part of another \
                    task's result. Text that holds such an object, or is one reference to one, is understood too.",
            },
            "after": {
                "description": "Ids of tasks that must have ended before.",
                "anyOf": [{ "type": or_null("string") }, words()],
            },
            "output": flag("Give the result in the answer, in its compact form."),
            "raw_output": flag("Give the result in the answer, as it is."),
            "for_each": {
                "description": "A list, or a reference to one: the tool is run for each element, which is `${item}`.",
                "anyOf": [{ "type": or_null("string"), "pattern": r"^\$\{" }, { "type": "array" }],
            },
            "if": {
                "type": ["string", "boolean", "null"],
                "description": "A reference or a comparison; if it does not hold the task is skipped.",
            },
            "select": text("The part of the result that is wanted: fields like `id,title`, or a jq program."),
            "on_error": { "anyOf": [on_error("What a failure of this task means for the rest."), { "type": "null" }] },
            "timeout_ms": {
                "type": or_null("integer"),
                "minimum": 1,
                "maximum": u32::MAX,
                "description": "Milliseconds each call of the task may take.",
            },
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
    let statuses = TaskStatus::ALL.map(TaskStatus::name);
    let counts: Map<String, Value> =
        statuses.into_iter().map(|name| (name.to_owned(), json!({ "type": "integer", "minimum": 0 }))).collect();
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
                        "params": { "type": ["object", "string"] },
                        "after": words(),
                    },
                },
            },
        },
    })
}

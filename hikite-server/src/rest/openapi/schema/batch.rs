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
                "description": "The tasks, or a string with one task per line.",
                "anyOf": [
                    { "type": "array", "items": { "$ref": "#/components/schemas/BatchTask" }, "minItems": 1 },
                    { "type": "string", "pattern": "\\{" },
                ],
            },
            "dry_run": { "type": "boolean", "default": false, "description": "Check the batch without running it." },
            "concurrency": {
                "type": "integer", "minimum": 1, "maximum": CONCURRENCY_MAX,
                "description": "Concurrent calls; never more than `limits.batch_concurrency`.",
            },
            "on_error": on_error("Effect of a failure on the other tasks."),
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
                "description": "Id for references; unique in the batch.",
            },
            "module": text("The module of the tool."),
            "tool": text("Name of the tool in the module."),
            "toolKey": {
                "type": or_null("string"),
                "pattern": r"^[^:]+:[\s\S]",
                "description": "`module:tool`, instead of both.",
            },
            "params": {
                "type": or_null("object"),
                "description": "Arguments that match the tool's `inputSchema`. `${id.path}` in a string inserts a part of another \
                 task's result. A string with such an object, or a reference to one, is accepted too.",
            },
            "after": {
                "description": "Ids of tasks that must finish first.",
                "anyOf": [{ "type": or_null("string") }, words()],
            },
            "output": flag("Return the result in compact form."),
            "raw_output": flag("Return the result unchanged."),
            "for_each": {
                "description": "A list, or a reference to one: the tool runs for each element, which is `${item}`.",
                "anyOf": [{ "type": or_null("string"), "pattern": r"^\$\{" }, { "type": "array" }],
            },
            "if": {
                "type": ["string", "boolean", "null"],
                "description": "A reference or a comparison; if it is false, the task is skipped.",
            },
            "select": text("Part of the result: fields such as `id,title`, or a jq program."),
            "on_error": { "anyOf": [on_error("Effect of a failure of this task on the other tasks."), { "type": "null" }] },
            "timeout_ms": {
                "type": or_null("integer"),
                "minimum": 1,
                "maximum": u32::MAX,
                "description": "Timeout of each call of the task in milliseconds.",
            },
            "account": text("Account to use."),
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
                "description": "Images, audio and resources in the results, as MCP content blocks.",
            },
            "executionTime": milliseconds("Duration in milliseconds."),
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
                "description": "In the order of the request.",
                "items": {
                    "type": "object",
                    "required": ["id", "status", "ms"],
                    "properties": {
                        "id": { "type": "string" },
                        "status": { "enum": statuses },
                        "result": { "description": "Text for `output`, the value for `raw_output`." },
                        "error": {
                            "type": "object",
                            "required": ["code", "message"],
                            "properties": {
                                "code": { "type": "string" },
                                "message": { "type": "string" },
                                "hint": { "type": "string" },
                            },
                        },
                        "cause": { "type": "string", "description": "The task that prevented it from running, or `if`." },
                        "ms": milliseconds("Duration in milliseconds."),
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
                "description": "Ids of tasks that run in parallel; each depends only on earlier waves.",
            },
            "tasks": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["id", "tool", "wave", "risk", "params", "after"],
                    "properties": {
                        "id": { "type": "string" },
                        "tool": { "type": "string", "description": "`module:tool`." },
                        "wave": { "type": "integer", "minimum": 0, "description": "Index in `waves`." },
                        "risk": { "enum": risks },
                        "params": { "type": ["object", "string"] },
                        "after": words(),
                    },
                },
            },
        },
    })
}

//! REST types: batch.

use hikite_core::json::Raw;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::schema::{never_null, object_or_string};

/// Maximum concurrency of a request; configured limits may be stricter.
pub const CONCURRENCY_MAX: u32 = 1000;

const ID: &str =
    r#"^[^\s.\[\]{}?"'\x00-\x1f\x7f-\x9f]([^.\[\]{}?"'\x00-\x1f\x7f-\x9f]*[^\s.\[\]{}?"'\x00-\x1f\x7f-\x9f])?$"#;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = never_null, extend("examples" = [{"commands": [{"id": "notes", "module": "files", "tool": "read_file", "params": {"path": "notes.txt"}}, {"id": "again", "module": "files", "tool": "read_file", "params": {"path": "${notes}"}, "after": "notes", "output": true}]}]))]
pub struct BatchRequest {
    /// The tasks, or a string with one task per line.
    #[schemars(schema_with = "commands")]
    pub commands: Raw,
    /// Check the batch without running it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub dry_run: Option<bool>,
    /// Concurrent calls; never more than `limits.batch_concurrency`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = CONCURRENCY_MAX))]
    pub concurrency: Option<u64>,
    /// Effect of a failure on the other tasks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["skip", "continue", "fail_fast"], "default" = "skip"))]
    pub on_error: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = tool_is_named)]
pub struct BatchTask {
    /// Id for references; unique in the batch.
    #[schemars(length(max = 100), extend("pattern" = ID, "not" = { "enum": ["item", "index"] }))]
    pub id: String,
    /// The module of the tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"\S"))]
    pub module: Option<String>,
    /// Name of the tool in the module.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"\S"))]
    pub tool: Option<String>,
    /// `module:tool`, instead of both.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"^[^:]+:[\s\S]"))]
    pub tool_key: Option<String>,
    /// Arguments that match the tool's `inputSchema`. `${id.path}` in a string inserts a part of another task's
    /// result. A string with such an object, or a reference to one, is accepted too.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub params: Option<Raw>,
    /// Ids of tasks that must finish first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "after")]
    pub after: Option<Raw>,
    /// Return the result in compact form.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<bool>,
    /// Return the result unchanged.
    #[serde(rename = "raw_output", skip_serializing_if = "Option::is_none")]
    pub raw_output: Option<bool>,
    /// A list, or a reference to one: the tool runs for each element, which is `${item}`.
    #[serde(rename = "for_each", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "for_each")]
    pub for_each: Option<Raw>,
    /// A reference or a comparison; if it is false, the task is skipped.
    #[serde(rename = "if", skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "condition")]
    pub condition: Option<Raw>,
    /// Part of the result: fields such as `id,title`, or a jq program.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"\S"))]
    pub select: Option<String>,
    /// Effect of a failure of this task on the other tasks.
    #[serde(rename = "on_error", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["skip", "continue", "fail_fast", null], "default" = "skip"))]
    pub on_error: Option<String>,
    /// Timeout of each call of the task in milliseconds.
    #[serde(rename = "timeout_ms", skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub timeout_ms: Option<u32>,
    /// Account to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"\S"))]
    pub account: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = never_null)]
pub struct BatchAnswer {
    #[schemars(extend("const" = true))]
    pub success: bool,
    #[schemars(with = "BatchOutcome")]
    pub result: Raw,
    /// Images, audio and resources in the results, as MCP content blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    pub content: Option<Vec<Raw>>,
    /// Duration in milliseconds.
    #[schemars(with = "f64", range(min = 0))]
    pub execution_time: Raw,
    #[schemars(extend("format" = "date-time", "examples" = ["2026-11-15T08:30:00.000Z"]))]
    pub timestamp: String,
}

/// The outcome of a batch that ran, or the plan of a dry run.
#[derive(Debug, JsonSchema)]
#[schemars(inline, untagged)]
pub enum BatchOutcome {
    Report(BatchReport),
    Preview(BatchPreview),
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct BatchReport {
    /// In the order of the request.
    pub tasks: Vec<BatchTaskReport>,
    pub summary: BatchSummary,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = never_null)]
pub struct BatchTaskReport {
    pub id: String,
    #[schemars(extend("enum" = ["ok", "error", "skipped", "timeout", "cancelled"]))]
    pub status: String,
    /// Text for `output`, the value for `raw_output`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub result: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<BatchTaskError>,
    /// The task that prevented it from running, or `if`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<String>,
    /// Duration in milliseconds.
    #[schemars(with = "f64", range(min = 0))]
    pub ms: Raw,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct BatchSummary {
    pub ok: u64,
    pub error: u64,
    pub skipped: u64,
    pub timeout: u64,
    pub cancelled: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = never_null)]
pub struct BatchTaskError {
    pub code: String,
    pub message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct BatchPreview {
    /// Ids of tasks that run in parallel; each depends only on earlier waves.
    pub waves: Vec<Vec<String>>,
    pub tasks: Vec<BatchTaskPreview>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct BatchTaskPreview {
    pub id: String,
    /// `module:tool`.
    pub tool: String,
    /// Index in `waves`.
    pub wave: u64,
    #[schemars(extend("enum" = ["read", "write", "destructive"]))]
    pub risk: String,
    #[schemars(schema_with = "object_or_string")]
    pub params: Raw,
    pub after: Vec<String>,
}

fn commands(generator: &mut SchemaGenerator) -> Schema {
    let tasks = generator.subschema_for::<BatchTask>();
    json_schema!({
        "anyOf": [{ "type": "array", "items": tasks, "minItems": 1 }, { "type": "string", "pattern": "\\{" }],
    })
}

fn after(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "type": ["string", "null"] }, { "type": "array", "items": { "type": "string" } }] })
}

fn for_each(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "type": ["string", "null"], "pattern": r"^\$\{" }, { "type": "array" }] })
}

fn condition(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "type": ["string", "boolean", "null"] })
}

/// A task has `module` and `tool`, or `toolKey`.
fn tool_is_named(schema: &mut Schema) {
    let named = |name: &str| json!({ "required": [name], "properties": { name: { "type": "string" } } });
    let either = json!([{ "allOf": [named("module"), named("tool")] }, named("toolKey")]);
    schema.insert("anyOf".into(), either);
}

//! REST types: project.

use hikite_core::json::Raw;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::schema::{closed, never_null, scopes};

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Me {
    #[schemars(extend("examples" = ["owner", "token:tok_abcd2345"]))]
    pub subject: String,
    /// Name of the user it acts for.
    pub user: Option<String>,
    /// Id of that user.
    pub user_id: Option<String>,
    /// The project it works in.
    pub project: Option<String>,
    #[schemars(schema_with = "scopes")]
    pub scopes: Vec<String>,
    /// Id of the token that was used.
    pub token: Option<String>,
    #[schemars(extend("format" = "date-time"))]
    pub expires_at: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Projects {
    pub projects: Vec<Project>,
}

/// A project: its settings as they were saved (`ProjectSettings`, or JSON), and where they are.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Project")]
pub struct Project<S = Map<String, Value>> {
    /// Letters, digits, `-`, `_` and `.`, but no `.` at the start.
    #[schemars(length(min = 1, max = 128), extend("examples" = ["work"]))]
    pub name: String,
    #[serde(flatten)]
    #[schemars(with = "ProjectSettings")]
    pub settings: S,
    #[schemars(extend("format" = "date-time"))]
    pub created_at: Option<String>,
    pub managed_by_file: bool,
}

/// The members of a project that can be set.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ProjectSettings {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 2000))]
    pub description: Option<String>,
    /// Members of the project: users by name or id, and other subjects. If empty, everybody with a token for the
    /// project.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 1000), inner(length(min = 1)))]
    pub members: Option<Vec<String>>,
    /// Visible tools: `allow` and `deny`, lists of modules, tools, patterns and risks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub permissions: Option<Map<String, Value>>,
    /// Surfaces that its clients see.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "surfaces")]
    pub surface: Option<Value>,
    /// Search mode; null disables search.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = [null, "bm25", "hybrid", "cloud"]))]
    pub optimization: Option<Value>,
    /// Result format of `call` and `tool_execute` if a call does not set one; if left out, results are unchanged.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = [null, "compact", "raw"]))]
    pub format: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = closed)]
pub struct ProjectForm {
    #[serde(flatten)]
    pub settings: ProjectSettings,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = closed)]
pub struct NewProject {
    /// Letters, digits, `-`, `_` and `.`, but no `.` at the start.
    #[schemars(length(min = 1, max = 128), extend("examples" = ["work"]))]
    pub name: String,
    #[serde(flatten)]
    pub settings: ProjectSettings,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = never_null)]
pub struct Menu {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    pub surfaces: Vec<String>,
    /// As in `tools/list`.
    #[schemars(with = "Vec<Map<String, Value>>")]
    pub tools: Vec<Raw>,
    /// Token cost for a model.
    pub tokens: u64,
    /// Token cost of a list of all tools.
    pub flat_tokens: u64,
    /// The tokenizer that was used, or `estimate`.
    pub counter: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{"permissions": {"allow": ["files"], "deny": ["risk:destructive"]}}]))]
pub struct PermissionsRequest {
    /// As in a project: lists of modules, tools, patterns and risks.
    #[schemars(schema_with = "permissions")]
    pub permissions: Raw,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct PermissionsAnswer {
    pub visible: Vec<String>,
    pub hidden: Vec<String>,
}

fn surfaces(_: &mut SchemaGenerator) -> Schema {
    let surface = json!({ "enum": ["categories", "direct", "modules", "search"] });
    json_schema!({ "anyOf": [{ "type": "null" }, surface, { "type": "array", "minItems": 1, "items": surface }] })
}

fn permissions(_: &mut SchemaGenerator) -> Schema {
    let list = json!({ "type": ["array", "null"], "items": { "type": ["string", "object"] } });
    json_schema!({ "type": "object", "properties": { "allow": list, "deny": list } })
}

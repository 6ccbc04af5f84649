//! REST types: module.

use hikite_core::json::Raw;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schema::never_null;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Modules {
    pub modules: Vec<Module>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = never_null)]
pub struct Module {
    pub name: String,
    pub title: String,
    pub description: String,
    /// Source of its tools; unknown for a module that is disabled in the config file.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["stdio", "http", "sse", "service", "registered", "program"]))]
    pub kind: Option<String>,
    /// Where it can be changed: in the config file, with this API, or in the program that embeds hikite.
    #[schemars(extend("enum" = ["file", "store", "program"]))]
    pub managed_by: String,
    /// Disabled modules are only listed for admins.
    pub enabled: bool,
    #[schemars(extend("enum" = ["idle", "starting", "running", "failing", "needs_login", "disabled"]))]
    pub state: String,
    /// Reason of the failure, or how to log in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// State of the circuit breaker; `open` means that calls to the server or with an account are paused. The worst
    /// of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["closed", "open", "half-open"]))]
    pub breaker: Option<String>,
    /// Accounts whose circuit breaker is not closed, among those that the caller may use; all for admins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accounts: Option<Vec<ModuleAccount>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    /// Number of tools; the next two are counts as well.
    pub tools: u64,
    /// Resources.
    pub resources: u64,
    /// Prompts.
    pub prompts: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub calls: Option<Calls>,
    /// Address of a remote server with secrets masked; for admins, only for a single module.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Program that is started; same restriction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    /// Its arguments with secrets masked; same restriction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub args: Option<Vec<String>>,
    /// The last lines of its stderr; same restriction.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stderr: Option<Vec<String>>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ModuleAccount {
    /// `provider/name`, and the owner if it belongs to somebody else.
    pub account: String,
    #[schemars(extend("enum" = ["open", "half-open"]))]
    pub breaker: String,
}

/// Call statistics of this process; for admins.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Calls {
    /// Calls in the last minute.
    pub per_minute: u64,
    /// Share of failed calls in the last 15 minutes.
    #[schemars(range(min = 0, max = 1))]
    pub error_rate: f64,
    /// Median duration of the calls in the last 15 minutes; null without calls.
    #[schemars(range(min = 0))]
    pub p50_ms: Option<f64>,
    /// 99th percentile of the duration.
    #[schemars(range(min = 0))]
    pub p99_ms: Option<f64>,
    /// Calls since the start.
    pub total: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Categories {
    pub categories: Vec<Category>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = never_null)]
pub struct Category {
    pub name: String,
    pub description: String,
    /// Where it can be changed: in the config file, with this API, or in the program that embeds hikite.
    #[schemars(extend("enum" = ["file", "store", "program"]))]
    pub managed_by: String,
    pub modules: Vec<String>,
    pub tools: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<CategoryForm>")]
    pub form: Option<Raw>,
}

/// The members of an entry of `categories` of the config.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = never_null, extend("examples" = [{"description": "Reading files", "server": "files"}]))]
pub struct CategoryForm {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// The module or modules of the tools.
    #[schemars(schema_with = "one_or_more")]
    pub server: Raw,
    /// Selection of tools; all by default.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub tools: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub skill: Option<String>,
}

fn one_or_more(_: &mut SchemaGenerator) -> Schema {
    json_schema!({ "anyOf": [{ "type": "string" }, { "type": "array", "minItems": 1, "items": { "type": "string" } }] })
}

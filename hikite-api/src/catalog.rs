//! REST types: catalog.

use hikite_core::json::Raw;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::schema::never_null;
use crate::tool::QUERY_CHARS;

pub const TOOLS_MAX: usize = 20_000;
pub const QUERIES_MAX: usize = 20;
pub const RESULTS_DEFAULT: u32 = 10;
pub const RESULTS_MAX: u32 = 50;
pub const CONTEXT_CHARS: usize = 8000;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = never_null, extend("examples" = [{"query": ["read a file"], "tools": [{"toolKey": "fs:read_file", "toolName": "read_file", "serverName": "fs"}]}]))]
pub struct CatalogRequest {
    /// Description of the wanted tool, in one or more phrasings.
    #[schemars(schema_with = "query")]
    pub query: Raw,
    /// The surrounding task.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = CONTEXT_CHARS))]
    pub context: Option<String>,
    /// The tools to choose from.
    #[schemars(length(max = TOOLS_MAX))]
    pub tools: Vec<CatalogTool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = RESULTS_MAX), extend("default" = RESULTS_DEFAULT))]
    pub max_results: Option<u64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CatalogTool {
    pub tool_key: String,
    pub tool_name: String,
    pub server_name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = never_null)]
pub struct CatalogAnswer {
    pub results: Vec<CatalogMatch>,
    /// Details of the match, in `hikite/search`.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub meta: Option<Raw>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, transform = never_null)]
pub struct CatalogMatch {
    #[serde(flatten)]
    pub tool: CatalogTool,
    #[schemars(range(min = 0, max = 1))]
    pub relevance: f64,
    /// Explanation of the match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
}

fn query(_: &mut SchemaGenerator) -> Schema {
    let query = json!({ "type": "string", "minLength": 1, "maxLength": QUERY_CHARS, "pattern": "\\S" });
    json_schema!({
        "anyOf": [query, { "type": "array", "items": query, "minItems": 1, "maxItems": QUERIES_MAX }],
    })
}

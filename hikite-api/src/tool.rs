//! REST types: tool.

use hikite_core::json::Raw;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schema::never_null;

/// Maximum page number.
pub const PAGE_MAX: u32 = 1_000_000;
pub const LIMIT_MAX: u32 = 100;
pub const LIMIT: u32 = 50;
pub const SEARCH_LIMIT: u32 = 20;
/// Maximum characters of a query.
pub const QUERY_CHARS: usize = 1000;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = never_null)]
pub struct Tool {
    /// `module:tool`; identifies the tool everywhere.
    pub key: String,
    pub name: String,
    pub module: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<String>")]
    pub title: Option<Raw>,
    pub description: String,
    /// For admins, only for a single tool: texts that override the tool's own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub overrides: Option<Raw>,
    /// For admins, only for a single tool: the tool's own texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub original: Option<Raw>,
    /// The JSON Schema of its parameters.
    #[schemars(with = "Map<String, Value>")]
    pub input_schema: Raw,
    /// The JSON Schema of its result.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub output_schema: Option<Raw>,
    /// Annotations of the tool, for example `readOnlyHint`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub annotations: Option<Raw>,
    /// Its own version, or that of its server.
    pub version: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    pub tags: Vec<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub author: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub examples: Option<Vec<Example>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dependencies: Option<Vec<String>>,
    pub enabled: bool,
    /// Reason why it cannot be called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_reason: Option<String>,
    #[schemars(extend("format" = "date-time", "examples" = ["2026-11-15T08:30:00.000Z"]))]
    pub registered_at: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = never_null)]
pub struct Example {
    pub description: String,
    #[schemars(with = "Map<String, Value>")]
    pub parameters: Raw,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub expected_result: Option<Raw>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ToolPage {
    pub tools: Vec<Tool>,
    pub pagination: Pagination,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Pagination {
    #[schemars(range(min = 1))]
    pub page: u64,
    #[schemars(range(min = 1))]
    pub limit: u64,
    pub total: u64,
    pub total_pages: u64,
}

#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(transform = never_null)]
pub struct FoundTool {
    #[serde(flatten)]
    pub tool: Tool,
    /// Relevance.
    #[schemars(range(min = 0, max = 1))]
    pub relevance: f64,
    /// `true` if it fits poorly.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub weak: Option<bool>,
    /// Explanation of the match.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = never_null, extend("examples" = [{"query": "read a file", "filters": {"tags": ["files"]}, "limit": 5}]))]
pub struct SearchRequest {
    #[schemars(length(min = 1, max = QUERY_CHARS), extend("pattern" = r"\S"))]
    pub query: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub filters: Option<SearchFilters>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = LIMIT_MAX), extend("default" = SEARCH_LIMIT))]
    pub limit: Option<u64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = never_null)]
pub struct SearchFilters {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub category: Option<String>,
    /// A tool must have all of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tags: Option<Vec<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, JsonSchema)]
#[schemars(transform = never_null)]
pub struct SearchAnswer {
    pub query: String,
    pub results: Vec<FoundTool>,
    /// Number of matches, shown or not.
    pub total: u64,
    /// Tools that fit better than all results, of services to which no account is connected. They cannot be called yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub needs: Option<Vec<NeededAccount>>,
    /// Advice if nothing fits well.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Details of the search, in `hikite/search`: `provider`, `fallback`, `indexed`, `total`, and `unencoded` while tools
    /// cannot be found by meaning yet.
    #[serde(rename = "_meta", skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub meta: Option<Raw>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(inline)]
pub struct NeededAccount {
    pub module: String,
    /// `module:tool`.
    pub tool: String,
    /// Instructions for connecting an account.
    pub how: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{"title": "Read a file", "description": null}]))]
pub struct ToolTexts {
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 200), extend("pattern" = r"\S"))]
    pub title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10000), extend("pattern" = r"\S"))]
    pub description: Option<String>,
}

//! REST types: upstream.

use hikite_core::json::Raw;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schema::{never_null, object_or_string};

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Upstreams {
    pub upstreams: Vec<Upstream>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Upstream {
    pub name: String,
    /// Where it can be changed: in the config file, with this API, or in the program that embeds hikite.
    #[schemars(extend("enum" = ["file", "store", "program"]))]
    pub managed_by: String,
    #[schemars(extend("enum" = ["stdio", "http", "sse"]))]
    pub kind: String,
    /// As in `mcpServers` of the config, secrets shown as `***`.
    #[schemars(with = "Map<String, Value>")]
    pub entry: Raw,
}

/// The members of an entry of `mcpServers` with a `url`, without variables and files. `***` keeps the stored value.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = never_null, extend("examples" = [{"url": "https://mcp.example.com/mcp", "description": "Documents", "headers": {"Authorization": "Bearer abc"}}]))]
pub struct UpstreamEntry {
    #[schemars(extend("examples" = ["https://mcp.example.com/mcp"]))]
    pub url: String,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["http", "streamable-http", "streamableHttp", "sse"]))]
    pub kind: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Sent with every request; stored in the vault.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub headers: Option<Raw>,
    /// Timeout of one call: seconds, or `30s`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub timeout: Option<Raw>,
    /// Login settings that cannot be discovered.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub auth: Option<Raw>,
    /// Selection of its tools.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub tools: Option<Raw>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = never_null, extend("examples" = [{"config": {"mcpServers": {"docs": {"url": "https://mcp.example.com/mcp"}}}, "apply": false}]))]
pub struct ImportRequest {
    /// The config of a client (`mcpServers`, `servers`, `context_servers`) as an object, or as text with optional
    /// comments.
    #[schemars(schema_with = "object_or_string")]
    pub config: Raw,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("default" = false))]
    pub apply: Option<bool>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct ImportAnswer {
    pub entries: Vec<ImportEntry>,
    pub applied: Vec<String>,
    pub notes: Vec<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = never_null)]
pub struct ImportEntry {
    pub name: String,
    #[schemars(extend("enum" = ["http", "stdio"]))]
    pub kind: String,
    /// `file`: the name is used by the config file or another module.
    #[schemars(extend("enum" = ["add", "change", "same", "file", "refused"]))]
    pub action: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub before: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub after: Option<Raw>,
    /// Command to run on the machine for a local program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub command: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

//! REST types: status.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::module::Calls;
use crate::schema::never_null;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    #[schemars(extend("const" = "ok"))]
    pub status: String,
    pub message: String,
    #[schemars(extend("const" = "hikite"))]
    pub name: String,
    pub version: String,
    /// Uptime in seconds.
    #[schemars(range(min = 0))]
    pub uptime: f64,
    #[schemars(extend("format" = "date-time", "examples" = ["2026-11-15T08:30:00.000Z"]))]
    pub timestamp: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub version: String,
    /// Uptime of this process in seconds.
    pub uptime_seconds: u64,
    /// Open MCP sessions in this process.
    pub sessions: u64,
    pub calls: Calls,
    /// Tokens saved for models, over all processes on the store; estimated.
    pub saved: SavedTokens,
    pub audit: AuditStatus,
    pub attention: Vec<Concern>,
}

/// Tokens saved for models, over all processes on the store; estimated.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct SavedTokens {
    pub today: SavedDay,
    pub days: Vec<SavedDaySummary>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = never_null)]
pub struct AuditStatus {
    pub enabled: bool,
    /// Sets if a response waits until its audit record is committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["group", "strict"]))]
    pub durability: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["block", "drop-and-count"]))]
    pub when_full: Option<String>,
    /// Records not yet on disk.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub waiting: Option<u64>,
    /// False while no records can be written and calls are rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub accepts: Option<bool>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SavedDaySummary {
    /// In UTC; the last 30 days, oldest first.
    #[schemars(extend("format" = "date"))]
    pub day: String,
    /// As above.
    pub calls: u64,
    /// As above.
    pub errors: u64,
    /// As above.
    pub tokens_saved: u64,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SavedDay {
    /// Calls of tools, resources and prompts.
    pub calls: u64,
    /// Failed calls among them.
    pub errors: u64,
    /// Tokens of the results before compaction.
    pub tokens_raw: u64,
    /// Tokens of the same results as sent.
    pub tokens_sent: u64,
    /// Tokens of the tool lists if they had contained every tool.
    pub tokens_flat: u64,
    /// Tokens of the same tool lists as sent.
    pub tokens_menu: u64,
    /// Sum of the tokens saved.
    pub tokens_saved: u64,
}

/// Something that needs attention.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Concern {
    #[schemars(extend("enum" = ["config", "module", "login", "account", "client", "pin", "audit"]))]
    pub kind: String,
    /// The module, the key of the tool, or the id of the account or the client.
    pub name: String,
    pub message: String,
    /// Advice on how to resolve it.
    pub hint: String,
}

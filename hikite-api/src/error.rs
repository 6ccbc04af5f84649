//! REST types: error.

use hikite_core::error::TABLE;
use hikite_core::json::Raw;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::schema::never_null;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(rename = "Error", transform = never_null, extend("examples" = [{"success": false, "error": "Tool not found: files:raed_file", "code": "TOOL_NOT_FOUND", "hint": "Did you mean `files:read_file`?", "requestId": "0af7651916cd43dd8448eb211c80319c", "executionTime": 0.041, "timestamp": "2026-11-15T08:30:00.000Z"}]))]
pub struct ErrorAnswer {
    #[schemars(extend("const" = false))]
    pub success: bool,
    /// Error message.
    pub error: String,
    #[schemars(extend("enum" = TABLE.iter().map(|definition| definition.code).collect::<Vec<_>>()))]
    pub code: String,
    /// Advice on the next step.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Fault>>")]
    pub details: Option<Raw>,
    /// The schema that the parameters must match.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Value>")]
    pub schema: Option<Raw>,
    pub request_id: String,
    /// Duration in milliseconds, if a tool was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<f64>", range(min = 0))]
    pub execution_time: Option<Raw>,
    #[schemars(extend("format" = "date-time", "examples" = ["2026-11-15T08:30:00.000Z"]))]
    pub timestamp: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct Fault {
    /// A JSON Pointer into the request; empty for the whole.
    pub pointer: String,
    pub message: String,
}

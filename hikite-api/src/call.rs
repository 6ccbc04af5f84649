//! REST types: call.

use hikite_core::json::Raw;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::schema::never_null;

pub const NAME_CHARS: usize = 512;
/// Maximum values of a request; configured limits may be stricter.
pub const TIMEOUT_MS_MAX: u32 = 3_600_000;
pub const RETRY_MAX: u32 = 10;
pub const DELAY_MS_MAX: u32 = 60_000;
pub const SELECT_CHARS: usize = 4000;
/// Format that returns the value together with the compact text for a model.
pub const BOTH: &str = "both";

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(transform = never_null, extend("examples" = [{"name": "files:read_file", "parameters": {"path": "notes.txt"}, "options": {"timeout": 5000}}]))]
pub struct CallRequest {
    /// The tool's key, or its bare name if only one tool has it; or the address of a stored result.
    #[schemars(length(min = 1, max = NAME_CHARS))]
    pub name: String,
    /// Arguments that match the tool's `inputSchema`, as an object or as a string with the object.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Map<String, Value>>")]
    pub parameters: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub options: Option<CallRequestOptions>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schemars(transform = never_null)]
pub struct CallRequestOptions {
    /// Timeout of the call in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = TIMEOUT_MS_MAX))]
    pub timeout: Option<u64>,
    /// Number of retries; only tools that are read-only or idempotent are retried.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = RETRY_MAX))]
    pub retry: Option<u64>,
    /// Milliseconds before the first retry; later ones wait longer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(max = DELAY_MS_MAX))]
    pub retry_delay: Option<u64>,
    /// `compact`: `result` is a short text for a model, described by `answer`; `raw` (default): the value; `both`:
    /// the value, and the text in `compact`.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("enum" = ["compact", "raw", BOTH]))]
    pub format: Option<String>,
    /// Account to use if a service has several.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = NAME_CHARS))]
    pub account: Option<String>,
    /// Part of the result: fields (`number,title,user.login`), a path (`.items[0]`) or a jq program.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = SELECT_CHARS), extend("pattern" = r"\S", "examples" = ["number,title,user.login", ".items | length"]))]
    pub select: Option<String>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = never_null)]
pub struct CallAnswer {
    #[schemars(extend("const" = true))]
    pub success: bool,
    /// The structured result of the tool, or its text, parsed if it is JSON.
    #[schemars(with = "Value")]
    pub result: Raw,
    /// Images, audio and resources in the result, as MCP content blocks.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<Vec<Map<String, Value>>>")]
    pub content: Option<Vec<Raw>>,
    /// Start of the next part of a list: the parameter `cursor` of the same tool.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
    /// With the format `both`: the text for a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub compact: Option<String>,
    /// For a compact result: its format, its bytes before and after, and the address of the full result if something
    /// was left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<CompactInfo>")]
    pub answer: Option<Raw>,
    /// Duration in milliseconds.
    #[schemars(with = "f64", range(min = 0))]
    pub execution_time: Raw,
    #[schemars(extend("format" = "date-time", "examples" = ["2026-11-15T08:30:00.000Z"]))]
    pub timestamp: String,
}

/// For a compact result: its format, its bytes before and after, and the address of the full result if something was
/// left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = never_null)]
pub struct CompactInfo {
    #[schemars(extend("enum" = ["toon", "json", "text"]))]
    pub form: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 2))]
    pub bytes: Option<Vec<u64>>,
    /// Call it like a tool, with the parameter `page`, `jq` or `search`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handle: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub page: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub pages: Option<u64>,
}

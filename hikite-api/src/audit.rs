//! REST types: audit.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::schema::never_null;

pub const LIMIT: u32 = 100;
pub const LIMIT_MAX: u32 = 1000;
/// Filter parameters, besides the time.
pub const FILTERS: [&str; 10] =
    ["kind", "decision", "outcome", "requestId", "subject", "project", "module", "tool", "actor", "text"];
/// Maximum characters of a text filter.
pub const TEXT_CHARS: usize = 200;

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = never_null)]
pub struct AuditPage {
    pub records: Vec<AuditRecord>,
    /// `before` (or `after`) for the next page, if there is one. A page may have fewer records than requested, or
    /// none, and still have a next page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Members that do not apply are left out.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(transform = never_null)]
pub struct AuditRecord {
    /// Sequence number without gaps.
    pub seq: u64,
    /// Start time in milliseconds since 1970.
    pub at: u64,
    #[schemars(extend("enum" = ["call", "read", "subscribe", "prompt", "complete", "task", "batch", "search", "admin", "identity", "lost", "trim"]))]
    pub kind: String,
    #[schemars(extend("enum" = ["allowed", "refused"]))]
    pub decision: String,
    /// `ok`, `tool_error`, `cancelled`, or the code of the error.
    pub outcome: String,
    /// Id of the request in logs and traces.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<String>,
    /// The caller.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub subject: Option<String>,
    /// Id of the user, never reused.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_id: Option<String>,
    /// Name of the user at that time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Id of the token that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub token: Option<String>,
    /// Name and version of the client, `name/version`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client: Option<String>,
    /// The project it worked in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// Account that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub account: Option<String>,
    /// Number of the session; restarts with the program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<u64>,
    /// The surface that was used.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub surface: Option<String>,
    /// The MCP method, or the action of an admin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// The module that was called.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// The tool, by its own name if it was found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Description of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub what: Option<String>,
    /// SHA-256 of the canonical JSON of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"^[0-9a-f]{64}$"))]
    pub arguments_hash: Option<String>,
    /// Duration.
    #[schemars(range(min = 0))]
    pub ms: f64,
    /// Number of attempts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempts: Option<u64>,
    /// The result came from the cache.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cached: Option<bool>,
    /// Bytes of the arguments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_in: Option<u64>,
    /// Bytes of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_out: Option<u64>,
    /// An estimate from the bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tokens_estimated: Option<u64>,
    /// The search provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// Number of queries of a search.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries: Option<u64>,
    /// SHA-256 of the canonical JSON of the queries.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"^[0-9a-f]{64}$"))]
    pub queries_hash: Option<String>,
    /// Number of search results.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub results: Option<u64>,
    /// Records lost since the last record with this member.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<u64>,
    /// Trace of the request, if there was one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trace_id: Option<String>,
    /// For a trim: number of records removed from the start of the chain.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trimmed: Option<u64>,
    /// Number of the last removed record.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trimmed_to: Option<u64>,
    /// Its hash.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("pattern" = r"^[0-9a-f]{64}$"))]
    pub trimmed_hash: Option<String>,
    /// SHA-256 of the previous hash and the record.
    #[schemars(extend("pattern" = r"^[0-9a-f]{64}$"))]
    pub hash: String,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = never_null)]
pub struct AuditVerdict {
    pub intact: bool,
    /// Number of verified records.
    pub records: u64,
    /// The chain starts after this record.
    pub first: u64,
    /// The last verified record.
    pub last: u64,
    /// Its hash; store it elsewhere.
    pub hash: String,
    /// Trim of the records up to `first`; left out if none were removed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trimmed: Option<AuditTrim>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub broken: Option<AuditBreak>,
}

/// Trim of the records up to `first`; left out if none were removed.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[schemars(transform = never_null)]
pub struct AuditTrim {
    /// The last removed record.
    pub to: u64,
    /// The record of the trim; earlier versions wrote none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub record: Option<u64>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
pub struct AuditBreak {
    /// The first record that fails the verification.
    pub seq: u64,
    pub problem: String,
}

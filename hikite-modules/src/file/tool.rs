//! Tools of a module file: parameters, requests and output.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{LocalizedText, NamedMap, OutputFiles, PaginationUsage};

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ServiceToolFile {
    pub(crate) risk: RiskFile,
    pub(crate) description: LocalizedText,
    /// Groups of parameters that come before its own.
    #[serde(default)]
    pub(crate) group: Option<GroupNames>,
    /// `"string! | What it is"`, or a JSON Schema in which `required: true` may stand.
    #[serde(default)]
    pub(crate) params: NamedMap<Value>,
    /// Exactly one of these must be given.
    #[serde(default)]
    pub(crate) one_of: Vec<String>,
    /// jq that gives the answer without any request.
    #[serde(default)]
    pub(crate) compute: Option<String>,
    /// Requests of which the first whose `when` holds is sent.
    #[serde(default)]
    pub(crate) choose: Vec<BranchFile>,
    /// Several requests; those that do not name each other are sent side by side.
    #[serde(default)]
    pub(crate) steps: Vec<StepFile>,
    /// The request of a tool that always sends the same one.
    #[serde(default)]
    pub(crate) request: Option<ServiceRequestFile>,
    #[serde(default)]
    pub(crate) pages: Option<PaginationUsage>,
    #[serde(default)]
    pub(crate) recurse: Option<RecursionFile>,
    #[serde(default)]
    pub(crate) chunk: Option<ChunkFile>,
    /// jq on the answer, before anything else sees it.
    #[serde(default)]
    pub(crate) result: Option<String>,
    #[serde(default)]
    pub(crate) out: Option<OutputFiles>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RiskFile {
    Read,
    Write,
    Destructive,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum GroupNames {
    One(String),
    Several(Vec<String>),
}

/// One request with what belongs to it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BranchFile {
    /// jq: whether it is sent.
    #[serde(default)]
    pub(crate) when: Option<String>,
    pub(crate) request: ServiceRequestFile,
    #[serde(default)]
    pub(crate) pages: Option<PaginationUsage>,
    #[serde(default)]
    pub(crate) recurse: Option<RecursionFile>,
    #[serde(default)]
    pub(crate) chunk: Option<ChunkFile>,
    #[serde(default)]
    pub(crate) result: Option<String>,
    #[serde(default)]
    pub(crate) out: Option<OutputFiles>,
}

/// A request whose answer others may use as `$id`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StepFile {
    pub(crate) id: String,
    /// jq: whether it is sent; else its answer is null.
    #[serde(default)]
    pub(crate) when: Option<String>,
    /// jq: a list, for each element of which (`$each`) it is sent once; the answer is a list.
    #[serde(default)]
    pub(crate) each: Option<String>,
    /// Values by names of their own.
    #[serde(default, rename = "let")]
    pub(crate) values: NamedMap<String>,
    pub(crate) request: ServiceRequestFile,
    #[serde(default)]
    pub(crate) pages: Option<PaginationUsage>,
    #[serde(default)]
    pub(crate) recurse: Option<RecursionFile>,
    #[serde(default)]
    pub(crate) chunk: Option<ChunkFile>,
    #[serde(default)]
    pub(crate) result: Option<String>,
}

/// One of the methods with its path, and what goes along. In values `$name` is a variable and `=…` is jq.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ServiceRequestFile {
    #[serde(rename = "GET")]
    pub(crate) get: Option<String>,
    #[serde(rename = "POST")]
    pub(crate) post: Option<String>,
    #[serde(rename = "PUT")]
    pub(crate) put: Option<String>,
    #[serde(rename = "PATCH")]
    pub(crate) patch: Option<String>,
    #[serde(rename = "DELETE")]
    pub(crate) delete: Option<String>,
    pub(crate) query: NamedMap<Value>,
    pub(crate) headers: NamedMap<String>,
    pub(crate) body: Option<Value>,
    pub(crate) answer: ResponseFormat,
    /// Refusals that mean null.
    pub(crate) allow: Vec<u16>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ResponseFormat {
    #[default]
    Json,
    /// Whatever it is, as text.
    Text,
    /// JSON if the answer says that it is, else text.
    Auto,
    /// Files, each with name, type and text.
    Multipart,
}

/// Elements that have lists of their own, which are fetched, too.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RecursionFile {
    /// jq on an element: whether it has more below it.
    #[serde(rename = "where")]
    pub(crate) holds: String,
    /// The request for what is below `$item`.
    pub(crate) request: ServiceRequestFile,
    /// The way of paging of that request.
    #[serde(default)]
    pub(crate) pages: Option<String>,
    /// The member of the element that takes it.
    pub(crate) into: String,
    pub(crate) depth: usize,
}

/// A list in the body that is sent in parts, one after the other.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ChunkFile {
    /// The member of the body.
    pub(crate) of: String,
    pub(crate) size: usize,
    /// A plain path to the list in each answer; they are joined.
    pub(crate) join: String,
}

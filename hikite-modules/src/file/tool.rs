//! Tools of a module file: parameters, requests and output.

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{Named, Outs, Text, Usage};

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToolFile {
    pub(crate) risk: RiskWord,
    pub(crate) description: Text,
    /// Groups of parameters that come before its own.
    #[serde(default)]
    pub(crate) group: Option<Groups>,
    /// `"string! | What it is"`, or a JSON Schema in which `required: true` may stand.
    #[serde(default)]
    pub(crate) params: Named<Value>,
    /// Exactly one of these must be given.
    #[serde(default)]
    pub(crate) one_of: Vec<String>,
    /// jq that gives the answer without any request.
    #[serde(default)]
    pub(crate) compute: Option<String>,
    /// Requests of which the first whose `when` holds is sent.
    #[serde(default)]
    pub(crate) choose: Vec<Branch>,
    /// Several requests; those that do not name each other are sent side by side.
    #[serde(default)]
    pub(crate) steps: Vec<Step>,
    /// What is sent, where there is nothing to choose.
    #[serde(default)]
    pub(crate) request: Option<RequestFile>,
    #[serde(default)]
    pub(crate) pages: Option<Usage>,
    #[serde(default)]
    pub(crate) recurse: Option<Recursion>,
    #[serde(default)]
    pub(crate) chunk: Option<Chunk>,
    /// jq on the answer, before anything else sees it.
    #[serde(default)]
    pub(crate) result: Option<String>,
    #[serde(default)]
    pub(crate) out: Option<Outs>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum RiskWord {
    Read,
    Write,
    Destructive,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Groups {
    One(String),
    Several(Vec<String>),
}

/// One request with what belongs to it.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Branch {
    /// jq: whether it is sent.
    #[serde(default)]
    pub(crate) when: Option<String>,
    pub(crate) request: RequestFile,
    #[serde(default)]
    pub(crate) pages: Option<Usage>,
    #[serde(default)]
    pub(crate) recurse: Option<Recursion>,
    #[serde(default)]
    pub(crate) chunk: Option<Chunk>,
    #[serde(default)]
    pub(crate) result: Option<String>,
    #[serde(default)]
    pub(crate) out: Option<Outs>,
}

/// A request whose answer others may use as `$id`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    pub(crate) id: String,
    /// jq: whether it is sent; else its answer is null.
    #[serde(default)]
    pub(crate) when: Option<String>,
    /// jq: a list, for each element of which (`$each`) it is sent once; the answer is a list.
    #[serde(default)]
    pub(crate) each: Option<String>,
    /// Values by names of their own.
    #[serde(default, rename = "let")]
    pub(crate) values: Named<String>,
    pub(crate) request: RequestFile,
    #[serde(default)]
    pub(crate) pages: Option<Usage>,
    #[serde(default)]
    pub(crate) recurse: Option<Recursion>,
    #[serde(default)]
    pub(crate) chunk: Option<Chunk>,
    #[serde(default)]
    pub(crate) result: Option<String>,
}

/// One of the methods with its path, and what goes along. In values `$name` is a variable and `=…` is jq.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RequestFile {
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
    pub(crate) query: Named<Value>,
    pub(crate) headers: Named<String>,
    pub(crate) body: Option<Value>,
    pub(crate) answer: AnswerWord,
    /// Refusals that mean null.
    pub(crate) allow: Vec<u16>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum AnswerWord {
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
pub(crate) struct Recursion {
    /// jq on an element: whether it has more below it.
    #[serde(rename = "where")]
    pub(crate) holds: String,
    /// The request for what is below `$item`.
    pub(crate) request: RequestFile,
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
pub(crate) struct Chunk {
    /// The member of the body.
    pub(crate) of: String,
    pub(crate) size: usize,
    /// A plain path to the list in each answer; they are joined.
    pub(crate) join: String,
}

//! Output shapes of a module file. All expressions are jq.

use schemars::JsonSchema;
use serde::Deserialize;

use super::NamedMap;

/// One form, or several of which the first that holds is taken.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum OutputFiles {
    One(Box<OutputFile>),
    First(Vec<OutputFile>),
}

impl OutputFiles {
    pub(crate) fn all(&self) -> &[OutputFile] {
        match self {
            Self::One(out) => std::slice::from_ref(out),
            Self::First(outs) => outs,
        }
    }
}

/// `table` with `rows` and `columns`, or `record`, or `text`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct OutputFile {
    /// The condition under which this form is used.
    pub(crate) when: Option<String>,
    /// The name of the rows.
    pub(crate) table: Option<String>,
    pub(crate) rows: Option<String>,
    /// On each row: it is left out if this holds.
    pub(crate) unless: Option<String>,
    /// Of each row. The members of what `*` gives become columns.
    pub(crate) columns: NamedMap<String>,
    /// Values to return beside the rows.
    pub(crate) beside: NamedMap<String>,
    pub(crate) record: Option<NamedMap<String>>,
    /// Markdown, a file, a log.
    pub(crate) text: Option<String>,
}

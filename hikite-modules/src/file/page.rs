//! Pagination styles of a module file.

use schemars::JsonSchema;
use serde::Deserialize;

/// One way of paging.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PaginationFile {
    pub(crate) style: PaginationStyle,
    /// Where cursor and size stand in the request.
    #[serde(default, rename = "in")]
    pub(crate) location: PaginationLocation,
    /// `cursor`: the parameter that says where to go on.
    #[serde(default)]
    pub(crate) cursor: Option<String>,
    /// `offset`: the parameter that says how many to pass over.
    #[serde(default)]
    pub(crate) offset: Option<String>,
    /// `page`: the parameter with the number of the page, from 1.
    #[serde(default, rename = "page")]
    pub(crate) number: Option<String>,
    /// The parameter for how many a page has.
    #[serde(default)]
    pub(crate) size: Option<String>,
    /// The most that the service gives on a page.
    #[serde(default)]
    pub(crate) max: Option<u64>,
    /// After so many the service stops.
    #[serde(default)]
    pub(crate) cap: Option<u64>,
    /// jq: the list in an answer, a plain path.
    pub(crate) items: String,
    /// jq: the next cursor, or the next address.
    #[serde(default)]
    pub(crate) next: Option<String>,
    /// jq: whether there is more.
    #[serde(default)]
    pub(crate) more: Option<String>,
    /// jq: whether this is the last page.
    #[serde(default)]
    pub(crate) last: Option<String>,
    /// jq: how many there are in all.
    #[serde(default)]
    pub(crate) total: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PaginationStyle {
    /// The answer says where to go on.
    Cursor,
    /// So many are passed over.
    Offset,
    /// Pages are counted.
    Page,
    /// The `Link` header has the next address.
    Link,
    /// The answer has the next address.
    BodyLink,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum PaginationLocation {
    #[default]
    Query,
    Body,
}

/// A way of paging that a tool uses.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PaginationUsage {
    #[serde(rename = "use")]
    pub(crate) name: String,
    /// How many a page has where the caller says nothing.
    pub(crate) default: u64,
}

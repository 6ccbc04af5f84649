//! The `catalog` section: where `hikite catalog` and `hikite add --from` find servers.

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::Deserialize;

use super::checker::ConfigChecker;
use super::position::ConfigPath;

/// The official MCP registry.
const OFFICIAL: &str = "https://registry.modelcontextprotocol.io";

/// Where `hikite catalog` and `hikite add --from` find servers. Default: the official MCP registry.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Catalog")]
pub(crate) struct CatalogFile {
    /// The address of a registry with the API of the official one.
    url: Option<String>,
    /// A file in place of a registry: a list of servers in the format of the API.
    file: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CatalogLocation {
    /// Base address, without a slash at its end.
    Url(String),
    File(PathBuf),
}

pub(crate) fn check(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &CatalogFile) -> CatalogLocation {
    if raw.url.is_some() && raw.file.is_some() {
        check.report.error(&path.key("file"), "contradicts `url`", Some("Keep one of them.".into()));
    }
    if let Some(file) = raw.file.as_ref().and_then(|file| check.expand(&path.key("file"), file)) {
        return CatalogLocation::File(check.resolve(&file));
    }
    let url = raw.url.as_ref().and_then(|url| check.expand(&path.key("url"), url));
    let url = url.unwrap_or_else(|| OFFICIAL.to_owned());
    if !url.starts_with("https://") && !url.starts_with("http://") {
        let hint = Some("Write `https://…`, or use `file`.".into());
        check.report.error(&path.key("url"), format!("`{url}` is not an address"), hint);
    }
    CatalogLocation::Url(url.trim_end_matches('/').to_owned())
}

//! The `store` section: where everything is kept that must survive a restart.

use hikite_store::StoreUrl;
use schemars::JsonSchema;
use serde::Deserialize;

use super::check::Check;
use super::place::Path;

/// Where registered tools, switches and cached lists are kept.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Store")]
pub(crate) struct StoreFile {
    /// `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`. Default: `hikite.db` in the data folder.
    pub(crate) url: Option<String>,
    /// A file that holds the address, for one with a password.
    pub(crate) url_file: Option<String>,
}

pub(crate) fn check(check: &mut Check<'_, '_>, path: &Path<'_>, raw: &StoreFile) -> Option<StoreUrl> {
    let (key, text) = match (&raw.url, &raw.url_file) {
        (Some(_), Some(_)) => {
            let message = "both `url` and `url_file` are given";
            check.report.error_in_name(&path.key("url_file"), message, Some("keep one of them".into()));
            return None;
        }
        (Some(url), None) => ("url", check.expand(&path.key("url"), url)?),
        (None, Some(file)) => ("url_file", check.secret_file(&path.key("url_file"), file)?),
        (None, None) => return None,
    };
    match StoreUrl::parse(text.trim()) {
        Ok(url) => Some(match url.path().and_then(std::path::Path::to_str) {
            Some(file) => StoreUrl::file(check.resolve(file)),
            None => url,
        }),
        Err(bad) => check.fail(&path.key(key), bad.message, bad.hint),
    }
}

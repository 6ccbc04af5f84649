//! The `store` section: location of the persistent store.

use std::time::Duration;

use hikite_core::limits::Limits;
use hikite_store::StoreUrl;
use schemars::JsonSchema;
use serde::Deserialize;

use super::checker::ConfigChecker;
use super::position::ConfigPath;
use super::unit::ConfigDuration;

/// Minimum staleness; the store is polled only twice a second.
const STALENESS_MIN: Duration = Duration::from_secs(1);

/// Where registered tools, switches and cached lists are kept.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Store")]
pub(crate) struct StoreFile {
    /// `sqlite:PATH` or `postgres://USER:PASSWORD@HOST/DATABASE`. Default: `hikite.db` in the data folder.
    pub(crate) url: Option<String>,
    /// A file that holds the address, for one with a password.
    pub(crate) url_file: Option<String>,
    /// For how long hikite goes on with what it knows while the store does not answer. After that it refuses what may have
    /// been revoked, and `/readyz` says 503. At least `1s`.
    #[schemars(extend("default" = "30s"))]
    pub(crate) max_staleness: Option<ConfigDuration>,
}

/// Reads how long stored data stays valid while the store does not answer.
pub(crate) fn max_staleness(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &StoreFile) -> Duration {
    let default = Limits::default().max_staleness;
    let Some(raw) = &raw.max_staleness else { return default };
    let path = path.key("max_staleness");
    match raw.read() {
        Ok(span) if span < STALENESS_MIN => {
            let hint = "The store is read twice a second. Leave it out for the default of 30 seconds.";
            check.report.error(&path, "must be at least one second", Some(hint.into()));
            default
        }
        Ok(span) => span,
        Err((message, hint)) => check.fail(&path, message, hint).unwrap_or(default),
    }
}

pub(crate) fn check(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &StoreFile) -> Option<StoreUrl> {
    let (key, text) = match (&raw.url, &raw.url_file) {
        (Some(_), Some(_)) => {
            let message = "both `url` and `url_file` are given";
            check.report.error_in_name(&path.key("url_file"), message, Some("Keep one of them.".into()));
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

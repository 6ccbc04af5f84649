//! The `server.cors` section: which web origins may call hikite from a browser, set by the file or the environment.

use schemars::JsonSchema;
use serde::Deserialize;

use super::checker::ConfigChecker;
use super::one_or_many::OneOrMany;
use super::position::ConfigPath;

/// Web pages that may call hikite from a browser.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Cors")]
pub(crate) struct CorsFile {
    /// `false` lets in only the pages of `allowed_origins`.
    #[schemars(extend("default" = true))]
    pub(crate) enabled: Option<bool>,
    /// `"*"` for every page, or the origins of those that may call, like `https://app.example`.
    #[schemars(extend("default" = "*"))]
    pub(crate) origin: Option<OneOrMany<String>>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Cors {
    #[default]
    Off,
    /// Every origin, provided that requests carry a token.
    Any,
    Only(Vec<String>),
}

const ANY: &str = "*";

/// Checks the section. The file overrides `CORS_ENABLED` and `CORS_ORIGIN`.
pub(crate) fn check(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: Option<&CorsFile>) -> Cors {
    let named = (check.environment.env)("CORS_ENABLED").is_some_and(|value| value.trim() == "true");
    let enabled = raw.map_or(named, |raw| raw.enabled.unwrap_or(true));
    let written = match raw.and_then(|raw| raw.origin.as_ref()) {
        Some(OneOrMany::One(origin)) => origin_of(check, &path.key("origin"), origin).into_iter().collect(),
        Some(OneOrMany::Many(origins)) => {
            let path = path.key("origin");
            let each = origins.iter().enumerate();
            each.filter_map(|(at, origin)| origin_of(check, &path.index(at), origin)).collect()
        }
        None => of_environment(check, path),
    };
    match () {
        () if !enabled => Cors::Off,
        () if written.iter().any(|origin| origin == ANY) => Cors::Any,
        () => Cors::Only(written),
    }
}

fn of_environment(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>) -> Vec<String> {
    let Some(text) = (check.environment.env)("CORS_ORIGIN").filter(|text| !text.trim().is_empty()) else {
        return vec![ANY.into()];
    };
    let (right, wrong): (Vec<String>, Vec<String>) =
        text.split(',').map(|origin| origin.trim().to_ascii_lowercase()).partition(|origin| is_origin(origin));
    for origin in wrong {
        check.report.warning(path, format!("`CORS_ORIGIN` contains `{origin}`, which is not an origin; it is ignored"));
    }
    right
}

fn origin_of(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, text: &str) -> Option<String> {
    let origin = check.expand(path, text)?.to_ascii_lowercase();
    if is_origin(&origin) {
        return Some(origin);
    }
    check.fail(path, format!("`{text}` is not an origin"), "Write `https://example.com` without a path, or `*`.")
}

fn is_origin(text: &str) -> bool {
    text == ANY || is_page_origin(text)
}

/// Returns `true` if the text is a scheme and a host without a path.
pub(crate) fn is_page_origin(text: &str) -> bool {
    let host = text.split_once("://").map(|(_, host)| host).unwrap_or_default();
    !host.is_empty() && !host.contains(['/', ' ', '*'])
}

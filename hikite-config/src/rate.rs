//! The `rate_limit` setting: a count per time window.

use std::time::Duration;

use hikite_core::rate::Rate;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::checker::ConfigChecker;
use super::position::ConfigPath;

/// A rate like `"100/m"`, or so many in so many milliseconds.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "RateLimit")]
pub(crate) enum RateFile {
    Text(String),
    Window(RateWindow),
}

/// So many in so many milliseconds.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
#[schemars(rename = "RateWindow")]
pub(crate) struct RateWindow {
    /// How many.
    pub(crate) max: u32,
    /// In so many milliseconds.
    pub(crate) time_window: u64,
}

/// Maximum window: one day.
const LONGEST_MS: u64 = 86_400_000;

pub(crate) fn check(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: Option<&RateFile>) -> Option<Rate> {
    match raw? {
        RateFile::Text(text) => {
            let hint = "Write `10/s`, `600/m` or `5000/h`.";
            Rate::parse(text).or_else(|| check.fail(path, format!("`{text}` is not a rate"), hint))
        }
        RateFile::Window(window) if window.max == 0 => {
            check.fail(&path.key("max"), "must be greater than zero".into(), "Leave out `rate_limit` for no limit.")
        }
        RateFile::Window(window) if !(1..=LONGEST_MS).contains(&window.time_window) => {
            check.fail(&path.key("timeWindow"), "must be from 1 to 86400000".into(), "It is in milliseconds.")
        }
        RateFile::Window(window) => Some(Rate { count: window.max, per: Duration::from_millis(window.time_window) }),
    }
}

pub(crate) fn show(rate: Rate) -> Value {
    json!({ "max": rate.count, "timeWindow": u64::try_from(rate.per.as_millis()).unwrap_or(u64::MAX) })
}

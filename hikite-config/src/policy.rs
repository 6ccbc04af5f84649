//! Call policy from the config: timeout, retries and result caching, for a server or a single tool.

use std::time::Duration;

use hikite_core::call_policy::{CallPolicy, RetryPolicy};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::checker::ConfigChecker;
use super::position::ConfigPath;
use super::unit::{ConfigDuration, show_span};

/// Further attempts after a failure that allows them, for tools that promise that running twice does no harm: their
/// number, or their number and the first pause.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Retry")]
pub(crate) enum RetryFile {
    Attempts(usize),
    Paced(Paced),
}

/// How often, and how fast.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Paced {
    /// Attempts besides the first; `limits.retry_attempts` at most.
    pub(crate) attempts: usize,
    /// The first pause is anything up to this; each further one may be twice as long.
    #[schemars(extend("default" = "1s"))]
    pub(crate) delay: Option<ConfigDuration>,
}

pub(crate) fn retry(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: Option<&RetryFile>,
) -> Option<RetryPolicy> {
    let (attempts, delay) = match raw? {
        RetryFile::Attempts(attempts) => (*attempts, None),
        RetryFile::Paced(paced) => (paced.attempts, paced.delay.as_ref()),
    };
    let delay = match delay {
        Some(delay) => span(check, &path.key("delay"), Some(delay))?,
        None => RetryPolicy::DELAY,
    };
    Some(RetryPolicy { attempts: u32::try_from(attempts).unwrap_or(u32::MAX), delay })
}

/// Reads a duration; zero is valid and disables the feature.
pub(crate) fn span(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: Option<&ConfigDuration>,
) -> Option<Duration> {
    match raw?.read() {
        Ok(span) => Some(span),
        Err((message, hint)) => check.fail(path, message, hint),
    }
}

/// Reads a call timeout. A plain number over 3600 is taken as milliseconds, as other clients write it.
pub(crate) fn timeout(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: Option<&ConfigDuration>,
) -> Option<Duration> {
    match raw?.read_or_milliseconds() {
        Ok(Duration::ZERO) => check.fail(path, "must be greater than zero".into(), "Leave it out for the default."),
        Ok(timeout) => Some(timeout),
        Err((message, hint)) => check.fail(path, message, hint),
    }
}

/// Formats the policy as in the file.
pub(crate) fn show(policy: &CallPolicy) -> Map<String, Value> {
    let mut shown = Map::new();
    shown.extend(policy.timeout.map(|timeout| ("timeout".to_owned(), show_span(timeout).into())));
    shown.extend(policy.retry.map(|retry| ("retry".to_owned(), show_retry(retry))));
    shown.extend(policy.cache.map(|cache| ("cache".to_owned(), show_span(cache).into())));
    shown
}

fn show_retry(retry: RetryPolicy) -> Value {
    json!({ "attempts": retry.attempts, "delay": show_span(retry.delay) })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Config, ConfigEnvironment, show};

    fn load(server: &str) -> Result<serde_json::Value, String> {
        let text = format!(r#"{{ "mcpServers": {{ "s": {{ "command": "x", {server} }} }} }}"#);
        let environment = ConfigEnvironment { env: &|_| None, read: &|_| Err(std::io::ErrorKind::NotFound.into()) };
        let config = Config::parse(&text, Path::new("x"), environment).map_err(|problems| problems.to_string())?;
        Ok(show(&config)["mcpServers"]["s"].clone())
    }

    #[test]
    fn a_number_of_attempts_has_the_usual_pace_and_all_is_shown() {
        let shown = load(
            r#""retry": 2, "cache": "30s", "cacheResources": 60,
               "tools": { "overrides": { "t": { "timeout": "5s", "retry": { "attempts": 0, "delay": "10ms" }, "cache": 0 } } }"#,
        )
        .expect("valid");
        assert_eq!(shown["retry"], serde_json::json!({ "attempts": 2, "delay": "1s" }));
        assert_eq!((&shown["cache"], &shown["cacheResources"]), (&"30s".into(), &"1m".into()));
        let tool = &shown["tools"]["overrides"]["t"];
        assert_eq!((&tool["timeout"], &tool["cache"]), (&"5s".into(), &"0s".into()));
        assert_eq!(tool["retry"], serde_json::json!({ "attempts": 0, "delay": "10ms" }));
    }

    #[test]
    fn what_is_no_amount_is_refused_at_its_place() {
        for (server, problem) in [
            (r#""retry": 1.5"#, "mcpServers.s.retry: expected an integer or an object, found a number"),
            (r#""retry": { "delay": "1s" }"#, "mcpServers.s.retry: `attempts` is missing"),
            (r#""retry": { "attempts": 1, "delay": "soon" }"#, "mcpServers.s.retry.delay: `soon` is not a duration"),
            (r#""cache": "long""#, "mcpServers.s.cache: `long` is not a duration"),
            (r#""cacheResource": "1s""#, "mcpServers.s.cacheResource: unknown key"),
            (
                r#""tools": { "overrides": { "t": { "timeout": 0 } } }"#,
                "mcpServers.s.tools.overrides.t.timeout: must be greater than zero",
            ),
        ] {
            let problems = load(server).expect_err(server);
            assert!(problems.contains(problem), "{server}: {problems}");
        }
    }
}

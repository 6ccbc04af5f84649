//! The `telemetry` section: logging, OTLP export, and access to metrics. Where the file says nothing, the standard
//! variables apply: `OTEL_…` and `LOG_LEVEL`.

use std::time::Duration;

use hikite_core::secret::Secret;
use hikite_gateway::trace::Sampler;
use hikite_modules::NamedMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::checker::ConfigChecker;
use super::otel::{self, OtlpSection};
use super::position::ConfigPath;
use super::transport::{ValueOrFile, header_fault, values};
use super::unit::ConfigDuration;
use super::{secret, url};
use crate::log::{self, LogFormat};

/// Logs, traces and metrics.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Telemetry")]
pub(crate) struct TelemetryFile {
    /// The log on stderr.
    pub(crate) log: Option<LogFile>,
    /// Where traces and metrics are sent, over OTLP/HTTP with protobuf.
    pub(crate) otlp: Option<OtlpFile>,
    /// Access to `/metrics` for others than the owner.
    pub(crate) metrics: Option<MetricsFile>,
}

/// The log on stderr.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Log")]
pub(crate) struct LogFile {
    /// `error`, `warn`, `info`, `debug`, `trace` or `off`, or directives like `info,hikite_upstream=debug`.
    #[schemars(extend("default" = "info"))]
    pub(crate) level: Option<String>,
    /// How lines are written.
    #[schemars(extend("default" = "text"))]
    pub(crate) format: Option<LogFormatWord>,
}

/// How lines of the log are written.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "LogFormat")]
pub(crate) enum LogFormatWord {
    /// For people.
    Text,
    /// One JSON object per line, for collectors.
    Json,
}

/// Where traces and metrics are sent.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Otlp")]
pub(crate) struct OtlpFile {
    /// The collector's address; `/v1/traces` and `/v1/metrics` are appended. Without it nothing is sent.
    pub(crate) endpoint: Option<String>,
    /// Headers sent to it.
    pub(crate) headers: Option<NamedMap<ValueOrFile>>,
    /// Service name in traces and metrics.
    #[schemars(extend("default" = "hikite"))]
    pub(crate) service: Option<String>,
    /// The part of the traces that begin here that is recorded, from 0 to 1. What a client began, it decides.
    #[schemars(extend("default" = 1))]
    pub(crate) sample: Option<f64>,
    /// How often metrics are sent.
    #[schemars(extend("default" = "1m"))]
    pub(crate) interval: Option<ConfigDuration>,
    /// For the collector to answer.
    #[schemars(extend("default" = "10s"))]
    pub(crate) timeout: Option<ConfigDuration>,
}

/// Access to `/metrics` for others than the owner.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Metrics")]
pub(crate) struct MetricsFile {
    /// A token that opens `/metrics` and nothing else.
    pub(crate) token: Option<String>,
    /// A file that holds it.
    #[serde(rename = "tokenFile")]
    pub(crate) token_file: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct TelemetrySection {
    pub log: LogSection,
    pub otlp: Option<OtlpSection>,
    pub metrics_token: Option<Secret>,
}

/// Log settings of the file, or else of the environment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LogSection {
    pub level: Option<String>,
    pub format: Option<LogFormat>,
}

pub(crate) fn check(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &TelemetryFile) -> TelemetrySection {
    let otlp = otlp(check, &path.key("otlp"), &raw.otlp.clone().unwrap_or_default());
    let metrics = raw.metrics.clone().unwrap_or_default();
    TelemetrySection {
        log: log(check, &path.key("log"), &raw.log.clone().unwrap_or_default()),
        otlp: otlp.filter(|otlp| otlp.traces.is_some() || otlp.metrics.is_some()),
        metrics_token: super::auth::token(
            check,
            &path.key("metrics"),
            (metrics.token.as_deref(), metrics.token_file.as_deref()),
        ),
    }
}

fn log(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &LogFile) -> LogSection {
    let path = path.key("level");
    let written = raw.level.as_deref().and_then(|level| {
        let level = check.expand(&path, level)?;
        match log::filter(&level) {
            Ok(_) => Some(level),
            Err(_) => check.fail(&path, format!("`{level}` is not a log level"), log::HINT),
        }
    });
    let usual = || (check.environment.env)("LOG_LEVEL").and_then(|word| log::parse_level(&word));
    let format = raw.format.map(|word| match word {
        LogFormatWord::Text => LogFormat::Text,
        LogFormatWord::Json => LogFormat::Json,
    });
    LogSection { level: written.or_else(usual), format }
}

fn otlp(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &OtlpFile) -> Option<OtlpSection> {
    let headers = values(check, &path.key("headers"), raw.headers.as_ref(), header_fault);
    let service = raw.service.as_deref().and_then(|name| check.expand(&path.key("service"), name));
    let ratio = raw.sample.filter(|ratio| (0.0..=1.0).contains(ratio));
    if raw.sample.is_some() && ratio.is_none() {
        let hint = "Write a number from 0 to 1.";
        check.report.error(&path.key("sample"), "is not between 0 and 1", Some(hint.into()));
    }
    let span = |check: &mut ConfigChecker<'_, '_>, key: &str, raw: Option<&ConfigDuration>| {
        let span = raw.map(ConfigDuration::read)?;
        let span = span.map_err(|(message, hint)| (message, hint.to_owned())).and_then(|span| {
            let positive = span >= Duration::from_millis(10);
            positive.then_some(span).ok_or(("is too short".to_owned(), "Leave it out for the default.".to_owned()))
        });
        span.map_or_else(|(message, hint)| check.fail(&path.key(key), message, hint), Some)
    };
    let interval = span(check, "interval", raw.interval.as_ref());
    let timeout = span(check, "timeout", raw.timeout.as_ref());
    let endpoint = raw.endpoint.as_deref().map(|written| endpoint(check, &path.key("endpoint"), written));
    let mut otlp = otel::read(check, path);
    if let Some(endpoint) = endpoint {
        let endpoint = endpoint?;
        let at = |signal: &str| Some(secret::join(&endpoint, signal));
        (otlp.traces, otlp.metrics, otlp.headers) = (at("v1/traces"), at("v1/metrics"), headers);
    }
    otlp.service = service.unwrap_or(otlp.service);
    otlp.sampler = ratio.map_or(otlp.sampler, |ratio| Sampler { ratio, parent_based: true });
    otlp.interval = interval.unwrap_or(otlp.interval);
    otlp.timeout = timeout.unwrap_or(otlp.timeout);
    (!otel::is_disabled(check.environment.env)).then_some(otlp)
}

fn endpoint(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, written: &str) -> Option<Secret> {
    let expanded = check.expand(path, written)?;
    match url::fault(&expanded) {
        Some((fault, hint)) => check.fail(path, format!("`{}` {fault}", url::without_secrets(written)), hint),
        None => Some(secret::url(written, expanded)),
    }
}

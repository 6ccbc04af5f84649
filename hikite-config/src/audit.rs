//! The `audit` section: whether calls are recorded, for how long, and what happens if a record cannot be written.

use std::time::Duration;

use hikite_gateway::{AuditRules, Durability, QueueFullPolicy};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::checker::ConfigChecker;
use super::position::ConfigPath;
use super::unit::{ConfigDuration, show_span};

const RETENTION: Duration = Duration::from_secs(90 * 86_400);

/// Audit records of calls, and how long they are kept.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Audit")]
pub(crate) struct AuditFile {
    /// Records calls if true.
    #[schemars(extend("default" = true))]
    pub(crate) enabled: Option<bool>,
    /// When an answer goes out: with `strict` after its record is committed, which no crash takes back; with `group` at
    /// once, at most 256 records ahead of the disk.
    #[schemars(extend("default" = "group"))]
    pub(crate) durability: Option<DurabilityFile>,
    /// Handling of a call whose record finds no place in the queue: `block` lets it wait, and refuses it in the
    /// end; `drop-and-count` runs it, and records how many records were lost.
    #[schemars(extend("default" = "block"))]
    pub(crate) when_full: Option<WhenFullFile>,
    /// For how long records are kept.
    #[schemars(extend("default" = "90d"))]
    pub(crate) retention: Option<ConfigDuration>,
    /// How many records are kept at most. Default: as many as there are.
    pub(crate) max_records: Option<u64>,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "Durability")]
pub(crate) enum DurabilityFile {
    Group,
    Strict,
}

#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
#[schemars(rename = "WhenFull")]
pub(crate) enum WhenFullFile {
    Block,
    DropAndCount,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AuditSection {
    pub enabled: bool,
    pub rules: AuditRules,
}

impl AuditSection {
    /// Returns the audit rules; `None` if auditing is disabled.
    pub fn rules(&self) -> Option<AuditRules> {
        self.enabled.then_some(self.rules)
    }
}

pub(crate) fn check(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &AuditFile) -> AuditSection {
    let retention = match raw.retention.as_ref().map(ConfigDuration::read) {
        None => RETENTION,
        Some(Ok(span)) if span >= Duration::from_secs(1) => span,
        Some(Ok(_)) => {
            let hint = "Leave it out for 90 days; `\"enabled\": false` turns the audit log off.";
            let wrong = check.fail(&path.key("retention"), "must be at least one second".into(), hint);
            wrong.unwrap_or(RETENTION)
        }
        Some(Err((message, hint))) => check.fail(&path.key("retention"), message, hint).unwrap_or(RETENTION),
    };
    if raw.max_records == Some(0) {
        let hint = Some("Leave it out for no limit.".into());
        check.report.error(&path.key("max_records"), "must be greater than zero", hint);
    }
    let when_full = match raw.when_full {
        None | Some(WhenFullFile::Block) => QueueFullPolicy::Block,
        Some(WhenFullFile::DropAndCount) => QueueFullPolicy::DropAndCount,
    };
    let durability = match raw.durability {
        None | Some(DurabilityFile::Group) => Durability::Group,
        Some(DurabilityFile::Strict) => Durability::Strict,
    };
    let rules = AuditRules { durability, when_full, retention, max_records: raw.max_records };
    AuditSection { enabled: raw.enabled.unwrap_or(true), rules }
}

pub(crate) fn show(audit: &AuditSection) -> Value {
    let mut shown = json!({
        "enabled": audit.enabled,
        "durability": audit.rules.durability.name(),
        "when_full": match audit.rules.when_full {
            QueueFullPolicy::Block => "block",
            QueueFullPolicy::DropAndCount => "drop-and-count",
        },
        "retention": show_span(audit.rules.retention),
    });
    if let Some(most) = audit.rules.max_records {
        shown["max_records"] = most.into();
    }
    shown
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use crate::{Config, ConfigEnvironment, Problems, show};

    fn parse(text: &str) -> Result<Config, Problems> {
        let environment = ConfigEnvironment { env: &|_| None, read: &|_| Err(std::io::ErrorKind::NotFound.into()) };
        Config::parse(text, Path::new("x"), environment)
    }

    #[test]
    fn everything_is_recorded_unless_the_file_says_otherwise() {
        let shown = |text: &str| show(&parse(text).expect(text))["audit"].to_string();
        assert_eq!(shown("{}"), r#"{"enabled":true,"durability":"group","when_full":"block","retention":"90d"}"#);
        let file = r#"{"audit":{"enabled":false,"durability":"strict","when_full":"drop-and-count","retention":"36h","max_records":5}}"#;
        let expected =
            r#"{"enabled":false,"durability":"strict","when_full":"drop-and-count","retention":"36h","max_records":5}"#;
        assert_eq!(shown(file), expected);
        assert!(parse(file).expect("right").audit.rules().is_none());
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        for (text, said) in [
            (r#"{"audit":{"retention":"0s"}}"#, "audit.retention: must be at least one second"),
            (r#"{"audit":{"retention":"soon"}}"#, "`soon` is not a duration"),
            (r#"{"audit":{"max_records":0}}"#, "audit.max_records: must be greater than zero"),
            (r#"{"audit":{"when_full":"drop"}}"#, "`drop` is not a known value"),
            (r#"{"audit":{"durability":"none"}}"#, "`none` is not a known value"),
            (r#"{"audit":{"retain":"1d"}}"#, "unknown key"),
        ] {
            let problems = parse(text).expect_err(text).to_string();
            assert!(problems.contains(said), "{problems}");
        }
    }
}

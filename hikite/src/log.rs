//! Logging, to stderr only: stdout belongs to data and to the stdio transport. Level and format may change at
//! runtime; flags and environment variables override the config.

mod line;

use std::io::IsTerminal;
use std::sync::OnceLock;

use clap::ValueEnum;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, reload};

use crate::config::LogSection;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// For people.
    #[default]
    #[value(alias = "pretty")]
    Text,
    /// One JSON object per line, for collectors.
    Json,
}

impl LogFormat {
    pub(crate) fn word(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

pub(crate) const HINT: &str = "Use error, warn, info, debug or trace.";

/// Logging state fixed at start-up.
struct LogState {
    filter: reload::Handle<EnvFilter, Registry>,
    default_level: &'static str,
    fixed_level: bool,
    fixed_format: bool,
}

static STATE: OnceLock<LogState> = OnceLock::new();

/// Starts logging. `level` and `format` come from flags and environment variables; `default_level` is the default level.
pub(crate) fn start(level: Option<&str>, format: Option<LogFormat>, default_level: &'static str) -> anyhow::Result<()> {
    let text = level.unwrap_or(default_level);
    let first = filter(text).map_err(|error| anyhow::anyhow!("`{text}` is not a log filter: {error}\nhint: {HINT}"))?;
    let (filter, handle) = reload::Layer::new(first);
    line::set_format(format.unwrap_or_default());
    let started =
        LogState { filter: handle, default_level, fixed_level: level.is_some(), fixed_format: format.is_some() };
    let _ = STATE.set(started);
    let lines = tracing_subscriber::fmt::layer()
        .event_format(line::LogLineFormat)
        .with_writer(std::io::stderr)
        // A closed stderr must not stop the program.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    tracing_subscriber::registry().with(filter).with(lines).init();
    Ok(())
}

/// Applies the log settings of the config that no flag overrides.
pub(crate) fn follow(log: &LogSection) {
    let Some(started) = STATE.get() else { return };
    if !started.fixed_format {
        line::set_format(log.format.unwrap_or_default());
    }
    if started.fixed_level {
        return;
    }
    if let Ok(filter) = filter(log.level.as_deref().unwrap_or(started.default_level)) {
        let _ = started.filter.reload(filter);
    }
}

/// Builds a filter. A plain level applies to hikite; its libraries log only warnings, because they do not know what
/// is secret here. Directives (`debug,h2=trace`) are used unchanged.
pub(crate) fn filter(text: &str) -> Result<EnvFilter, tracing_subscriber::filter::ParseError> {
    let text = match text.trim().to_ascii_lowercase().as_str() {
        level @ ("info" | "debug" | "trace") => format!("warn,hikite={level}"),
        _ => text.to_owned(),
    };
    EnvFilter::builder().parse(text)
}

/// Maps `LOG_LEVEL`, including level names of other programs, to a level; unknown words are ignored.
pub(crate) fn parse_level(word: &str) -> Option<String> {
    let level = match word.trim().to_ascii_lowercase().as_str() {
        "fatal" | "error" => "error",
        "warn" | "warning" => "warn",
        "info" => "info",
        "debug" => "debug",
        "trace" => "trace",
        "silent" | "off" => "off",
        _ => return None,
    };
    Some(level.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_of_other_programs_are_understood() {
        for (word, level) in [("fatal", Some("error")), ("WARN", Some("warn")), ("silent", Some("off")), ("7", None)] {
            assert_eq!(parse_level(word).as_deref(), level, "{word}");
        }
    }

    #[test]
    fn a_level_alone_is_about_hikite() {
        assert_eq!(filter("trace").expect("a level").to_string(), "hikite=trace,warn");
        assert_eq!(filter("error").expect("a level").to_string(), "error");
        assert_eq!(filter("info,h2=trace").expect("directives").to_string(), "h2=trace,info");
        assert!(filter("a=b=c").is_err());
    }
}

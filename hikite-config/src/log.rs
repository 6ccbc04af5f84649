//! The words of log settings: formats, levels and filters.

use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::ParseError;

/// The format of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    #[default]
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

/// Lists the levels, for errors about a wrong one.
pub const HINT: &str = "use error, warn, info, debug or trace";

/// Builds a filter. A plain level applies to hikite; its libraries log only warnings, because they do not know what
/// is secret here. Directives (`debug,h2=trace`) are used unchanged.
pub fn filter(text: &str) -> Result<EnvFilter, ParseError> {
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

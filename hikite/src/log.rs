//! Logging, to stderr only: stdout belongs to data and to the stdio transport. Level and format may change at
//! runtime; flags and environment variables override the config.

mod line;

use std::io::IsTerminal;
use std::sync::OnceLock;

use hikite_config::LogSection;
use hikite_config::log::{HINT, LogFormat, filter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, reload};

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

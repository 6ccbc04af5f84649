//! Logging, to stderr only: stdout belongs to data and to the stdio transport. Level and format may change at
//! runtime; flags and environment variables override the config. On a terminal, unless a level or format is asked for,
//! `hikite serve` shows only warnings, in a short form for a person.

mod line;

use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use hikite_config::LogSection;
use hikite_config::log::{HINT, LogFormat, filter};
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Registry, reload};

use crate::progress;

/// Logging state fixed at start-up.
struct LogState {
    filter: reload::Handle<EnvFilter, Registry>,
    default_level: &'static str,
    fixed_level: bool,
    fixed_format: bool,
}

/// The level for a person at a terminal.
const CALM_LEVEL: &str = "warn";
/// While the terminal shows a line per server, those lines tell what the servers' log lines would.
const CALM_LEVEL_AT_START: &str = "warn,hikite_upstream=off";

static STATE: OnceLock<LogState> = OnceLock::new();

/// Starts logging. `level` and `format` come from flags and environment variables; `default_level` is the default level.
/// `serves` is true for `hikite serve`, which is calm on a terminal.
pub(crate) fn start(
    level: Option<&str>,
    format: Option<LogFormat>,
    default_level: &'static str,
    serves: bool,
) -> anyhow::Result<()> {
    let is_terminal = io::stderr().is_terminal();
    let is_calm = serves && is_terminal && level.is_none() && format.is_none();
    let text = level.unwrap_or(if is_calm { CALM_LEVEL_AT_START } else { default_level });
    let first = filter(text).map_err(|error| anyhow::anyhow!("`{text}` is not a log filter: {error}\nhint: {HINT}"))?;
    let (filter, handle) = reload::Layer::new(first);
    line::set_format(format.unwrap_or_default());
    line::set_calm(is_calm);
    let started =
        LogState { filter: handle, default_level, fixed_level: level.is_some(), fixed_format: format.is_some() };
    let _ = STATE.set(started);
    let lines = tracing_subscriber::fmt::layer()
        .event_format(line::LogLineFormat)
        .with_writer(|| LogWriter)
        // A closed stderr must not stop the program.
        .log_internal_errors(false)
        .with_ansi(is_terminal && std::env::var_os("NO_COLOR").is_none());
    tracing_subscriber::registry().with(filter).with(lines).init();
    Ok(())
}

/// Returns `true` if a person at a terminal reads what `hikite serve` prints.
pub(crate) fn is_calm() -> bool {
    line::is_calm()
}

/// Shows the warnings of servers from now on: the lines of the start are final.
pub(crate) fn end_start() {
    if is_calm() {
        set_level(CALM_LEVEL);
    }
}

/// Applies the log settings of the config that no flag overrides.
pub(crate) fn follow(log: &LogSection) {
    let Some(started) = STATE.get() else { return };
    if log.level.is_some() || log.format.is_some() {
        line::set_calm(false);
    }
    if !started.fixed_format {
        line::set_format(log.format.unwrap_or_default());
    }
    if !started.fixed_level && !is_calm() {
        set_level(log.level.as_deref().unwrap_or(started.default_level));
    }
}

fn set_level(level: &str) {
    if let (Some(started), Ok(filter)) = (STATE.get(), filter(level)) {
        let _ = started.filter.reload(filter);
    }
}

/// Writes lines to stderr; on a calm terminal above the lines that change.
struct LogWriter;

impl Write for LogWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if is_calm() { progress::above(|| io::stderr().write(bytes)) } else { io::stderr().write(bytes) }
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stderr().flush()
    }
}

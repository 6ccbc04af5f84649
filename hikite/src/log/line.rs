//! Formats one log line: as text, as one flat JSON object, or for a person at a terminal. A line written while a request
//! is served carries the request id, and the trace id if there is one.

mod calm;

use std::fmt::{self, Debug};
use std::sync::atomic::{AtomicBool, Ordering};

use hikite_config::log::LogFormat;
use hikite_core::time::rfc3339;
use hikite_gateway::{now_ms, scope};
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatEvent, FormatFields};
use tracing_subscriber::registry::LookupSpan;

/// Target of the log lines of calls.
const CALL: &str = "hikite::call";

static JSON: AtomicBool = AtomicBool::new(false);

pub(super) fn set_format(format: LogFormat) {
    JSON.store(format == LogFormat::Json, Ordering::Relaxed);
}

pub(super) use calm::{is_calm, set_calm};

#[derive(Debug)]
pub(super) struct LogLineFormat;

impl<S, N> FormatEvent<S, N> for LogLineFormat
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, ctx: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        if JSON.load(Ordering::Relaxed) {
            return json(out, event);
        }
        if is_calm() {
            return calm::line(ctx, out, event);
        }
        let (dim, plain) = if out.has_ansi_escapes() { ("\x1b[2m", "\x1b[0m") } else { ("", "") };
        let level = *event.metadata().level();
        let colour = if out.has_ansi_escapes() { colour(level) } else { "" };
        let time = rfc3339(now_ms());
        for part in [dim, &time, plain, " ", colour, padded(level), plain, " "] {
            out.write_str(part)?;
        }
        // Fast path: there is one such line per call, and it needs no more than this.
        if event.metadata().target() == CALL && !out.has_ansi_escapes() {
            let mut fields = TextFields { out: &mut out, outcome: Ok(()), first: true };
            event.record(&mut fields);
            fields.outcome?;
        } else {
            ctx.format_fields(out.by_ref(), event)?;
        }
        ids(event, |name, id| write!(out, " {dim}{name}={plain}{id}"))?;
        writeln!(out)
    }
}

fn json(mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
    let time = rfc3339(now_ms());
    let metadata = event.metadata();
    write!(out, "{{\"timestamp\":\"{time}\",\"level\":\"{}\"", metadata.level())?;
    member(&mut out, "target", metadata.target())?;
    let mut members = JsonFields { out: &mut out, outcome: Ok(()) };
    event.record(&mut members);
    members.outcome?;
    ids(event, |name, id| member(&mut out, name, id))?;
    writeln!(out, "}}")
}

/// Writes the ids of the request, unless the event has them as fields.
fn ids(event: &Event<'_>, mut emit: impl FnMut(&'static str, &str) -> fmt::Result) -> fmt::Result {
    if event.metadata().fields().field("request_id").is_some() {
        return Ok(());
    }
    let written = scope::current(|origin| {
        origin.request_id.as_deref().map_or(Ok(()), |id| emit("request_id", id))?;
        origin.trace_id().map_or(Ok(()), |id| emit("trace_id", id))
    });
    written.unwrap_or(Ok(()))
}

/// Writes event fields as `name=value name="text"`, without colours.
struct TextFields<'a, 'w> {
    out: &'a mut Writer<'w>,
    outcome: fmt::Result,
    first: bool,
}

impl TextFields<'_, '_> {
    fn put(&mut self, field: &Field, value: impl FnOnce(&mut Writer<'_>) -> fmt::Result) {
        if self.outcome.is_ok() {
            self.outcome = self.write(field, value);
        }
    }

    fn write(&mut self, field: &Field, value: impl FnOnce(&mut Writer<'_>) -> fmt::Result) -> fmt::Result {
        if !std::mem::take(&mut self.first) {
            self.out.write_char(' ')?;
        }
        self.out.write_str(field.name())?;
        self.out.write_char('=')?;
        value(self.out)
    }
}

impl Visit for TextFields<'_, '_> {
    fn record_str(&mut self, field: &Field, value: &str) {
        let is_plain = value.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'"' && byte != b'\\');
        self.put(field, |out| {
            if !is_plain {
                return write!(out, "{value:?}");
            }
            out.write_char('"')?;
            out.write_str(value)?;
            out.write_char('"')
        });
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, |out| write!(out, "{value:?}"));
    }
}

/// Writes event fields as members of a JSON object.
struct JsonFields<'a, 'w> {
    out: &'a mut Writer<'w>,
    outcome: fmt::Result,
}

impl JsonFields<'_, '_> {
    fn put(&mut self, field: &Field, value: &str) {
        if self.outcome.is_ok() {
            self.outcome = write!(self.out, ",{}:{value}", text(field.name()));
        }
    }
}

impl Visit for JsonFields<'_, '_> {
    fn record_f64(&mut self, field: &Field, value: f64) {
        let value = if value.is_finite() { value.to_string() } else { "null".into() };
        self.put(field, &value);
    }

    fn record_i64(&mut self, field: &Field, value: i64) {
        self.put(field, &value.to_string());
    }

    fn record_u64(&mut self, field: &Field, value: u64) {
        self.put(field, &value.to_string());
    }

    fn record_i128(&mut self, field: &Field, value: i128) {
        self.put(field, &value.to_string());
    }

    fn record_u128(&mut self, field: &Field, value: u128) {
        self.put(field, &value.to_string());
    }

    fn record_bool(&mut self, field: &Field, value: bool) {
        self.put(field, if value { "true" } else { "false" });
    }

    fn record_str(&mut self, field: &Field, value: &str) {
        self.put(field, &text(value));
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.put(field, &text(&format!("{value:?}")));
    }
}

fn member(out: &mut Writer<'_>, name: &str, value: &str) -> fmt::Result {
    write!(out, ",{}:{}", text(name), text(value))
}

/// Encodes a JSON string.
fn text(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn padded(level: Level) -> &'static str {
    match level {
        Level::ERROR => "ERROR",
        Level::WARN => " WARN",
        Level::INFO => " INFO",
        Level::DEBUG => "DEBUG",
        Level::TRACE => "TRACE",
    }
}

fn colour(level: Level) -> &'static str {
    match level {
        Level::ERROR => "\x1b[31m",
        Level::WARN => "\x1b[33m",
        Level::INFO => "\x1b[32m",
        Level::DEBUG => "\x1b[34m",
        Level::TRACE => "\x1b[35m",
    }
}

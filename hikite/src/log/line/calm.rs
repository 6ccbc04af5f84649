//! Log lines for a person at a terminal: local time, no ids, and a repeated line once, then as a count.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

use hikite_gateway::now_ms;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use parking_lot::Mutex;
use tracing::{Event, Subscriber};
use tracing_subscriber::fmt::format::Writer;
use tracing_subscriber::fmt::{FmtContext, FormatFields};
use tracing_subscriber::registry::LookupSpan;

use super::{colour, padded};

static CALM: AtomicBool = AtomicBool::new(false);
static SHOWN: Mutex<Option<ShownLines>> = Mutex::new(None);

pub(in crate::log) fn set_calm(calm: bool) {
    CALM.store(calm, Ordering::Relaxed);
}

pub(in crate::log) fn is_calm() -> bool {
    CALM.load(Ordering::Relaxed)
}

pub(super) fn line<S, N>(ctx: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    let mut text = String::new();
    ctx.format_fields(Writer::new(&mut text), event)?;
    let Some(count) = SHOWN.lock().get_or_insert_default().count(&text) else { return Ok(()) };
    let level = *event.metadata().level();
    let (colour, plain) = if out.has_ansi_escapes() { (colour(level), "\x1b[0m") } else { ("", "") };
    let repeated = if count > 1 { format!(" ({count} times)") } else { String::new() };
    writeln!(out, "{} {colour}{}{plain} {text}{repeated}", local_time(now_ms()), padded(level))
}

/// Returns the time of day in the time zone of this machine.
fn local_time(ms: u64) -> String {
    let time = Timestamp::from_millisecond(i64::try_from(ms).unwrap_or(i64::MAX)).unwrap_or_default();
    time.to_zoned(TimeZone::system()).strftime("%H:%M:%S").to_string()
}

/// Counts equal lines.
#[derive(Debug, Default)]
struct ShownLines(HashMap<String, u64>);

/// Number of different lines that are remembered; then all are forgotten.
const LINES_MAX: usize = 1000;

impl ShownLines {
    /// Returns how often the line has come, if it is shown now: the first time, the tenth, the hundredth and so on.
    fn count(&mut self, line: &str) -> Option<u64> {
        if let Some(count) = self.0.get_mut(line) {
            *count += 1;
            return 10_u64.pow(count.ilog10()).eq(count).then_some(*count);
        }
        if self.0.len() >= LINES_MAX {
            self.0.clear();
        }
        self.0.insert(line.to_owned(), 1);
        Some(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_repeated_line_is_shown_once_and_then_counted() {
        let mut shown = ShownLines::default();
        let counts: Vec<u64> = (0..1000).filter_map(|_| shown.count("the server is away")).collect();
        assert_eq!(counts, [1, 10, 100, 1000]);
        assert_eq!(shown.count("another"), Some(1));
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut shown = ShownLines::default();
        for number in 0..5 * LINES_MAX {
            assert_eq!(shown.count(&number.to_string()), Some(1));
        }
        assert!(shown.0.len() <= LINES_MAX);
    }
}

//! Amounts with a unit: durations (`10s`, `500ms`, `10m`, `90d`) and sizes (`8MiB`, `64MB`), as text or as a number
//! of seconds or bytes.

use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;

/// A duration like `"10s"`, `"500ms"`, `"10m"`, `"1h"` or `"30d"`, or a number of seconds.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum ConfigDuration {
    Text(String),
    Seconds(f64),
}

/// A size like `"8MiB"` or `"64MB"`, or a number of bytes.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Size {
    Text(String),
    Bytes(f64),
}

const SPAN_HINT: &str = "Write `\"10s\"`, `\"500ms\"`, `\"10m\"`, `\"1h\"`, `\"30d\"` or a number of seconds.";
const SIZE_HINT: &str = "Write `\"8MiB\"`, `\"64MB\"` or a number of bytes.";

const SPANS: &[(&str, f64)] = &[("ms", 0.001), ("s", 1.0), ("m", 60.0), ("min", 60.0), ("h", 3600.0), ("d", 86_400.0)];
const SIZES: &[(&str, f64)] = &[
    ("b", 1.0),
    ("kib", 1024.0),
    ("mib", 1_048_576.0),
    ("gib", 1_073_741_824.0),
    ("kb", 1e3),
    ("mb", 1e6),
    ("gb", 1e9),
];

/// Message and hint for an invalid amount.
pub(crate) type AmountFault = (String, &'static str);

impl ConfigDuration {
    pub(crate) fn read(&self) -> Result<Duration, AmountFault> {
        let (amount, written) = match self {
            Self::Text(text) => (amount(text, SPANS), format!("`{text}`")),
            Self::Seconds(seconds) => (Some(*seconds), format!("`{seconds}`")),
        };
        amount
            .and_then(|seconds| Duration::try_from_secs_f64(seconds).ok())
            .filter(|span| span.as_secs() <= LONGEST_SECONDS)
            .ok_or((format!("{written} is not a duration"), SPAN_HINT))
    }

    /// Reads a duration of another client: a plain number over 3600 is taken as milliseconds.
    pub(crate) fn read_or_milliseconds(&self) -> Result<Duration, AmountFault> {
        match self {
            Self::Seconds(number) if *number > 3600.0 => Self::Seconds(number / 1000.0).read(),
            _ => self.read(),
        }
    }
}

/// Maximum duration, a hundred years: a longer one is a mistake, and would overflow clocks.
const LONGEST_SECONDS: u64 = 100 * 365 * 86_400;

impl Size {
    pub(crate) fn read(&self) -> Result<usize, AmountFault> {
        let (amount, written) = match self {
            Self::Text(text) => (amount(text, SIZES), format!("`{text}`")),
            Self::Bytes(bytes) => (Some(*bytes), format!("`{bytes}`")),
        };
        amount
            .filter(|bytes| (0.0..=BYTES_MAX).contains(bytes))
            .map(whole)
            .ok_or((format!("{written} is not a size"), SIZE_HINT))
    }
}

/// Largest size: up to here `f64` represents every integer exactly.
const BYTES_MAX: f64 = 9_007_199_254_740_992.0;

#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between zero and 2^53, see above")]
fn whole(bytes: f64) -> usize {
    bytes as usize
}

fn amount(text: &str, units: &[(&str, f64)]) -> Option<f64> {
    let text = text.trim();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').filter(|at| *at > 0)?;
    let number: f64 = text[..digits].parse().ok()?;
    let unit = text[digits..].trim().to_ascii_lowercase();
    units.iter().find(|(name, _)| *name == unit).map(|(_, factor)| number * factor)
}

/// Formats a duration as its shortest exact text.
pub(crate) fn show_span(span: Duration) -> String {
    let ms = span.as_millis();
    if !ms.is_multiple_of(1000) {
        format!("{ms}ms")
    } else if ms == 0 || !ms.is_multiple_of(60_000) {
        format!("{}s", ms / 1000)
    } else if !ms.is_multiple_of(3_600_000) {
        format!("{}m", ms / 60_000)
    } else if ms < 48 * 3_600_000 || !ms.is_multiple_of(86_400_000) {
        format!("{}h", ms / 3_600_000)
    } else {
        format!("{}d", ms / 86_400_000)
    }
}

/// Formats a size as its shortest exact text.
pub(crate) fn show_size(bytes: usize) -> String {
    let units = [(1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    let unit = units.iter().find(|(factor, _)| bytes >= *factor && bytes.is_multiple_of(*factor));
    unit.map_or_else(|| format!("{bytes}B"), |(factor, name)| format!("{}{name}", bytes / factor))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_shown() {
        for (text, ms, shown) in [
            ("10s", 10_000, "10s"),
            ("500ms", 500, "500ms"),
            ("1.5 s", 1500, "1500ms"),
            ("10m", 600_000, "10m"),
            ("60min", 3_600_000, "1h"),
            ("0s", 0, "0s"),
            ("24h", 86_400_000, "24h"),
            ("36h", 129_600_000, "36h"),
            ("30d", 2_592_000_000, "30d"),
            ("90d", 7_776_000_000, "90d"),
        ] {
            let span = ConfigDuration::Text(text.into()).read().expect(text);
            assert_eq!((span.as_millis(), show_span(span).as_str()), (ms, shown), "{text}");
        }
        for text in ["", "s", "10", "10 parsecs", "-1s", "1.2.3s", "1e9h", "99999999999999h"] {
            assert!(ConfigDuration::Text(text.into()).read().is_err(), "{text}");
        }
        assert!(ConfigDuration::Seconds(-1.0).read().is_err());
        assert!(ConfigDuration::Seconds(f64::MAX).read().is_err());
    }

    #[test]
    fn a_large_plain_number_of_another_client_means_milliseconds() {
        assert_eq!(ConfigDuration::Seconds(60.0).read_or_milliseconds(), Ok(Duration::from_secs(60)));
        assert_eq!(ConfigDuration::Seconds(30_000.0).read_or_milliseconds(), Ok(Duration::from_secs(30)));
    }

    #[test]
    fn sizes_are_read_and_shown() {
        for (text, bytes, shown) in [
            ("8MiB", 8 << 20, "8MiB"),
            ("64 MB", 64_000_000, "62500KiB"),
            ("1.5kib", 1536, "1536B"),
            ("12b", 12, "12B"),
        ] {
            let size = Size::Text(text.into()).read().expect(text);
            assert_eq!((size, show_size(size).as_str()), (bytes, shown), "{text}");
        }
        assert!(Size::Text("8 furlongs".into()).read().is_err());
        assert!(Size::Bytes(-1.0).read().is_err());
    }
}

//! Formatting and parsing of timestamps. The calendar is that of `jiff`; this module reads no clock.

use jiff::SignedDuration;
use jiff::civil::DateTime;
use jiff::fmt::temporal::Pieces;

/// The start of 1970. A civil time reaches to the end of 9999, where an instant of `jiff` ends a day earlier.
const EPOCH: DateTime = DateTime::constant(1970, 1, 1, 0, 0, 0, 0);

/// Formats milliseconds since 1970 as RFC 3339 in UTC: `2026-11-15T08:30:00.000Z`. Times after the year 9999 are
/// clamped to its end.
pub fn rfc3339(ms: u64) -> String {
    let since = SignedDuration::from_millis(i64::try_from(ms).unwrap_or(i64::MAX));
    format!("{:.3}Z", EPOCH.saturating_add(since))
}

/// Parses RFC 3339, or a plain number of milliseconds since 1970. Accepts offsets such as `+09:00` and fractional
/// seconds; times before 1970 become 1970.
pub fn read(text: &str) -> Option<u64> {
    if !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return text.parse().ok();
    }
    let pieces = Pieces::parse(text).ok().filter(|_| is_rfc3339(text.as_bytes()))?;
    let offset = SignedDuration::from_secs(pieces.to_numeric_offset()?.seconds().into());
    let since = pieces.date().to_datetime(pieces.time()?).duration_since(EPOCH) - offset;
    Some(u64::try_from(since.as_millis()).unwrap_or(0))
}

/// Returns `true` for the form of RFC 3339. `jiff` reads more of ISO 8601: no separators, no seconds, short offsets,
/// decimal commas and the names of time zones.
fn is_rfc3339(text: &[u8]) -> bool {
    let has_separators =
        [(4, b'-'), (7, b'-'), (13, b':'), (16, b':')].iter().all(|(at, sign)| text.get(*at) == Some(sign));
    let has_offset = match text {
        [.., b'Z' | b'z'] => true,
        [front @ .., b'+' | b'-', _, _, b':', _, _] => front.len() >= 19,
        _ => false,
    };
    has_separators && has_offset && !text.contains(&b',')
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAST_MS: u64 = 253_402_300_799_999;

    #[test]
    fn moments_are_written_as_the_calendar_has_them() {
        assert_eq!(rfc3339(0), "1970-01-01T00:00:00.000Z");
        assert_eq!(rfc3339(951_782_400_000), "2000-02-29T00:00:00.000Z");
        assert_eq!(rfc3339(1_709_251_199_999), "2024-02-29T23:59:59.999Z");
        assert_eq!(rfc3339(4_107_542_400_000), "2100-03-01T00:00:00.000Z");
        assert_eq!(rfc3339(LAST_MS), "9999-12-31T23:59:59.999Z");
        assert_eq!(rfc3339(u64::MAX), rfc3339(LAST_MS), "no other year is told");
    }

    #[test]
    fn what_is_written_can_be_read_again() {
        for ms in [0, 1, 951_782_400_000, 1_709_251_199_999, 4_107_542_400_000, 253_402_300_799_999] {
            assert_eq!(read(&rfc3339(ms)), Some(ms));
            assert_eq!(read(&ms.to_string()), Some(ms));
        }
        for day in 0..60_000 {
            assert_eq!(read(&rfc3339(day * 86_400_000)), Some(day * 86_400_000));
        }
        for (text, ms) in [
            ("1970-01-01T09:00:00+09:00", 0),
            ("1970-01-01T00:00:00-05:00", 18_000_000),
            ("1970-01-01t00:00:01.25z", 1250),
            ("1970-01-01 00:00:00.1239999Z", 123),
            ("1970-01-01T00:00:00+00:01", 0),
            ("1969-12-31T23:59:59Z", 0),
            ("0862-08-09T20:02:50+20:22", 0),
            ("0000-02-29T00:00:00Z", 0),
        ] {
            assert_eq!(read(text), Some(ms), "{text}");
        }
    }

    #[test]
    fn what_is_no_moment_is_not_read() {
        for text in [
            "",
            "-1",
            "now",
            "2026-11-15",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-01-00T00:00:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T00:60:00Z",
            "2026-01-01T00:00:00",
            "2026-01-01T00:00:00+9:00",
            "2026-01-01T00:00:00é",
            "1969-02-29T00:00:00Z",
            "+026-01-01T00:00:00Z",
            "2026-01-01T00:00:00.Z",
            "2026-01-01T00:00:00,5Z",
            "20260101T000000Z",
            "2026-01-01T00Z",
            "2026-01-01T00:00Z",
            "2026-01-01T00:00:00+09",
            "2026-01-01T00:00:00+0900",
            "2026-01-01T00:00:00+09:00:30",
            "2026-01-01T00:00:00+09:00[Asia/Tokyo]",
            "2026-01-01T00:00:00Z[UTC]",
            "+002026-01-01T00:00:00Z",
            "-000001-01-01T00:00:00Z",
            "2026-W01-1T00:00:00Z",
            " 2026-01-01T00:00:00Z",
            "2026-01-01T00:00:00Z ",
        ] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}

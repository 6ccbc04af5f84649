//! Date of a timestamp.

use jiff::Timestamp;
use jiff::tz::Offset;

/// Formats milliseconds since 1970 as a UTC date like `2026-07-04`. Returns any other text unchanged.
pub(super) fn day(timestamp: &str) -> String {
    let moment = timestamp.trim().parse().ok().and_then(|ms| Timestamp::from_millisecond(ms).ok());
    moment.map_or_else(|| timestamp.to_owned(), |moment| Offset::UTC.to_datetime(moment).date().to_string())
}

#[cfg(test)]
mod tests {
    use super::day;

    #[test]
    fn days_are_those_of_the_calendar() {
        for (timestamp, expected) in [
            ("0", "1970-01-01"),
            ("951782400000", "2000-02-29"),
            ("951868800000", "2000-03-01"),
            ("1783123200000", "2026-07-04"),
            ("-1", "1969-12-31"),
            ("soon", "soon"),
            ("9223372036854775807", "9223372036854775807"),
        ] {
            assert_eq!(day(timestamp), expected);
        }
    }
}

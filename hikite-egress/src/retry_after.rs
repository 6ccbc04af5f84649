//! Parses `Retry-After`, in seconds or as a date (RFC 9110, 10.2.3).

use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::{DATE, RETRY_AFTER};

pub fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?.trim();
    if let Ok(seconds) = text.parse() {
        return Some(Duration::from_secs(seconds));
    }
    let until = httpdate::parse_http_date(text).ok()?;
    Some(until.duration_since(now(headers)).unwrap_or_default())
}

/// Returns milliseconds since 1970 by the `Date` header, or by the local clock if there is none.
pub fn now_ms(headers: &HeaderMap) -> u64 {
    let since = now(headers).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

fn now(headers: &HeaderMap) -> SystemTime {
    let sent_at = headers.get(DATE).and_then(|date| httpdate::parse_http_date(date.to_str().ok()?).ok());
    sent_at.unwrap_or_else(wall_clock)
}

#[expect(clippy::disallowed_methods, reason = "the date of a header means the wall clock")]
fn wall_clock() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<u64>) {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, text.parse().expect("a value"));
        headers.insert(DATE, "Wed, 21 Oct 2015 07:28:00 GMT".parse().expect("a value"));
        assert_eq!(retry_after(&headers), expected.map(Duration::from_secs), "{text}");
    }

    #[test]
    fn seconds_and_dates_are_understood() {
        check("7", Some(7));
        check(" 0 ", Some(0));
        check("Wed, 21 Oct 2015 07:28:30 GMT", Some(30));
        check("Wed, 21 Oct 2015 07:27:00 GMT", Some(0));
        check("-1", None);
        check("soon", None);
        check("1.5", None);
    }

    #[test]
    fn without_a_date_the_wall_clock_counts() {
        let mut headers = HeaderMap::new();
        headers.insert(RETRY_AFTER, "Wed, 21 Oct 2015 07:28:30 GMT".parse().expect("a value"));
        assert_eq!(retry_after(&headers), Some(Duration::ZERO));
    }
}

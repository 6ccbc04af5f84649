//! What a refusal says of later: which statuses mean that the server cannot serve now, and when to come back.

use std::time::{Duration, SystemTime};

use hikite_core::error::{Error, Kind};
use http::header::RETRY_AFTER;
use http::{HeaderMap, StatusCode};

/// Longer is not worth remembering.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// The error as this status means it: too often, not now, or as it was.
pub(crate) fn judged(error: Error, status: StatusCode, wait: Option<Duration>) -> Error {
    let kind = match status {
        StatusCode::TOO_MANY_REQUESTS => Kind::RateLimit,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            Kind::UpstreamUnavailable
        }
        _ => return error,
    };
    let error = Error { kind, ..error };
    match wait {
        Some(wait) => error.hint(format!("try again in {} s", wait.as_secs_f64().ceil())).after(wait),
        None => error,
    }
}

/// How long the server asks to be left alone.
pub(crate) fn wait(headers: &HeaderMap) -> Option<Duration> {
    let text = headers.get(RETRY_AFTER)?.to_str().ok()?;
    read(text.trim(), now())
}

/// Seconds, or a date of HTTP; one in the past means now.
fn read(text: &str, now: SystemTime) -> Option<Duration> {
    let wait = match text.parse() {
        Ok(seconds) => Duration::from_secs(seconds),
        Err(_) => httpdate::parse_http_date(text).ok()?.duration_since(now).unwrap_or_default(),
    };
    Some(wait.min(LONGEST))
}

#[expect(clippy::disallowed_methods, reason = "a date of the server is held against the date here")]
fn now() -> SystemTime {
    SystemTime::now()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_dates_are_read_and_nonsense_is_not() {
        let now = httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").expect("a date");
        let check = |text: &str, seconds: Option<u64>| {
            assert_eq!(read(text, now), seconds.map(Duration::from_secs), "{text}");
        };
        check("0", Some(0));
        check("120", Some(120));
        check("Sun, 06 Nov 1994 08:50:00 GMT", Some(23));
        check("Sunday, 06-Nov-94 08:49:40 GMT", Some(3));
        check("Sun, 06 Nov 1994 08:00:00 GMT", Some(0));
        check("99999999999", Some(86_400));
        for nonsense in ["", "-1", "1.5", "soon", "Sun, 06 Nov", "999999999999999999999999"] {
            check(nonsense, None);
        }
    }

    #[test]
    fn only_statuses_that_mean_later_change_the_kind() {
        let kind = |status: u16| {
            let error = Error::new(Kind::ToolExecution, "no");
            judged(error, StatusCode::from_u16(status).expect("a status"), None).kind
        };
        assert_eq!(kind(429), Kind::RateLimit);
        for status in [502, 503, 504] {
            assert_eq!(kind(status), Kind::UpstreamUnavailable, "{status}");
        }
        for status in [400, 401, 404, 408, 500, 501] {
            assert_eq!(kind(status), Kind::ToolExecution, "{status}");
        }
        let told = judged(Error::new(Kind::Internal, "no"), StatusCode::SERVICE_UNAVAILABLE, Some(LONGEST));
        assert_eq!((told.retry_after, told.hint.as_deref()), (Some(LONGEST), Some("try again in 86400 s")));
    }
}

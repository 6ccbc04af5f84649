//! Maps HTTP statuses that mean "try again later" to errors, with the delay of `Retry-After`.

use std::time::Duration;

use hikite_core::error::{Error, ErrorKind};
use http::{HeaderMap, StatusCode};

/// Upper bound of the delay.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Sets the error kind for statuses of rate limiting and unavailability; leaves other errors unchanged.
pub(crate) fn classify(error: Error, status: StatusCode, wait: Option<Duration>) -> Error {
    let kind = match status {
        StatusCode::TOO_MANY_REQUESTS => ErrorKind::RateLimit,
        StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE | StatusCode::GATEWAY_TIMEOUT => {
            ErrorKind::UpstreamUnavailable
        }
        _ => return error,
    };
    let error = Error { kind, ..error };
    match wait {
        Some(wait) => error.hint(format!("Try again in {} s.", wait.as_secs_f64().ceil())).after(wait),
        None => error,
    }
}

/// Returns the delay of `Retry-After`.
pub(crate) fn wait(headers: &HeaderMap) -> Option<Duration> {
    Some(hikite_egress::retry_after(headers)?.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_statuses_that_mean_later_change_the_kind() {
        let kind = |status: u16| {
            let error = Error::new(ErrorKind::ToolExecution, "no");
            classify(error, StatusCode::from_u16(status).expect("a status"), None).kind
        };
        assert_eq!(kind(429), ErrorKind::RateLimit);
        for status in [502, 503, 504] {
            assert_eq!(kind(status), ErrorKind::UpstreamUnavailable, "{status}");
        }
        for status in [400, 401, 404, 408, 500, 501] {
            assert_eq!(kind(status), ErrorKind::ToolExecution, "{status}");
        }
        let told = classify(Error::new(ErrorKind::Internal, "no"), StatusCode::SERVICE_UNAVAILABLE, Some(LONGEST));
        assert_eq!((told.retry_after, told.hint.as_deref()), (Some(LONGEST), Some("Try again in 86400 s.")));
    }

    #[test]
    fn a_wait_of_years_counts_as_a_day() {
        let mut headers = HeaderMap::new();
        headers.insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("99999999999"));
        assert_eq!(wait(&headers), Some(LONGEST));
    }
}

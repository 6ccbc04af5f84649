//! What a refusal says of later: which statuses mean that the server cannot serve now, and when to come back.

use std::time::Duration;

use hikite_core::error::{Error, Kind};
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
    Some(hikite_egress::retry_after(headers)?.min(LONGEST))
}

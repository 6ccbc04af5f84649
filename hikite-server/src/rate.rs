//! Request rate limit per caller, reported in `RateLimit` headers.

use std::time::Duration;

use axum::response::Response;
use hikite_core::caller::Caller;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::rate::{Rate, RateRemaining};
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use crate::app::App;
use crate::error_response::{error_response, whole_seconds};

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// The rate limit and what is left of it after an admitted request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimitState(Rate, RateRemaining);

/// Takes one request from the caller's bucket, if there is a limit.
pub(crate) fn take(app: &App, caller: &Caller) -> Result<Option<RateLimitState>, Response> {
    let Some(rate) = app.settings.load().rate else { return Ok(None) };
    let (taken, left) = app.buckets.take(&caller.subject, rate, app.started.elapsed());
    match taken {
        Ok(()) => Ok(Some(RateLimitState(rate, left))),
        Err(wait) => Err(set_headers(error_response(too_often(rate, wait)), Some(RateLimitState(rate, left)))),
    }
}

fn too_often(rate: Rate, wait: Duration) -> Error {
    let message = format!("Rate limit exceeded: at most {} requests in {:?}.", rate.count, rate.per);
    let hint = format!("Try again in {} s.", whole_seconds(wait));
    Error { retry_after: Some(wait), ..Error::new(ErrorKind::RateLimit, message).hint(hint) }
}

/// Adds the rate limit headers, if there is a limit.
pub(crate) fn set_headers(mut response: Response, rate_limit: Option<RateLimitState>) -> Response {
    if let Some(RateLimitState(rate, left)) = rate_limit {
        write(response.headers_mut(), rate, left);
    }
    response
}

fn write(headers: &mut HeaderMap, rate: Rate, left: RateRemaining) {
    headers.insert(LIMIT, rate.count.into());
    headers.insert(REMAINING, left.count.into());
    headers.insert(RESET, whole_seconds(left.until_full).into());
    let policy = format!("{};w={}", rate.count, whole_seconds(rate.per));
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(POLICY, policy);
    }
}

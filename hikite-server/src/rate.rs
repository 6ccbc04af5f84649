//! How often one caller may come. Each has a bucket of its own, the answers tell what is left in it, and there is an
//! end to how many are remembered.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use axum::response::Response;
use hikite_core::caller::Caller;
use hikite_core::error::{Error, Kind};
use hikite_core::rate::{Bucket, Left, Rate};
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};
use parking_lot::Mutex;

use crate::app::App;
use crate::refusal::{refusal, whole_seconds};

const LIMIT: HeaderName = HeaderName::from_static("ratelimit-limit");
const REMAINING: HeaderName = HeaderName::from_static("ratelimit-remaining");
const RESET: HeaderName = HeaderName::from_static("ratelimit-reset");
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// Callers that are remembered; beyond it those are forgotten who have most left.
const CALLERS: usize = 10_000;

#[derive(Debug, Default)]
pub(crate) struct Buckets(Mutex<HashMap<Arc<str>, Bucket>>);

impl Buckets {
    /// Takes one for the caller, or says how long to wait; and what is left.
    fn take(&self, caller: &Caller, rate: Rate, now: Duration) -> (Result<(), Duration>, Left) {
        let mut buckets = self.0.lock();
        if buckets.len() >= CALLERS && !buckets.contains_key(&caller.subject) {
            make_room(&mut buckets, rate, now);
        }
        let bucket = buckets.entry(Arc::clone(&caller.subject)).or_default();
        (bucket.take(rate, now), bucket.left(rate, now))
    }
}

/// Forgets whoever could start afresh anyway, else the one who is nearest to it.
fn make_room(buckets: &mut HashMap<Arc<str>, Bucket>, rate: Rate, now: Duration) {
    let wait = |bucket: &Bucket| bucket.left(rate, now).until_full;
    buckets.retain(|_, bucket| wait(bucket) > Duration::ZERO);
    if buckets.len() >= CALLERS {
        let nearest = buckets.iter().min_by_key(|(_, bucket)| wait(bucket)).map(|(name, _)| Arc::clone(name));
        nearest.map(|name| buckets.remove(&name));
    }
}

/// A request that was let through where there is a limit, and what is left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn(Rate, Left);

/// Takes one for the caller, where there is a limit.
pub(crate) fn take(app: &App, caller: &Caller) -> Result<Option<Turn>, Response> {
    let Some(rate) = app.settings.load().rate else { return Ok(None) };
    let (taken, left) = app.buckets.take(caller, rate, app.started.elapsed());
    match taken {
        Ok(()) => Ok(Some(Turn(rate, left))),
        Err(wait) => Err(tell(refusal(too_often(rate, wait)), Some(Turn(rate, left)))),
    }
}

fn too_often(rate: Rate, wait: Duration) -> Error {
    let message = format!("Rate limit exceeded: at most {} requests in {:?}", rate.count, rate.per);
    let hint = format!("try again in {} s", whole_seconds(wait));
    Error { retry_after: Some(wait), ..Error::new(Kind::RateLimit, message).hint(hint) }
}

/// The answer with what is left, where there is a limit.
pub(crate) fn tell(mut response: Response, turn: Option<Turn>) -> Response {
    if let Some(Turn(rate, left)) = turn {
        write(response.headers_mut(), rate, left);
    }
    response
}

fn write(headers: &mut HeaderMap, rate: Rate, left: Left) {
    headers.insert(LIMIT, rate.count.into());
    headers.insert(REMAINING, left.count.into());
    headers.insert(RESET, whole_seconds(left.until_full).into());
    let policy = format!("{};w={}", rate.count, whole_seconds(rate.per));
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        headers.insert(POLICY, policy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(name: &str) -> Caller {
        Caller::named(name)
    }

    const RATE: Rate = Rate { count: 2, per: Duration::from_secs(60) };
    const START: Duration = Duration::from_secs(1000);

    #[test]
    fn each_caller_has_a_bucket_of_its_own() {
        let buckets = Buckets::default();
        for _ in 0..2 {
            assert_eq!(buckets.take(&caller("a"), RATE, START).0, Ok(()));
        }
        let (refused, left) = buckets.take(&caller("a"), RATE, START);
        assert_eq!((refused, left.count), (Err(Duration::from_secs(30)), 0));
        assert_eq!(buckets.take(&caller("b"), RATE, START).1.count, 1);
    }

    #[test]
    fn the_table_has_an_end_and_keeps_who_has_least_left() {
        let buckets = Buckets::default();
        for _ in 0..2 {
            assert!(buckets.take(&caller("busy"), RATE, START).0.is_ok());
        }
        for number in 0..CALLERS + 100 {
            assert!(buckets.take(&caller(&number.to_string()), RATE, START).0.is_ok());
        }
        assert!(buckets.0.lock().len() <= CALLERS);
        assert!(buckets.take(&caller("busy"), RATE, START).0.is_err(), "it was not forgotten");
        let later = START + Duration::from_secs(60);
        assert!(buckets.take(&caller("new"), RATE, later).0.is_ok());
        assert_eq!(buckets.0.lock().len(), 1, "all others could start afresh");
    }
}

//! The one name of a request, from its first log line to its answer. Outermost on every route: it also writes the
//! bodies of refusals, and keeps a panic to the request that had it.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use futures_util::FutureExt;
use hikite_core::error::{Error, Kind};
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use crate::mcp::random_id;
use crate::refusal::{refusal, written};

pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");
const LONGEST: usize = 128;

/// In the extensions of every request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(pub Arc<str>);

impl RequestId {
    /// The client's own id if it is one and can be shown anywhere, else a new one.
    fn of(headers: &HeaderMap) -> Self {
        let mut sent = headers.get_all(HEADER).iter();
        let sent = match (sent.next(), sent.next()) {
            (Some(id), None) => id.to_str().ok().filter(|id| is_well_formed(id)),
            _ => None,
        };
        sent.map_or_else(Self::random, |id| Self(id.into()))
    }

    /// Ids are for finding things, not for proof: without randomness there is still an answer.
    pub(crate) fn random() -> Self {
        Self(random_id().map_or_else(|_| "unknown".into(), Into::into))
    }
}

fn is_well_formed(id: &str) -> bool {
    !id.is_empty() && id.len() <= LONGEST && id.bytes().all(|byte| byte.is_ascii_graphic())
}

pub(crate) async fn tag(mut request: Request, next: Next) -> Response {
    let id = RequestId::of(request.headers());
    request.extensions_mut().insert(id.clone());
    let response = match AssertUnwindSafe(next.run(request)).catch_unwind().await {
        Ok(response) => response,
        Err(_) => {
            tracing::error!(request_id = &*id.0, "a request failed inside hikite");
            refusal(Error::new(Kind::Internal, "a handler panicked"))
        }
    };
    let mut response = written(response, &id);
    if let Ok(value) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(HEADER, value);
    }
    response
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::body::Body;
    use axum::middleware::from_fn;
    use axum::routing::get;
    use http_body_util::BodyExt;
    use tower::ServiceExt;

    use super::*;

    fn id_for(sent: &[&str]) -> String {
        let mut headers = HeaderMap::new();
        for value in sent {
            headers.append(HEADER, value.parse().expect("a value"));
        }
        RequestId::of(&headers).0.to_string()
    }

    #[test]
    fn a_well_formed_id_is_kept_and_any_other_replaced() {
        let long = "x".repeat(LONGEST);
        for id in ["a", "0af7651916cd43dd8448eb211c80319c", "job/7:retry=2", &long] {
            assert_eq!(id_for(&[id]), *id);
        }
        let too_long = "x".repeat(LONGEST + 1);
        for wrong in [&[][..], &[""], &["a b"], &["a\tb"], &["\u{e9}"], &[&too_long], &["a", "b"]] {
            let id = id_for(wrong);
            assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{wrong:?} {id}");
        }
        assert_ne!(id_for(&[]), id_for(&[]));
    }

    #[tokio::test]
    async fn a_panic_is_the_error_of_its_request_alone() {
        async fn panics() {
            panic!("the secret of the house");
        }
        let router = Router::new()
            .route("/panics", get(panics))
            .route("/works", get(|| async { "fine" }))
            .layer(from_fn(tag));
        let ask = |path: &str| {
            let request = Request::get(path).header(HEADER, "r-7").body(Body::empty()).expect("a request");
            router.clone().oneshot(request)
        };
        let failed = ask("/panics").await.expect("an answer");
        assert_eq!(failed.status(), 500);
        assert_eq!(failed.headers()[HEADER], "r-7");
        let body = failed.into_body().collect().await.expect("a body").to_bytes();
        let body = hikite_core::json::Raw::parse(body).expect("JSON").value();
        assert_eq!(
            (&body["error"], &body["code"]),
            (&"Internal server error".into(), &"INTERNAL_ERROR".into())
        );
        assert_eq!(body["requestId"], "r-7");
        assert_eq!(ask("/works").await.expect("an answer").status(), 200);
    }
}

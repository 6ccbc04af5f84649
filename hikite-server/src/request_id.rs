//! The id that everything about one request carries: the client's own where it is well formed, else a random one.

use std::sync::Arc;

use axum::extract::Request;
use axum::middleware::Next;
use axum::response::Response;
use http::header::{HeaderMap, HeaderName, HeaderValue};

use crate::mcp::random_id;

const HEADER: HeaderName = HeaderName::from_static("x-request-id");
/// The longest id that is taken from a client.
const LONGEST: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(pub Arc<str>);

impl RequestId {
    pub fn random() -> Self {
        Self(random_id().map_or_else(|_| "unknown".into(), Into::into))
    }

    fn of(headers: &HeaderMap) -> Self {
        let mut sent = headers.get_all(HEADER).iter();
        let (Some(sent), None) = (sent.next(), sent.next()) else { return Self::random() };
        let sent = sent.as_bytes();
        let well_formed = (1..=LONGEST).contains(&sent.len()) && sent.iter().all(u8::is_ascii_graphic);
        match std::str::from_utf8(sent).ok().filter(|_| well_formed) {
            Some(id) => Self(id.into()),
            None => Self::random(),
        }
    }
}

/// Gives every request its id, and tells it with the answer.
pub(crate) async fn assign(mut request: Request, next: Next) -> Response {
    let id = RequestId::of(request.headers());
    request.extensions_mut().insert(id.clone());
    let mut response = next.run(request).await;
    if let Ok(id) = HeaderValue::from_str(&id.0) {
        response.headers_mut().insert(HEADER, id);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_taken_only_where_it_is_well_formed() {
        let of = |values: &[&str]| {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(HEADER, HeaderValue::from_str(value).expect("a value"));
            }
            RequestId::of(&headers).0
        };
        assert_eq!(&*of(&["a-1"]), "a-1");
        assert_eq!(&*of(&[&"x".repeat(128)]), "x".repeat(128));
        for bad in [vec![], vec![""], vec!["a b"], vec!["a", "b"], vec![&*"x".repeat(129)]] {
            let id = of(&bad);
            assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{bad:?} {id}");
        }
        assert_ne!(of(&[]), of(&[]));
    }
}

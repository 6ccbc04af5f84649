//! The request id, used from the first log line to the response.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};

use axum::response::Response;
use hikite_core::hex::hex;
use hikite_gateway::now_ms;
use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

use crate::error_response::with_error_body;

pub(crate) const HEADER: HeaderName = HeaderName::from_static("x-request-id");
const LENGTH_MAX: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(pub Arc<str>);

impl RequestId {
    /// Returns the client's id if it is well formed, else a new one.
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        let mut sent = headers.get_all(HEADER).iter();
        let sent = match (sent.next(), sent.next()) {
            (Some(id), None) => id.to_str().ok().filter(|id| is_well_formed(id)),
            _ => None,
        };
        sent.map_or_else(Self::random, |id| Self(id.into()))
    }

    /// Generates an id. Ids identify requests but are not secrets: their key is drawn once per process. They begin with
    /// the time, so that index inserts are local.
    pub(crate) fn random() -> Self {
        static KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);
        static LAST: AtomicU64 = AtomicU64::new(0);
        let number = LAST.fetch_add(1, Ordering::Relaxed);
        let mut id = [0; 16];
        id[..8].copy_from_slice(&(now_ms() << 16 | number & 0xffff).to_be_bytes());
        id[8..].copy_from_slice(&KEY.hash_one(number).to_be_bytes());
        Self(hex(&id).into())
    }

    /// Sets the id header, and writes the body of an error response, which contains the id.
    pub(crate) fn set_header(&self, response: Response) -> Response {
        let mut response = with_error_body(response, self);
        if let Ok(value) = HeaderValue::from_str(&self.0) {
            response.headers_mut().insert(HEADER, value);
        }
        response
    }
}

fn is_well_formed(id: &str) -> bool {
    !id.is_empty() && id.len() <= LENGTH_MAX && id.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
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
        let long = "x".repeat(LENGTH_MAX);
        for id in ["a", "0af7651916cd43dd8448eb211c80319c", "job/7:retry=2", &long] {
            assert_eq!(id_for(&[id]), *id);
        }
        let too_long = "x".repeat(LENGTH_MAX + 1);
        for wrong in [&[][..], &[""], &["a b"], &["a\tb"], &["\u{e9}"], &[&too_long], &["a", "b"]] {
            let id = id_for(wrong);
            assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{wrong:?} {id}");
        }
        assert_ne!(id_for(&[]), id_for(&[]));
    }
}

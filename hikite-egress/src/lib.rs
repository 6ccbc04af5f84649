//! The only crate that builds HTTP clients. Redirects are not followed, because they would carry credentials to hosts
//! that nobody configured, and proxy settings of the environment are ignored. Addresses that no administrator
//! configured are resolved, checked and pinned before anything is sent.

mod allow_list;
mod body;
mod client;
mod connector;
mod network;
mod pool;
mod retry_after;
mod tls;

use bytes::{Bytes, BytesMut};
use http::Uri;
use http_body_util::BodyExt;
use hyper::body::Body as _;
use url::Url;

pub use allow_list::{AllowList, AllowedAddress};
pub use body::ResponseBody;
pub use client::{EgressClient, RequestBody, ResponseFuture, SendError};
pub use network::IpNetwork;
pub use retry_after::{now_ms, retry_after};
pub use tls::{MinTls, PinnedCertificate};

/// Reads a body to its end; an error if it exceeds `limit` bytes.
pub async fn read(mut body: ResponseBody, limit: usize) -> Result<Bytes, SendError> {
    let announced = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    // A `RequestBody-Length` over the limit fails before anything is read.
    if announced > limit {
        return Err(SendError::TooLarge(limit));
    }
    let mut whole: Option<BytesMut> = None;
    let mut first: Option<Bytes> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| SendError::Transfer(chain(&error)))?;
        let Ok(data) = frame.into_data() else { continue };
        let so_far = whole.as_ref().map_or_else(|| first.as_ref().map_or(0, Bytes::len), BytesMut::len);
        if so_far + data.len() > limit {
            return Err(SendError::TooLarge(limit));
        }
        // Most responses arrive in one chunk, which is then not copied.
        match (&mut whole, first.take()) {
            (Some(whole), _) => whole.extend_from_slice(&data),
            (None, None) => first = Some(data),
            (None, Some(head)) => {
                let mut buffer = BytesMut::with_capacity(announced.max(head.len() + data.len()));
                buffer.extend_from_slice(&head);
                buffer.extend_from_slice(&data);
                whole = Some(buffer);
            }
        }
    }
    Ok(whole.map(BytesMut::freeze).or(first).unwrap_or_default())
}

/// Resolves `reference` against `base`; `None` if it points to another origin or contains credentials.
pub fn resolve_same_origin(base: &Uri, reference: &str) -> Option<Uri> {
    let base = Url::parse(&base.to_string()).ok()?;
    let target = base.join(reference).ok()?;
    let has_credentials = !target.username().is_empty() || target.password().is_some();
    (target.origin() == base.origin() && !has_credentials).then(|| target.as_str().parse().ok())?
}

/// Joins an error with its causes, outermost first; hyper's own text omits them.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(reference: &str, expected: Option<&str>) {
        let base = Uri::from_static("http://127.0.0.1:9/a/sse");
        let resolved = resolve_same_origin(&base, reference).map(|uri| uri.to_string());
        assert_eq!(resolved.as_deref(), expected, "{reference}");
    }

    #[test]
    fn an_endpoint_stays_on_the_origin_that_named_it() {
        check("/messages?id=1", Some("http://127.0.0.1:9/messages?id=1"));
        check("/messages?next=http://x/", Some("http://127.0.0.1:9/messages?next=http://x/"));
        check("messages", Some("http://127.0.0.1:9/a/messages"));
        check("http://127.0.0.1:9/x", Some("http://127.0.0.1:9/x"));
        check("http://evil.example/x", None);
        check("https://127.0.0.1:9/x", None);
        check("?id=1", Some("http://127.0.0.1:9/a/sse?id=1"));
        check("../b/./c", Some("http://127.0.0.1:9/b/c"));
        check("/a b#c", Some("http://127.0.0.1:9/a%20b"));
        for foreign in ["//evil.example/x", "\\\\evil.example/x", "http:\\\\evil.example", "http://127.0.0.1:99/x"] {
            check(foreign, None);
        }
        for wrong in ["http://user@127.0.0.1:9/x", "http://:secret@127.0.0.1:9/x", "javascript:x", "data:,x", "http://"]
        {
            check(wrong, None);
        }
    }
}

//! Who is calling: the bearer token, checked in constant time, becomes a `Caller`.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use hikite_core::caller::Caller;
use hikite_core::error::{Error, Kind};
use hikite_core::secret::Secret;
use http::HeaderMap;
use http::header::{AUTHORIZATION, HeaderValue, WWW_AUTHENTICATE};
use subtle::ConstantTimeEq;

use crate::app::App;
use crate::refusal::refusal;

#[derive(Clone, Debug)]
pub enum Auth {
    /// The local token makes its holder the owner.
    Token(Secret),
    /// Whoever can connect is the owner; only on a loopback address, and only if asked for.
    None,
}

impl Auth {
    pub(crate) fn caller(&self, headers: &HeaderMap) -> Option<Caller> {
        let Self::Token(token) = self else { return Some(Caller::owner()) };
        bears(headers, token).then(Caller::owner)
    }
}

/// Whether the request brings exactly this token.
pub(crate) fn bears(headers: &HeaderMap, token: &Secret) -> bool {
    let mut sent = headers.get_all(AUTHORIZATION).iter();
    let (Some(value), None) = (sent.next(), sent.next()) else { return false };
    let Some((scheme, sent)) = value.to_str().ok().and_then(|value| value.split_once(' ')) else {
        return false;
    };
    scheme.eq_ignore_ascii_case("bearer")
        && bool::from(sent.trim().as_bytes().ct_eq(token.expose().as_bytes()))
}

pub(crate) async fn require_caller(
    State(app): State<Arc<App>>,
    mut request: Request,
    next: Next,
) -> Response {
    let caller = app.settings.load().auth.caller(request.headers());
    let Some(caller) = caller else { return unauthorised() };
    request.extensions_mut().insert(caller);
    next.run(request).await
}

/// Stands before what changes things for everybody.
pub(crate) async fn require_admin(
    Extension(caller): Extension<Caller>,
    request: Request,
    next: Next,
) -> Response {
    if !caller.is_admin() {
        let error = Error::new(Kind::Authorization, "only an admin may do this");
        return refusal(error.hint("ask whoever runs this hikite"));
    }
    next.run(request).await
}

pub(crate) fn unauthorised() -> Response {
    let error = Error::new(Kind::Authentication, "a valid bearer token is required").hint(
        "send `Authorization: Bearer <token>`; the local token is in the file `token` of the data folder",
    );
    let mut response = refusal(error);
    let challenge = HeaderValue::from_static("Bearer realm=\"hikite\"");
    response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &[&'static str], allowed: bool) {
        let auth = Auth::Token(Secret::hidden("s3cret"));
        let mut map = HeaderMap::new();
        for value in headers {
            map.append(AUTHORIZATION, HeaderValue::from_static(value));
        }
        assert_eq!(auth.caller(&map).is_some(), allowed, "{headers:?}");
    }

    #[test]
    fn only_the_one_right_token_is_let_in() {
        check(&["Bearer s3cret"], true);
        check(&["bearer s3cret"], true);
        check(&[], false);
        check(&["Bearer s3cre"], false);
        check(&["Bearer "], false);
        check(&["Basic s3cret"], false);
        check(&["s3cret"], false);
        check(&["Bearer s3cret", "Bearer other"], false);
    }
}

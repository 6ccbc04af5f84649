//! JSON responses of the OAuth endpoints: uncached ones, and OAuth errors.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use hikite_core::error::Error;
use hikite_identity::TokenError;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, PRAGMA, RETRY_AFTER, WWW_AUTHENTICATE};
use serde_json::{Value, json};

use crate::error_response::whole_seconds;

/// An OAuth error: the code and its description.
#[derive(Clone, Debug)]
pub(crate) struct OauthError {
    status: StatusCode,
    code: &'static str,
    why: String,
    /// `true` if the client authenticated with a header, which gets a `WWW-Authenticate` response.
    by_header: bool,
    /// Delay before a retry, if known.
    retry_after: Option<Duration>,
}

impl OauthError {
    pub(crate) fn new(code: &'static str, why: impl Into<String>) -> Self {
        let status = match code {
            "invalid_client" => StatusCode::UNAUTHORIZED,
            "server_error" => StatusCode::INTERNAL_SERVER_ERROR,
            "temporarily_unavailable" => StatusCode::TOO_MANY_REQUESTS,
            "access_denied" => StatusCode::FORBIDDEN,
            _ => StatusCode::BAD_REQUEST,
        };
        Self { status, code, why: why.into(), by_header: false, retry_after: None }
    }

    /// Sets whether the client authenticated with a header.
    #[must_use]
    pub(crate) fn by_header(self, by_header: bool) -> Self {
        Self { by_header, ..self }
    }
}

impl From<Error> for OauthError {
    fn from(error: Error) -> Self {
        match error.kind.definition().http {
            429 | 503 => {
                Self { retry_after: error.retry_after, ..Self::new("temporarily_unavailable", &*error.message) }
            }
            status @ 400..500 if status != 403 => Self::new("invalid_request", &*error.message),
            _ => {
                tracing::error!(%error, "failed to issue a token");
                Self::new("server_error", "hikite itself failed. Its log has details.")
            }
        }
    }
}

impl From<TokenError> for OauthError {
    fn from(denied: TokenError) -> Self {
        match denied {
            TokenError::Client(why) => Self::new("invalid_client", why),
            TokenError::Grant(why) => Self::new("invalid_grant", why),
            TokenError::Replay(again) => Self::new("invalid_grant", again.why),
            TokenError::Scope(why) => Self::new("invalid_scope", why),
            TokenError::Target(why) => Self::new("invalid_target", why),
            TokenError::Failed(error) => error.into(),
        }
    }
}

impl IntoResponse for OauthError {
    fn into_response(self) -> Response {
        let mut response = uncached(self.status, &json!({ "error": self.code, "error_description": self.why }));
        if self.status == StatusCode::UNAUTHORIZED && self.by_header {
            let challenge = HeaderValue::from_static("Basic realm=\"hikite\"");
            response.headers_mut().insert(WWW_AUTHENTICATE, challenge);
        }
        if let Some(wait) = self.retry_after {
            response.headers_mut().insert(RETRY_AFTER, whole_seconds(wait).into());
        }
        response
    }
}

/// Builds a JSON response with `no-store`.
pub(crate) fn uncached(status: StatusCode, body: &Value) -> Response {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store"), (PRAGMA, "no-cache")];
    (status, headers, body.to_string()).into_response()
}

/// Builds a JSON response that may be cached for five minutes.
pub(crate) fn document(body: &Value) -> Response {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "public, max-age=300")];
    (headers, body.to_string()).into_response()
}

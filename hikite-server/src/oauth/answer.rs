//! JSON responses of the OAuth endpoints: uncached ones, and OAuth errors.

use std::time::Duration;

use axum::response::{IntoResponse, Response};
use hikite_core::error::Error;
use hikite_gateway::identity::Denied;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, HeaderValue, PRAGMA, RETRY_AFTER, WWW_AUTHENTICATE};
use serde_json::{Value, json};

use crate::refusal::whole_seconds;

/// An OAuth error: the code and its description.
#[derive(Clone, Debug)]
pub(crate) struct Refusal {
    status: StatusCode,
    word: &'static str,
    why: String,
    /// `true` if the client authenticated with a header, which gets a `WWW-Authenticate` response.
    by_header: bool,
    /// Delay before a retry, if known.
    retry_after: Option<Duration>,
}

impl Refusal {
    pub(crate) fn new(word: &'static str, why: impl Into<String>) -> Self {
        let status = match word {
            "invalid_client" => StatusCode::UNAUTHORIZED,
            "server_error" => StatusCode::INTERNAL_SERVER_ERROR,
            "temporarily_unavailable" => StatusCode::TOO_MANY_REQUESTS,
            "access_denied" => StatusCode::FORBIDDEN,
            _ => StatusCode::BAD_REQUEST,
        };
        Self { status, word, why: why.into(), by_header: false, retry_after: None }
    }

    /// Sets whether the client authenticated with a header.
    #[must_use]
    pub(crate) fn by_header(self, by_header: bool) -> Self {
        Self { by_header, ..self }
    }
}

impl From<Error> for Refusal {
    fn from(error: Error) -> Self {
        match error.kind.face().http {
            429 | 503 => Self {
                retry_after: error.retry_after,
                ..Self::new("temporarily_unavailable", &*error.message)
            },
            status @ 400..500 if status != 403 => Self::new("invalid_request", &*error.message),
            _ => {
                tracing::error!(%error, "a token could not be given");
                Self::new("server_error", "hikite itself failed; its log says more")
            }
        }
    }
}

impl From<Denied> for Refusal {
    fn from(denied: Denied) -> Self {
        match denied {
            Denied::Client(why) => Self::new("invalid_client", why),
            Denied::Grant(why) => Self::new("invalid_grant", why),
            Denied::Again(again) => Self::new("invalid_grant", again.why),
            Denied::Scope(why) => Self::new("invalid_scope", why),
            Denied::Target(why) => Self::new("invalid_target", why),
            Denied::Failed(error) => error.into(),
        }
    }
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = fresh(self.status, &json!({ "error": self.word, "error_description": self.why }));
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
pub(crate) fn fresh(status: StatusCode, body: &Value) -> Response {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-store"), (PRAGMA, "no-cache")];
    (status, headers, body.to_string()).into_response()
}

/// Builds a JSON response that may be cached for five minutes.
pub(crate) fn document(body: &Value) -> Response {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "public, max-age=300")];
    (headers, body.to_string()).into_response()
}

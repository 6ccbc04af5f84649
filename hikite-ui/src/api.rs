//! The REST API for the pages: the same handlers, called internally with the rights of the user at the browser.

use std::convert::Infallible;
use std::fmt;

use axum::body::Body;
use axum::extract::Request;
use axum::response::Response;
pub(crate) use hikite_core::uri::encode as part;
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method, StatusCode};
use http_body_util::{BodyExt, Limited};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tower::util::BoxCloneSyncService;
use tower::{Service, ServiceExt};

use crate::visitor::Visitor;

/// Maximum length of an API response.
const ANSWER_BYTES: usize = 64 << 20;

/// Client for `/v1`; the caller is in the extensions of the visitor.
#[derive(Clone)]
pub struct ApiClient(BoxCloneSyncService<Request, Response, Infallible>);

impl fmt::Debug for ApiClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ApiClient").finish_non_exhaustive()
    }
}

/// An error response of the API.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct ApiError {
    #[serde(skip)]
    pub(crate) status: StatusCode,
    /// Error code; empty if the pages made the error themselves.
    #[serde(default)]
    pub(crate) code: String,
    #[serde(rename = "error", default)]
    pub(crate) message: String,
    #[serde(default)]
    pub(crate) hint: Option<String>,
    #[serde(default)]
    pub(crate) details: Vec<FieldError>,
    /// Identifies the request in the log.
    #[serde(rename = "requestId", default)]
    pub(crate) request_id: Option<String>,
}

#[derive(Clone, Debug, Deserialize)]
pub(crate) struct FieldError {
    pub(crate) pointer: String,
    pub(crate) message: String,
}

impl ApiError {
    /// Builds an error of the pages; the message is in the language of the page and says what to do.
    pub(crate) fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into(), ..Self::default() }
    }

    fn with_code(code: &str, message: String) -> Self {
        Self { code: code.to_owned(), ..Self::new(StatusCode::BAD_GATEWAY, message) }
    }
}

impl ApiClient {
    pub fn new<S>(service: S) -> Self
    where
        S: Service<Request, Response = Response, Error = Infallible, Future: Send> + Clone + Send + Sync + 'static,
    {
        Self(BoxCloneSyncService::new(service))
    }

    /// Sends a request and returns the whole response.
    pub(crate) async fn ask(&self, visitor: &Visitor, request: ApiRequest<'_>) -> Response {
        let mut built = Request::new(request.body.map_or_else(Body::empty, |body| Body::from(body.to_string())));
        *built.method_mut() = request.method;
        *built.extensions_mut() = visitor.extensions.clone();
        if request.body.is_some() {
            built.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        }
        built.headers_mut().insert(ACCEPT, HeaderValue::from_static(request.accept));
        match request.path.parse() {
            Ok(uri) => *built.uri_mut() = uri,
            Err(_) => return refuse(StatusCode::BAD_REQUEST),
        }
        match self.0.clone().oneshot(built).await {
            Ok(response) => response,
            Err(never) => match never {},
        }
    }

    /// Sends a request and returns its JSON, or the error.
    pub(crate) async fn value(&self, visitor: &Visitor, request: ApiRequest<'_>) -> Result<Value, ApiError> {
        let response = self.ask(visitor, request).await;
        let status = response.status();
        let body = Limited::new(response.into_body(), ANSWER_BYTES).collect().await;
        let too_large = |_| ApiError::with_code("PAYLOAD_TOO_LARGE", "the response of the API is too large".to_owned());
        let body = body.map_err(too_large)?.to_bytes();
        if status.is_success() {
            return if body.is_empty() { Ok(Value::Null) } else { parse(&body) };
        }
        let mut refused: ApiError = serde_json::from_slice(&body).unwrap_or_default();
        if refused.code.is_empty() {
            code_of(status).clone_into(&mut refused.code);
        }
        Err(ApiError { status, ..refused })
    }

    pub(crate) async fn get<T: DeserializeOwned>(&self, visitor: &Visitor, path: &str) -> Result<T, ApiError> {
        self.value(visitor, ApiRequest::get(path)).await.and_then(read)
    }
}

/// A request to the API.
#[derive(Debug)]
pub(crate) struct ApiRequest<'a> {
    pub(crate) method: Method,
    pub(crate) path: &'a str,
    pub(crate) body: Option<&'a Value>,
    pub(crate) accept: &'static str,
}

impl<'a> ApiRequest<'a> {
    pub(crate) fn get(path: &'a str) -> Self {
        Self { method: Method::GET, path, body: None, accept: "application/json" }
    }

    pub(crate) fn send(method: Method, path: &'a str, body: Option<&'a Value>) -> Self {
        Self { method, path, body, accept: "application/json" }
    }
}

/// Reads a response as a type of the API.
pub(crate) fn read<T: DeserializeOwned>(value: Value) -> Result<T, ApiError> {
    T::deserialize(value).map_err(|error| unreadable(&error))
}

fn parse(body: &[u8]) -> Result<Value, ApiError> {
    serde_json::from_slice(body).map_err(|error| unreadable(&error))
}

fn unreadable(error: &serde_json::Error) -> ApiError {
    ApiError::with_code("INTERNAL_ERROR", format!("the response of the API cannot be read: {error}"))
}

fn refuse(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}

/// Returns the error code of a response without an error body.
fn code_of(status: StatusCode) -> &'static str {
    match status {
        StatusCode::BAD_REQUEST => "VALIDATION_ERROR",
        StatusCode::UNAUTHORIZED => "AUTHENTICATION_ERROR",
        StatusCode::FORBIDDEN => "AUTHORIZATION_ERROR",
        StatusCode::NOT_FOUND => "NOT_FOUND",
        StatusCode::CONFLICT => "CONFLICT",
        StatusCode::PAYLOAD_TOO_LARGE => "PAYLOAD_TOO_LARGE",
        StatusCode::TOO_MANY_REQUESTS => "RATE_LIMIT_EXCEEDED",
        StatusCode::BAD_GATEWAY => "UPSTREAM_UNAVAILABLE",
        StatusCode::SERVICE_UNAVAILABLE => "OVERLOADED",
        _ => "INTERNAL_ERROR",
    }
}

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::routing::get;
    use http::Extensions;
    use serde_json::json;

    use super::*;

    #[tokio::test]
    async fn who_asks_goes_along_and_refusals_keep_their_words() {
        #[derive(Clone)]
        struct TestCaller(&'static str);
        let inside = Router::new()
            .route(
                "/v1/me",
                get(|request: Request| async move {
                    request.extensions().get::<TestCaller>().map_or("", |who| who.0).len().to_string()
                }),
            )
            .route(
                "/v1/no",
                get(|| async { (StatusCode::CONFLICT, json!({ "error": "taken", "hint": "another" }).to_string()) }),
            );
        let api = ApiClient::new(inside);
        let mut extensions = Extensions::new();
        extensions.insert(TestCaller("alice"));
        let visitor = Visitor { extensions, ..Visitor::default() };
        assert_eq!(api.get::<usize>(&visitor, "/v1/me").await.expect("an answer"), 5);
        let refused = api.get::<Value>(&visitor, "/v1/no").await.expect_err("refused");
        assert_eq!(
            (refused.status.as_u16(), &*refused.message, refused.hint.as_deref()),
            (409, "taken", Some("another"))
        );
    }
}

//! The OpenAPI document, rendered once.

use std::sync::LazyLock;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};

static DOCUMENT: LazyLock<Bytes> = LazyLock::new(|| hikite_api::document().to_string().into());

pub(crate) async fn openapi() -> Response {
    let headers = [(CONTENT_TYPE, "application/json"), (CACHE_CONTROL, "no-cache")];
    (headers, DOCUMENT.clone()).into_response()
}

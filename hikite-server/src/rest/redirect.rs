//! The addresses from before there was a version in them; method, body and query go along.

use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{StatusCode, Uri};

pub(crate) async fn to_v1(uri: Uri) -> Response {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let address = format!("/v1{}{query}", uri.path());
    (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, address)]).into_response()
}

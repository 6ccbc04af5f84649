//! Redirects from unversioned paths to `/v1`, keeping method, body and query.

use axum::response::{IntoResponse, Response};
use http::header::LOCATION;
use http::{StatusCode, Uri};

pub(crate) async fn to_v1(uri: Uri) -> Response {
    let query = uri.query().map(|query| format!("?{query}")).unwrap_or_default();
    let address = format!("/v1{}{query}", uri.path());
    (StatusCode::TEMPORARY_REDIRECT, [(LOCATION, address)]).into_response()
}

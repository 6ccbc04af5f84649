//! Static assets: stylesheet, script and logo.

use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};

pub(crate) fn routes() -> Router {
    Router::new()
        .route("/ui/style.css", get(async || part("text/css; charset=utf-8", include_str!("../assets/style.css"))))
        .route(
            "/ui/script.js",
            get(async || part("text/javascript; charset=utf-8", include_str!("../assets/script.js"))),
        )
        .route("/ui/mark.svg", get(async || part("image/svg+xml", include_str!("../assets/mark.svg"))))
}

fn part(kind: &'static str, text: &'static str) -> Response {
    let headers = [(CONTENT_TYPE, kind), (X_CONTENT_TYPE_OPTIONS, "nosniff"), (CACHE_CONTROL, "no-cache")];
    (headers, text).into_response()
}

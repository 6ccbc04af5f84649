//! All routes on one page. A route that is not in the first list needs a caller; the order on every route is
//! Host and Origin (403), bearer (401), method (405).

use std::sync::Arc;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{any, get, post};

use crate::app::App;
use crate::mcp::{http, sse};
use crate::{auth, health, metrics, observe, origin, request_id};

pub(crate) fn router(app: Arc<App>) -> Router {
    let public = Router::new().route("/", get(health::health)).route("/health", get(health::health));

    // Of its own, because its token opens nothing else.
    let metrics = Router::new()
        .route("/metrics", get(metrics::metrics))
        .layer(from_fn_with_state(Arc::clone(&app), metrics::require_reader));

    let protected = Router::new()
        .route("/mcp", post(http::post).get(http::get).head(health::not_allowed).delete(http::delete))
        .route("/sse", get(sse::open).head(health::not_allowed))
        .route("/messages", post(sse::post))
        .fallback(any(health::not_found))
        .route_layer(from_fn(crate::connection::close_refused))
        .layer(from_fn_with_state(Arc::clone(&app), auth::require_caller));

    public
        .merge(metrics)
        .merge(protected)
        .layer(from_fn_with_state(Arc::clone(&app), origin::check))
        .layer(from_fn_with_state(Arc::clone(&app), observe::observe))
        .layer(from_fn(request_id::assign))
        .with_state(app)
}

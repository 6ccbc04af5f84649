//! The client ID metadata document of hikite for the authorization servers of upstreams.

use std::sync::Arc;

use axum::extract::State;
use axum::response::Response;
use hikite_core::json::Raw;
use http::StatusCode;

use crate::app::App;
use crate::error_response::json;
use crate::health;

pub(crate) async fn document(State(app): State<Arc<App>>) -> Response {
    match &app.settings.load().document {
        Some(document) => json(StatusCode::OK, &Raw::of(document)),
        None => health::not_found().await,
    }
}

//! Status overview; admins only, enforced by the router.

use std::sync::Arc;

use axum::extract::State;
use hikite_api::Status;
use http::Uri;

use super::{RestResult, ok, query};
use crate::app::App;

pub(crate) async fn status(State(app): State<Arc<App>>, uri: Uri) -> RestResult {
    query::none(&uri)?;
    Ok(ok(&Status {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        uptime_seconds: app.started.elapsed().as_secs(),
        sessions: app.open_sessions().into(),
        ..app.gateway.admin().status.report().await?
    }))
}

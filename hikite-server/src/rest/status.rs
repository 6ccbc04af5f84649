//! Status overview; admins only, enforced by the router.

use std::sync::Arc;

use axum::extract::State;
use hikite_core::json::{Object, Raw};
use http::Uri;

use super::{RestResult, ok, query};
use crate::app::App;

pub(crate) async fn status(State(app): State<Arc<App>>, uri: Uri) -> RestResult {
    query::none(&uri)?;
    let mut status = Object::default()
        .with("version", env!("CARGO_PKG_VERSION"))
        .with("uptimeSeconds", Raw::of(&app.started.elapsed().as_secs()))
        .with("sessions", Raw::of(&app.open_sessions()));
    for (name, value) in app.gateway.admin().status.report().await?.iter() {
        status.set(name, value.clone());
    }
    Ok(ok(&status.raw()))
}

//! Where tools come from and how they are grouped.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use hikite_core::caller::Caller;
use hikite_core::json::{Object, Raw};
use http::Uri;

use super::{Answer, ok, query};
use crate::app::App;

pub(crate) async fn modules(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Answer {
    query::none(&uri)?;
    let modules = app.gateway.module_objects(&caller).await?;
    Ok(ok(&Object::default().with("modules", Raw::array(&modules)).raw()))
}

pub(crate) async fn categories(
    State(app): State<Arc<App>>,
    Extension(caller): Extension<Caller>,
    uri: Uri,
) -> Answer {
    query::none(&uri)?;
    let categories = app.gateway.category_objects(&caller).await?;
    Ok(ok(&Object::default().with("categories", Raw::array(&categories)).raw()))
}

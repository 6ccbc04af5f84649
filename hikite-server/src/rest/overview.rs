//! Modules and categories. Switching and restarting modules is for admins only, enforced by the router.

use std::sync::Arc;

use axum::extract::State;
use hikite_api::{Categories, Modules};
use hikite_core::caller::Caller;
use hikite_core::source::CallOrigin;
use http::Uri;

use super::{NamePath, RestResult, key, ok, query};
use crate::app::App;
use crate::request_context::RequestContext;

pub(crate) async fn modules(
    State(app): State<Arc<App>>,
    RequestContext { caller, .. }: RequestContext,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let modules = app.gateway.admin().modules.module_objects(&caller).await?;
    Ok(ok(&Modules { modules }))
}

pub(crate) async fn module(
    State(app): State<Arc<App>>,
    RequestContext { caller, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    Ok(ok(&app.gateway.admin().modules.module_object(&caller, &key(path)?).await?))
}

pub(crate) async fn restart(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let name = key(path)?;
    let work = app.gateway.admin().modules.restart(&name);
    Ok(ok(&app.gateway.auditor().record_admin((&caller, &origin), "module.restart", &name, work).await?))
}

pub(crate) async fn enable(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    switch(&app, (&caller, &origin), path, &uri, true).await
}

pub(crate) async fn disable(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    switch(&app, (&caller, &origin), path, &uri, false).await
}

async fn switch(app: &App, who: (&Caller, &CallOrigin), path: NamePath, uri: &Uri, enabled: bool) -> RestResult {
    query::none(uri)?;
    let name = key(path)?;
    let action = if enabled { "module.enable" } else { "module.disable" };
    let work = app.gateway.admin().modules.switch(&name, enabled);
    Ok(ok(&app.gateway.auditor().record_admin(who, action, &name, work).await?))
}

pub(crate) async fn categories(
    State(app): State<Arc<App>>,
    RequestContext { caller, .. }: RequestContext,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let categories = app.gateway.admin().modules.category_objects(&caller).await?;
    Ok(ok(&Categories { categories }))
}

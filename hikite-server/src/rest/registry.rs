//! Registering, changing and switching tools; admins only, enforced by the router.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use hikite_core::caller::Caller;
use hikite_core::source::CallOrigin;
use http::{HeaderMap, StatusCode, Uri};

use super::text::tool_error;
use super::{NamePath, RestResult, body, created, key, location, ok, query};
use crate::app::App;
use crate::request_context::RequestContext;

pub(crate) async fn register(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let form = body::read(&app, &headers, body).await?;
    let name = form.text("name").unwrap_or_default();
    let work = app.gateway.admin().tools.register(&form);
    let tool = app.gateway.auditor().record_admin((&caller, &origin), "tool.register", &name, work).await?;
    let key = tool.object().and_then(|tool| tool.text("key"));
    Ok(created(&tool, key.and_then(|key| location("/v1/tools/", &key))))
}

/// Overrides the texts of a tool, or restores its own.
pub(crate) async fn override_text(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let (name, form) = (key(path)?, body::read(&app, &headers, body).await?);
    let work = app.gateway.admin().tools.override_texts(&name, &form);
    let tool = app.gateway.auditor().record_admin((&caller, &origin), "tool.change", &name, work).await;
    Ok(ok(&tool.map_err(|error| tool_error(&name, error))?))
}

pub(crate) async fn unregister(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let name = key(path)?;
    let work = app.gateway.admin().tools.unregister(&name);
    let done = app.gateway.auditor().record_admin((&caller, &origin), "tool.unregister", &name, work).await;
    done.map_err(|error| tool_error(&name, error))?;
    Ok(StatusCode::NO_CONTENT.into_response())
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
    let action = if enabled { "tool.enable" } else { "tool.disable" };
    let work = app.gateway.admin().tools.switch(&name, enabled);
    let tool = app.gateway.auditor().record_admin(who, action, &name, work).await;
    let tool = tool.map_err(|error| tool_error(&name, error))?;
    Ok(ok(&tool))
}

//! Upstream servers and categories in the store; admins only, enforced by the router. Secrets are write-only.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use http::{HeaderMap, StatusCode, Uri};
use serde::Serialize;

use super::form::RequestForm;
use super::{NamePath, RestResult, body, created, key, location, ok, query};
use crate::app::App;
use crate::request_context::RequestContext;

pub(crate) async fn list(State(app): State<Arc<App>>, uri: Uri) -> RestResult {
    query::none(&uri)?;
    let upstreams = app.gateway.admin().config()?.upstreams();
    Ok(ok(&Object::default().with("upstreams", Raw::array(&upstreams)).raw()))
}

pub(crate) async fn get(State(app): State<Arc<App>>, path: NamePath, uri: Uri) -> RestResult {
    query::none(&uri)?;
    let name = key(path)?;
    let upstreams = app.gateway.admin().config()?.upstreams();
    let is_it = |raw: &&Raw| raw.object().and_then(|own| own.text("name")).as_deref() == Some(name.as_str());
    let found = upstreams.iter().find(is_it);
    Ok(ok(found.ok_or_else(|| Error::new(ErrorKind::NotFound, format!("There is no upstream `{name}`.")))?))
}

pub(crate) async fn put(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let (name, form) = (key(path)?, body::read(&app, &headers, body).await?);
    let work = app.gateway.admin().config()?.put_upstream(&name, &form);
    let (upstream, is_new) =
        app.gateway.auditor().record_admin((&caller, &origin), "upstream.put", &name, work).await?;
    Ok(put_answer(&upstream, is_new, "/v1/upstreams/", &name))
}

pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let name = key(path)?;
    let work = app.gateway.admin().config()?.remove_upstream(&name);
    app.gateway.auditor().record_admin((&caller, &origin), "upstream.delete", &name, work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Handles `{config, apply}`: previews or applies the import of another client's config.
pub(crate) async fn import(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let mut form = RequestForm::new(body::read(&app, &headers, body).await?, &["config", "apply"]);
    let config = form.raw("config").filter(|config| config.is_object() || config.text().is_some());
    if config.is_none() {
        form.fault("config", "`config` must be the config of a client: an object, or its text.");
    }
    let apply = form.flag("apply").unwrap_or_default();
    form.finish()?;
    let config = config.unwrap_or_else(Raw::empty_object);
    let config_admin = app.gateway.admin().config()?;
    let work = config_admin.import(&config, apply);
    if !apply {
        return Ok(ok(&work.await?));
    }
    Ok(ok(&app.gateway.auditor().record_admin((&caller, &origin), "upstream.import", "", work).await?))
}

pub(crate) async fn category(
    State(app): State<Arc<App>>,
    RequestContext { caller, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    Ok(ok(&app.gateway.admin().modules.category_object(&caller, &key(path)?).await?))
}

pub(crate) async fn put_category(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let (name, form) = (key(path)?, body::read(&app, &headers, body).await?);
    let work = app.gateway.admin().config()?.put_category(&name, &form);
    let is_new = app.gateway.auditor().record_admin((&caller, &origin), "category.put", &name, work).await?;
    let category = app.gateway.admin().modules.category_object(&caller, &name).await?;
    Ok(put_answer(&category, is_new, "/v1/categories/", &name))
}

pub(crate) async fn delete_category(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let name = key(path)?;
    let work = app.gateway.admin().config()?.remove_category(&name);
    app.gateway.auditor().record_admin((&caller, &origin), "category.delete", &name, work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Responds with 201 for a new object, 200 for a changed one.
fn put_answer(body: &impl Serialize, is_new: bool, address: &str, name: &str) -> Response {
    if is_new { created(body, location(address, name)) } else { ok(body) }
}

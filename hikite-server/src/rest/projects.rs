//! Projects; admins only, enforced by the router.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use http::{HeaderMap, StatusCode, Uri};

use super::{NamePath, RestResult, body, created, key, location, ok, query};
use crate::app::App;
use crate::request_context::RequestContext;

pub(crate) async fn list(State(app): State<Arc<App>>, uri: Uri) -> RestResult {
    query::none(&uri)?;
    let projects = app.gateway.people().projects().objects();
    Ok(ok(&Object::default().with("projects", Raw::array(&projects)).raw()))
}

pub(crate) async fn get(State(app): State<Arc<App>>, path: NamePath, uri: Uri) -> RestResult {
    query::none(&uri)?;
    Ok(ok(&app.gateway.people().projects().object(&key(path)?)?))
}

/// Creates a project from its form and name.
pub(crate) async fn create(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let mut form = body::read(&app, &headers, body).await?;
    let name = form.remove("name").and_then(|name| name.text()).ok_or_else(|| {
        Error::new(ErrorKind::Validation, "`name` is required.")
            .hint("Set the name of the project, which is also used in addresses.")
    })?;
    let work = app.gateway.admin().access.create_project(&name, &form);
    let project = app.gateway.auditor().record_admin((&caller, &origin), "project.create", &name, work).await?;
    Ok(created(&project, location("/v1/projects/", &name)))
}

pub(crate) async fn change(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let changes = body::read(&app, &headers, body).await?;
    let name = key(path)?;
    let work = app.gateway.admin().access.change_project(&name, &changes);
    Ok(ok(&app.gateway.auditor().record_admin((&caller, &origin), "project.change", &name, work).await?))
}

pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let name = key(path)?;
    let work = app.gateway.admin().access.delete_project(&name);
    app.gateway.auditor().record_admin((&caller, &origin), "project.delete", &name, work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

//! Users; admins only, enforced by the router; only the owner changes the owner. Passwords are write-only, except that
//! a generated one appears in one response.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use hikite_core::json::{Object, Raw};
use hikite_identity::Successor;
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{HeaderMap, StatusCode, Uri};

use super::query::QueryParams;
use super::{NamePath, RestResult, body, created, identity, key, location, ok, query};
use crate::app::App;
use crate::request_context::RequestContext;

pub(crate) async fn list(State(app): State<Arc<App>>, uri: Uri) -> RestResult {
    query::none(&uri)?;
    let users = identity(&app)?.users().objects();
    Ok(ok(&Object::default().with("users", Raw::array(&users)).raw()))
}

pub(crate) async fn get(State(app): State<Arc<App>>, path: NamePath, uri: Uri) -> RestResult {
    query::none(&uri)?;
    Ok(ok(&identity(&app)?.users().object(&key(path)?)?))
}

pub(crate) async fn create(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let form = body::read(&app, &headers, body).await?;
    app.gateway.people().projects().check_project_of(&form)?;
    let name = form.text("name").unwrap_or_default();
    let work = identity(&app)?.users().add(&form);
    let (user, made) = app.gateway.auditor().record_admin((&caller, &origin), "user.create", &name, work).await?;
    app.gateway.admin().access.refresh_users().await?;
    let mut user = user.object().unwrap_or_default();
    if let Some(password) = made {
        user.set("password", password.expose());
    }
    let mut response = created(&user.raw(), location("/v1/users/", &name));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

pub(crate) async fn change(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, proof, login, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let changes = body::read(&app, &headers, body).await?;
    let name = key(path)?;
    let identity = identity(&app)?;
    let right = app.gateway.people().right_of(&caller, proof.is_person());
    // Users who change their own password keep their current login.
    let is_own = identity.users().get(&name).is_ok_and(|user| user.subject == caller.subject);
    let kept_login = login.as_ref().filter(|_| is_own).map(|login| login.secret.expose());
    let what = audit_name(&app, &name);
    let work = async {
        if let Ok(user) = identity.users().get(&name) {
            app.gateway.people().check_right(&user.subject, right)?;
        }
        app.gateway.people().projects().check_project_of(&changes)?;
        identity.users().change(&name, &changes, right, kept_login).await
    };
    let user = app.gateway.auditor().record_admin((&caller, &origin), "user.change", &what, work).await?;
    app.gateway.admin().access.refresh_users().await?;
    Ok(ok(&user))
}

/// Deletes a user. With `successor`, accounts and memberships go to another user; without, they are deleted too.
pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, proof, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    let mut query = QueryParams::read(&uri, &["successor"]);
    let successor = query.one("successor");
    query.finish()?;
    let name = key(path)?;
    let right = app.gateway.people().right_of(&caller, proof.is_person());
    let what = audit_name(&app, &name);
    let work = identity(&app)?.users().remove(&name, successor.as_deref().map(Successor), right);
    app.gateway.auditor().record_admin((&caller, &origin), "user.delete", &what, work).await?;
    app.gateway.admin().access.refresh_users().await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Lists removed users of external identity providers, who may not log in again.
pub(crate) async fn removed(State(app): State<Arc<App>>, uri: Uri) -> RestResult {
    query::none(&uri)?;
    let removed = identity(&app)?.users().removal_objects().await?;
    Ok(ok(&Object::default().with("removals", Raw::array(&removed)).raw()))
}

pub(crate) async fn lift_removal(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let id = key(path)?;
    let work = identity(&app)?.users().lift_removal(&id);
    app.gateway.auditor().record_admin((&caller, &origin), "removal.lift", &id, work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Describes a user for the audit log: by name and id, if known.
pub(super) fn audit_name(app: &App, named: &str) -> String {
    match identity(app).and_then(|identity| identity.users().get(named)) {
        Ok(user) => format!("{} ({})", user.name, user.id),
        Err(_) => named.to_owned(),
    }
}

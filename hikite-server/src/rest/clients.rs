//! OAuth clients; admins only, enforced by the router. A secret appears in one response only.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use hikite_core::json::{Object, Raw};
use hikite_identity::NewClient;
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{HeaderMap, StatusCode, Uri};

use super::{NamePath, RestResult, body, created, identity, key, location, ok, query};
use crate::app::App;
use crate::request_context::RequestContext;

pub(crate) async fn list(State(app): State<Arc<App>>, uri: Uri) -> RestResult {
    query::none(&uri)?;
    let clients = identity(&app)?.clients().all().await?;
    let clients: Vec<Raw> = clients.iter().map(|client| client.object().raw()).collect();
    Ok(ok(&Object::default().with("clients", Raw::array(&clients)).raw()))
}

pub(crate) async fn get(State(app): State<Arc<App>>, path: NamePath, uri: Uri) -> RestResult {
    query::none(&uri)?;
    Ok(ok(&identity(&app)?.clients().object(&key(path)?).await?))
}

pub(crate) async fn create(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let form = NewClient::read(&body::read(&app, &headers, body).await?)?;
    let name = form.name.clone();
    let work = identity(&app)?.clients().add(form);
    let (client, secret) = app.gateway.auditor().record_admin((&caller, &origin), "client.create", &name, work).await?;
    let mut object = client.object();
    if let Some(secret) = secret {
        object.set("secret", secret.expose());
    }
    let mut response = created(&object.raw(), location("/v1/clients/", &client.id));
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

pub(crate) async fn approve(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let id = key(path)?;
    let work = identity(&app)?.clients().approve(&id);
    Ok(ok(&app.gateway.auditor().record_admin((&caller, &origin), "client.approve", &id, work).await?))
}

pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let id = key(path)?;
    let work = identity(&app)?.clients().remove(&id);
    app.gateway.auditor().record_admin((&caller, &origin), "client.delete", &id, work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

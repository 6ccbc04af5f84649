//! Personal tokens; admins only, enforced by the router. A secret appears in one response only.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use hikite_core::json::{Object, Raw};
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{HeaderMap, StatusCode, Uri};

use super::{NamePath, RestResult, body, created, key, location, ok, query};
use crate::app::App;
use crate::request_context::RequestContext;

pub(crate) async fn list(State(app): State<Arc<App>>, uri: Uri) -> RestResult {
    query::none(&uri)?;
    let tokens = app.gateway.people().tokens().objects();
    Ok(ok(&Object::default().with("tokens", Raw::array(&tokens)).raw()))
}

pub(crate) async fn create(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, proof, .. }: RequestContext,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let form = body::read(&app, &headers, body).await?;
    let name = form.text("name").unwrap_or_default();
    let right = app.gateway.people().right_of(&caller, proof.is_person());
    let work = app.gateway.people().tokens().create(&form, right);
    let (token, secret) = app.gateway.auditor().record_admin((&caller, &origin), "token.create", &name, work).await?;
    let token = token.object().unwrap_or_default();
    let location = token.text("id").and_then(|id| location("/v1/tokens/", &id));
    let mut response = created(&token.with("secret", secret.expose()).raw(), location);
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

pub(crate) async fn revoke(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let id = key(path)?;
    let work = app.gateway.people().tokens().revoke(&id);
    app.gateway.auditor().record_admin((&caller, &origin), "token.revoke", &id, work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

//! Users: for admins alone, which the router sees to. A password goes in and never out, but for one that was made here,
//! which is in one answer.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use hikite_core::json::{Object, Raw};
use http::header::{CACHE_CONTROL, HeaderValue};
use http::{HeaderMap, StatusCode, Uri};

use super::{Answer, Named, body, created, identity, key, location, ok, query};
use crate::app::App;
use crate::arrival::Arrival;

pub(crate) async fn list(State(app): State<Arc<App>>, uri: Uri) -> Answer {
    query::none(&uri)?;
    let users = identity(&app)?.user_objects();
    Ok(ok(&Object::default().with("users", Raw::array(&users)).raw()))
}

pub(crate) async fn get(State(app): State<Arc<App>>, path: Named, uri: Uri) -> Answer {
    query::none(&uri)?;
    Ok(ok(&identity(&app)?.user_object(&key(path)?)?))
}

pub(crate) async fn create(
    State(app): State<Arc<App>>,
    Arrival { caller, origin, .. }: Arrival,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    query::none(&uri)?;
    let form = body::read(&app, &headers, body).await?;
    app.gateway.check_project_of(&form)?;
    let name = form.text("name").unwrap_or_default();
    let work = identity(&app)?.add_user(&form);
    let (user, made) = app.gateway.audit_admin((&caller, &origin), "user.create", &name, work).await?;
    app.gateway.show_users();
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
    Arrival { caller, origin, .. }: Arrival,
    path: Named,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    query::none(&uri)?;
    let changes = body::read(&app, &headers, body).await?;
    let name = key(path)?;
    app.gateway.check_project_of(&changes)?;
    let work = identity(&app)?.change_user(&name, &changes);
    let user = app.gateway.audit_admin((&caller, &origin), "user.change", &name, work).await?;
    app.gateway.show_users();
    Ok(ok(&user))
}

pub(crate) async fn delete(
    State(app): State<Arc<App>>,
    Arrival { caller, origin, .. }: Arrival,
    path: Named,
    uri: Uri,
) -> Answer {
    query::none(&uri)?;
    let name = key(path)?;
    let work = identity(&app)?.remove_user(&name);
    app.gateway.audit_admin((&caller, &origin), "user.delete", &name, work).await?;
    app.gateway.show_users();
    Ok(StatusCode::NO_CONTENT.into_response())
}

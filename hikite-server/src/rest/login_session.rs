//! Open sessions, consents and logins; admins only, enforced by the router.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hikite_api::Sessions;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use http::{StatusCode, Uri};

use super::{NamePath, RestResult, identity, key, ok, query};
use crate::app::App;
use crate::request_context::RequestContext;

pub(crate) async fn sessions(State(app): State<Arc<App>>, uri: Uri) -> RestResult {
    query::none(&uri)?;
    Ok(ok(&Sessions { sessions: app.sessions.objects() }))
}

pub(crate) async fn end_session(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let id = key(path)?;
    let work = async {
        let ended = id.parse().ok().and_then(|number| app.sessions.end(number));
        if let Some((entry, peers)) = ended.as_ref().zip(app.peers()) {
            peers.nodes.end(&entry.number).await?;
        }
        let ended = ended.is_some();
        if ended { Ok(()) } else { Err(Error::new(ErrorKind::NotFound, "There is no such session.")) }
    };
    app.gateway.auditor().record_admin((&caller, &origin), "session.end", &id, work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) async fn consents(State(app): State<Arc<App>>, uri: Uri) -> RestResult {
    query::none(&uri)?;
    let consents = identity(&app)?.clients().consent_objects().await?;
    Ok(ok(&Object::default().with("consents", Raw::array(&consents)).raw()))
}

pub(crate) async fn end_consent(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let id = key(path)?;
    let work = identity(&app)?.clients().end_consent(&id);
    app.gateway.auditor().record_admin((&caller, &origin), "consent.end", &id, work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) async fn logins(State(app): State<Arc<App>>, uri: Uri) -> RestResult {
    query::none(&uri)?;
    let logins = identity(&app)?.logins().objects().await?;
    Ok(ok(&Object::default().with("logins", Raw::array(&logins)).raw()))
}

pub(crate) async fn end_login(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, .. }: RequestContext,
    path: NamePath,
    uri: Uri,
) -> RestResult {
    query::none(&uri)?;
    let id = key(path)?;
    let work = identity(&app)?.logins().end_by_id(&id);
    app.gateway.auditor().record_admin((&caller, &origin), "login.end", &id, work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

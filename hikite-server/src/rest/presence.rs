//! Open sessions, consents and logins; admins only, enforced by the router.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use http::{StatusCode, Uri};

use super::{Answer, Named, identity, key, ok, query};
use crate::app::App;
use crate::arrival::Arrival;

pub(crate) async fn sessions(State(app): State<Arc<App>>, uri: Uri) -> Answer {
    query::none(&uri)?;
    Ok(ok(&Object::default().with("sessions", Raw::array(&app.sessions.objects())).raw()))
}

pub(crate) async fn end_session(
    State(app): State<Arc<App>>,
    Arrival { caller, origin, .. }: Arrival,
    path: Named,
    uri: Uri,
) -> Answer {
    query::none(&uri)?;
    let id = key(path)?;
    let work = async {
        let ended = id.parse().ok().and_then(|number| app.sessions.end(number));
        if let Some((entry, neighbours)) = ended.as_ref().zip(app.neighbours()) {
            neighbours.nodes.end(&entry.number).await?;
        }
        let ended = ended.is_some();
        if ended { Ok(()) } else { Err(Error::new(Kind::NotFound, "there is no such session")) }
    };
    app.gateway.audit_admin((&caller, &origin), "session.end", &id, work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) async fn consents(State(app): State<Arc<App>>, uri: Uri) -> Answer {
    query::none(&uri)?;
    let consents = identity(&app)?.consent_objects().await?;
    Ok(ok(&Object::default().with("consents", Raw::array(&consents)).raw()))
}

pub(crate) async fn end_consent(
    State(app): State<Arc<App>>,
    Arrival { caller, origin, .. }: Arrival,
    path: Named,
    uri: Uri,
) -> Answer {
    query::none(&uri)?;
    let id = key(path)?;
    let work = identity(&app)?.end_consent(&id);
    app.gateway.audit_admin((&caller, &origin), "consent.end", &id, work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

pub(crate) async fn logins(State(app): State<Arc<App>>, uri: Uri) -> Answer {
    query::none(&uri)?;
    let logins = identity(&app)?.login_objects().await?;
    Ok(ok(&Object::default().with("logins", Raw::array(&logins)).raw()))
}

pub(crate) async fn end_login(
    State(app): State<Arc<App>>,
    Arrival { caller, origin, .. }: Arrival,
    path: Named,
    uri: Uri,
) -> Answer {
    query::none(&uri)?;
    let id = key(path)?;
    let work = identity(&app)?.end_login_by_id(&id);
    app.gateway.audit_admin((&caller, &origin), "login.end", &id, work).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

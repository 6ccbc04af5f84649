//! Requests that need a recent proof of identity: transferring the ownership, and changing one's own password.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_gateway::now_ms;
use hikite_identity::{User, UserAuthority};
use http::{HeaderMap, StatusCode, Uri};

use super::form::RequestForm;
use super::users::audit_name;
use super::{NamePath, RestResult, body, identity, key, ok, query};
use crate::app::App;
use crate::connection::ClientAddress;
use crate::request_context::{BrowserLogin, RequestContext};

/// Maximum age of a login that proves presence.
const LOGIN_AGE_MAX: Duration = Duration::from_secs(10 * 60);
const PASSWORD_CHARS: usize = 1000;

type PeerExtension = Option<Extension<ClientAddress>>;

/// Transfers the ownership to another user. Only the owner may, after a recent login or with the password. The local
/// token does not count as a login: its holder also needs the password, or uses the CLI.
pub(crate) async fn transfer_ownership(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, proof, login, .. }: RequestContext,
    peer: PeerExtension,
    path: NamePath,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let mut form = RequestForm::new(body::read(&app, &headers, body).await?, &["password"]);
    let password = form.text("password", PASSWORD_CHARS);
    form.finish()?;
    let name = key(path)?;
    let identity = identity(&app)?;
    if app.gateway.people().right_of(&caller, proof.is_person()) != UserAuthority::Owner {
        let error = Error::new(ErrorKind::Authorization, "Only the owner can hand over ownership.");
        return Err(error.hint("Log in as the owner.").into());
    }
    let owner = identity
        .users()
        .of_subject(&caller.subject)
        .ok_or_else(|| Error::new(ErrorKind::Conflict, "There is no owner yet.").hint("Open the setup link first."))?;
    require_proof(&app, (&owner, login.as_ref()), password.as_deref(), peer).await?;
    let what = audit_name(&app, &name);
    let work = identity.users().transfer_ownership(&owner, &name);
    let user = app.gateway.auditor().record_admin((&caller, &origin), "owner.handover", &what, work).await?;
    app.gateway.admin().access.refresh_users().await?;
    Ok(ok(&user))
}

/// Changes the caller's password. The current login stays valid; all other logins and all grants end.
pub(crate) async fn change_password(
    State(app): State<Arc<App>>,
    RequestContext { caller, origin, login, .. }: RequestContext,
    peer: PeerExtension,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> RestResult {
    query::none(&uri)?;
    let form = body::read(&app, &headers, body).await?;
    let mut form = RequestForm::new(form, &["current", "password", "removePasskeys"]);
    let (current, password) = (form.text("current", PASSWORD_CHARS), form.raw("password"));
    let remove = form.flag("removePasskeys").unwrap_or(false);
    if password.is_none() {
        form.fault("password", "`password` is required.");
    }
    form.finish()?;
    let identity = identity(&app)?;
    // A user who is bound to a project may use it from that project.
    let is_theirs = |user: &Arc<User>| caller.project.is_none() || caller.project == user.project;
    let user = identity.users().of_subject(&caller.subject).filter(is_theirs).ok_or_else(|| {
        Error::new(ErrorKind::Authorization, "The caller is not a user.")
            .hint("Log in, or use a token that acts for a user.")
    })?;
    require_proof(&app, (&user, login.as_ref()), current.as_deref(), peer).await?;
    let changes =
        Object::default().with("password", password.unwrap_or_else(Raw::null)).with("removePasskeys", Raw::of(&remove));
    let kept_login = login.as_ref().map(|login| login.secret.expose());
    let what = audit_name(&app, &user.id);
    // Users may always change their own password.
    let work = identity.users().change(&user.id, &changes, UserAuthority::Owner, kept_login);
    app.gateway.auditor().record_admin((&caller, &origin), "user.password", &what, work).await?;
    app.gateway.admin().access.refresh_users().await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Requires a recent login or the password; failures count as at the login page.
async fn require_proof(
    app: &App,
    (user, login): (&Arc<User>, Option<&BrowserLogin>),
    password: Option<&str>,
    peer: PeerExtension,
) -> Result<(), Error> {
    let peer: Option<IpAddr> = peer.map(|Extension(peer)| peer.address);
    let Some(password) = password else {
        let fresh = u64::try_from(LOGIN_AGE_MAX.as_millis()).unwrap_or_default();
        if login.is_some_and(|login| now_ms().saturating_sub(login.since) < fresh) {
            return Ok(());
        }
        let error = Error::new(ErrorKind::Authorization, "This needs a fresh login.");
        return Err(error.hint("Log out and in again, or send your current password."));
    };
    app.login_throttle.look(peer)?;
    if identity(app)?.logins().log_in(&user.name, password).await?.is_some() {
        return Ok(());
    }
    app.login_throttle.note(peer)?;
    Err(Error::new(ErrorKind::Authorization, "The password is wrong.").hint("Send your current password."))
}

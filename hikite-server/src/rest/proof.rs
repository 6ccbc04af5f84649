//! Requests that need a recent proof of identity: transferring the ownership, and changing one's own password.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Extension;
use axum::body::Body;
use axum::extract::State;
use axum::response::IntoResponse;
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_gateway::identity::{Right, User};
use hikite_gateway::now_ms;
use http::{HeaderMap, StatusCode, Uri};

use super::form::Form;
use super::users::described;
use super::{Answer, Named, body, identity, key, ok, query};
use crate::app::App;
use crate::arrival::{Arrival, BrowserLogin};
use crate::connection::Peer;

/// Maximum age of a login that proves presence.
const FRESH: Duration = Duration::from_secs(10 * 60);
const PASSWORD_CHARS: usize = 1000;

type Sender = Option<Extension<Peer>>;

/// Transfers the ownership to another user. Only the owner may, after a recent login or with the password. The local
/// token does not count as a login: its holder also needs the password, or uses the CLI.
pub(crate) async fn hand_over(
    State(app): State<Arc<App>>,
    Arrival { caller, origin, proof, login, .. }: Arrival,
    peer: Sender,
    path: Named,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    query::none(&uri)?;
    let mut form = Form::new(body::read(&app, &headers, body).await?, &["password"]);
    let password = form.text("password", PASSWORD_CHARS);
    form.finish()?;
    let name = key(path)?;
    let identity = identity(&app)?;
    if app.gateway.people().right_of(&caller, proof.is_in_person()) != Right::Owner {
        let error = Error::new(Kind::Authorization, "only the owner hands over the ownership");
        return Err(error.hint("log in as the owner").into());
    }
    let owner = identity.user_of(&caller.subject).ok_or_else(|| {
        Error::new(Kind::Conflict, "there is no owner yet").hint("open the set-up link first")
    })?;
    prove(&app, (&owner, login.as_ref()), password.as_deref(), peer).await?;
    let what = described(&app, &name);
    let work = identity.hand_over(&owner, &name);
    let user = app.gateway.audit_admin((&caller, &origin), "owner.handover", &what, work).await?;
    app.gateway.follow_users().await?;
    Ok(ok(&user))
}

/// Changes the caller's password. The current login stays valid; all other logins and all grants end.
pub(crate) async fn change_password(
    State(app): State<Arc<App>>,
    Arrival { caller, origin, login, .. }: Arrival,
    peer: Sender,
    uri: Uri,
    headers: HeaderMap,
    body: Body,
) -> Answer {
    query::none(&uri)?;
    let form = body::read(&app, &headers, body).await?;
    let mut form = Form::new(form, &["current", "password", "removePasskeys"]);
    let (current, password) = (form.text("current", PASSWORD_CHARS), form.raw("password"));
    let remove = form.flag("removePasskeys").unwrap_or(false);
    if password.is_none() {
        form.fault("password", "`password` is required");
    }
    form.finish()?;
    let identity = identity(&app)?;
    // A user who is bound to a project may use it from that project.
    let is_theirs = |user: &Arc<User>| caller.project.is_none() || caller.project == user.project;
    let user = identity.user_of(&caller.subject).filter(is_theirs).ok_or_else(|| {
        Error::new(Kind::Authorization, "this caller is no user")
            .hint("log in, or use a token that acts for one")
    })?;
    prove(&app, (&user, login.as_ref()), current.as_deref(), peer).await?;
    let changes = Object::default()
        .with("password", password.unwrap_or_else(Raw::null))
        .with("removePasskeys", Raw::of(&remove));
    let kept = login.as_ref().map(|login| login.secret.expose());
    let what = described(&app, &user.id);
    // Users may always change their own password.
    let work = identity.change_user(&user.id, &changes, Right::Owner, kept);
    app.gateway.audit_admin((&caller, &origin), "user.password", &what, work).await?;
    app.gateway.follow_users().await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Requires a recent login or the password; failures count as at the login page.
async fn prove(
    app: &App,
    (user, login): (&Arc<User>, Option<&BrowserLogin>),
    password: Option<&str>,
    peer: Sender,
) -> Result<(), Error> {
    let peer: Option<IpAddr> = peer.map(|Extension(peer)| peer.address);
    let Some(password) = password else {
        let fresh = u64::try_from(FRESH.as_millis()).unwrap_or_default();
        if login.is_some_and(|login| now_ms().saturating_sub(login.since) < fresh) {
            return Ok(());
        }
        let error = Error::new(Kind::Authorization, "this needs a fresh login");
        return Err(error.hint("log out and in again, or give the password that you have now"));
    };
    app.brake.look(peer, app)?;
    if identity(app)?.log_in(&user.name, password).await?.is_some() {
        return Ok(());
    }
    app.brake.note(peer, app)?;
    Err(Error::new(Kind::Authorization, "the password is wrong").hint("give the one that you have now"))
}

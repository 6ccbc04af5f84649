//! Login to an upstream server in a browser. The login is one for all callers of hikite, so only an administrator may
//! start it: one who is logged in, in auth mode `none` whoever can connect, else the holder of a token with the scope
//! `admin`. A cookie binds the callback to the browser that started the login.

use std::sync::Arc;

use axum::body::Body;
use axum::response::Response;
use hikite_core::caller::{Caller, Scopes};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::login::{CALLBACK, ModuleLogins};
use hikite_core::source::CallOrigin;
use http::header::{HeaderValue, SET_COOKIE};
use http::{HeaderMap, Uri};

use super::page::{AcceptedProofs, ConnectPage};
use super::{COOKIE_SECONDS, accounts, cookie, cookie_value, is_https, no_link, parameter, redirect};
use crate::app::App;
use crate::auth;
use crate::connection::ClientAddress;
use crate::oauth::{self, FormFields, LoggedInUser};
use crate::settings::Auth;

/// Holds the `state` of the login that this browser started.
const COOKIE_NAME: &str = "hikite_server_login";

/// The user who opens the page.
enum LoginVisitor {
    Admin(Caller),
    /// An unauthenticated user who can log in.
    MustLogIn,
    /// An unauthenticated user who can enter a token on this page.
    MustProve,
}

/// Returns the logins of upstream servers, if `module` is one that has a login.
pub(super) fn logins_of(app: &App, module: &str) -> Option<Arc<dyn ModuleLogins>> {
    logins(app).filter(|logins| logins.knows(module))
}

/// Returns the logins of upstream servers, if one with this state is pending.
pub(super) fn pending(app: &App, state: &str) -> Option<Arc<dyn ModuleLogins>> {
    logins(app).filter(|logins| logins.is_pending(state))
}

/// Shows which server the login is for.
pub(super) async fn show(
    app: &App,
    (page, module): (ConnectPage, &str),
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response, Error> {
    Ok(match visitor(app, headers).await? {
        LoginVisitor::Admin(_) => page.server_question(module, None),
        LoginVisitor::MustLogIn => oauth::redirect_to_login(uri),
        LoginVisitor::MustProve => page.server_question(module, Some((proofs(false), uri))),
    })
}

/// Starts the login and redirects the browser to the authorization server.
pub(super) async fn begin(
    app: &App,
    (page, module): (ConnectPage, &str),
    (uri, headers, body): (&Uri, &HeaderMap, Body),
    peer: Option<ClientAddress>,
) -> Result<Response, Error> {
    let logins = logins_of(app, module).ok_or_else(no_link)?;
    let caller = match visitor(app, headers).await? {
        LoginVisitor::Admin(caller) => caller,
        LoginVisitor::MustLogIn => return Ok(oauth::redirect_to_login(uri)),
        LoginVisitor::MustProve => {
            let peer = peer.map(|peer| peer.address);
            app.login_throttle.look(peer)?;
            let fields = FormFields::of(app, headers, body).await.unwrap_or_default();
            let known = auth::known(app, fields.get("proof").unwrap_or_default())?;
            let Some(caller) = known.filter(Caller::is_admin) else {
                app.login_throttle.note(peer)?;
                return Ok(page.server_question(module, Some((proofs(true), uri))));
            };
            caller
        }
    };
    let accounts = accounts(app)?;
    let callback = format!("{}{CALLBACK}", accounts.public_url());
    let origin = CallOrigin::default();
    let work = logins.begin(module, &callback);
    let away = app.gateway.auditor().record_admin((&caller, &origin), "upstream.login", module, work).await?;
    let mut response = redirect(&away.url);
    let value = HeaderValue::try_from(cookie(COOKIE_NAME, &away.state, COOKIE_SECONDS, is_https(accounts)));
    response.headers_mut().extend(value.ok().map(|value| (SET_COOKIE, value)));
    Ok(response)
}

/// Completes the login that this browser started.
pub(super) async fn finish(
    app: &App,
    page: ConnectPage,
    logins: &dyn ModuleLogins,
    uri: &Uri,
    headers: &HeaderMap,
) -> Result<Response, Error> {
    let state = parameter(uri, "state").ok_or_else(no_link)?;
    if cookie_value(headers, COOKIE_NAME) != Some(&*state) {
        return Err(Error::new(ErrorKind::Authorization, "The login was started in another browser."));
    }
    let module = logins.finish(uri.query().unwrap_or_default()).await?;
    let mut response = page.server_success(&module);
    let value = HeaderValue::try_from(cookie(COOKIE_NAME, "", 0, is_https(accounts(app)?)));
    response.headers_mut().extend(value.ok().map(|value| (SET_COOKIE, value)));
    Ok(response)
}

fn logins(app: &App) -> Option<Arc<dyn ModuleLogins>> {
    app.gateway.admin().config().ok()?.logins()
}

async fn visitor(app: &App, headers: &HeaderMap) -> Result<LoginVisitor, Error> {
    let settings = app.settings.load_full();
    if settings.oauth.is_some() {
        let Some(LoggedInUser { user, .. }) = oauth::logged_in_user(app, headers).await? else {
            return Ok(LoginVisitor::MustLogIn);
        };
        let caller = Caller { scopes: user.role.scopes(), ..Caller::named(Arc::clone(&user.subject)) };
        let refused = || Error::new(ErrorKind::Authorization, "Only an administrator can log in to a server.");
        caller.require(Scopes::ADMIN).map_err(|_| refused())?;
        return Ok(LoginVisitor::Admin(caller));
    }
    Ok(match settings.auth {
        Auth::None => LoginVisitor::Admin(app.gateway.people().owner()),
        Auth::Token(_) => LoginVisitor::MustProve,
    })
}

fn proofs(is_wrong: bool) -> AcceptedProofs {
    AcceptedProofs { takes_token: true, is_wrong, ..AcceptedProofs::default() }
}

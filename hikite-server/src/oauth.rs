//! The OAuth authorization server: issues tokens to users' clients. One endpoint per file; they share the request
//! context (client address, login, public name) and the pages. All endpoints are public and reveal nothing about
//! upstreams.

pub(crate) mod attempt_limits;
mod authorize;
mod client;
mod client_document;
mod consent;
mod context;
mod cookie;
mod discovery;
mod federated;
mod fields;
mod form;
mod jwks;
mod login;
mod logout;
mod page;
mod passkey;
mod public_url;
mod register;
mod request;
mod response;
mod revoke;
mod setup;
pub(crate) mod text;
mod throttle;
mod token;

use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use hikite_core::error::Error;
use hikite_identity::User;
use http::{HeaderMap, Uri};

use crate::app::App;
use crate::request_context::BrowserLogin;
pub(crate) use fields::FormFields;
pub(crate) use public_url::PublicUrl;

/// Returns the subject that is logged in at the browser, if OAuth is enabled.
pub(crate) async fn logged_in(app: &App, headers: &HeaderMap) -> Result<Option<Arc<str>>, Error> {
    Ok(logged_in_user(app, headers).await?.map(|person| Arc::clone(&person.user.subject)))
}

/// A user who is logged in at a browser.
pub(crate) struct LoggedInUser {
    pub(crate) user: Arc<User>,
    /// The CSRF token of forms.
    pub(crate) form_token: String,
    /// The base URL that the browser used.
    pub(crate) base: String,
    pub(crate) login: BrowserLogin,
}

pub(crate) async fn logged_in_user(app: &App, headers: &HeaderMap) -> Result<Option<LoggedInUser>, Error> {
    let oauth = app.settings.load().oauth.clone();
    let Some((oauth, identity)) = oauth.zip(app.gateway.people().identity()) else { return Ok(None) };
    let place = PublicUrl::of(&oauth, headers);
    let Some(secret) = cookie::read(headers, cookie::LOGIN, place.is_https()) else { return Ok(None) };
    app.gateway.freshness().check()?;
    let Some(login) = identity.logins().get(&secret).await? else { return Ok(None) };
    let form_token = identity.logins().form_token(&secret).await?;
    let browser = BrowserLogin { secret: login.secret, since: login.since };
    Ok(Some(LoggedInUser { user: login.user, form_token, base: place.base, login: browser }))
}

/// Redirects a browser to the login page, and back afterwards.
pub(crate) fn redirect_to_login(uri: &Uri) -> Response {
    login::redirect_to_login(&uri.to_string())
}

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/.well-known/oauth-authorization-server", get(discovery::server))
        .route("/.well-known/openid-configuration", get(discovery::openid))
        .route("/.well-known/oauth-protected-resource", get(discovery::whole_server))
        .route("/.well-known/oauth-protected-resource/mcp", get(discovery::resource))
        .route("/.well-known/oauth-protected-resource/mcp/{project}", get(discovery::resource))
        .route("/oauth/jwks", get(jwks::jwks))
        .route("/oauth/register", post(register::register))
        .route("/oauth/authorize", get(authorize::authorize))
        .route("/oauth/token", post(token::token))
        .route("/oauth/revoke", post(revoke::revoke))
        .route("/oauth/login", get(login::show).post(login::log_in))
        .route("/oauth/logout", get(logout::show).post(logout::log_out))
        .route("/oauth/consent", post(consent::decide))
        .route("/oauth/federated/{name}", get(federated::redirect))
        .route("/oauth/federated/{name}/callback", get(federated::handle_callback))
        .route("/oauth/passkey", get(passkey::show))
        .route("/oauth/passkey.js", get(passkey::script))
        .route("/oauth/passkey/login", post(passkey::log_in))
        .route("/oauth/passkey/login/options", post(passkey::login_options))
        .route("/oauth/passkey/register", post(passkey::register))
        .route("/oauth/passkey/register/options", post(passkey::register_options))
        .route("/oauth/passkey/remove", post(passkey::remove))
        .route("/oauth/page.css", get(page::css))
        .route("/setup", get(setup::show).post(setup::set_up))
}

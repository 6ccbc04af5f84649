//! The authorization server: how people and their clients get tokens for this house. One endpoint per file; what they
//! share is a desk (who comes, from where, under which of our names) and the pages. All of it is public, and none of it
//! says what stands behind the door.

mod answer;
mod authorize;
mod client;
mod consent;
mod cookie;
mod desk;
mod discovery;
mod document;
mod federated;
mod fields;
mod form;
mod jwks;
mod login;
mod logout;
mod page;
mod passkey;
mod place;
mod register;
mod request;
mod revoke;
mod setup;
mod token;
mod trial;
pub(crate) mod words;

use std::net::IpAddr;
use std::sync::Arc;

use axum::Router;
use axum::response::Response;
use axum::routing::{get, post};
use hikite_core::error::Error;
use hikite_egress::Client;
use hikite_gateway::identity::{Terms, User};
use http::{HeaderMap, Uri};

use crate::app::App;
use crate::arrival::BrowserLogin;
use crate::bucket::Buckets;
pub(crate) use fields::Fields;
pub(crate) use place::Place;

/// Who is logged in at the browser that sent this, if people can log in here at all.
pub(crate) async fn logged_in(app: &App, headers: &HeaderMap) -> Result<Option<Arc<str>>, Error> {
    Ok(at_browser(app, headers).await?.map(|person| Arc::clone(&person.user.subject)))
}

/// Somebody who is logged in at a browser.
pub(crate) struct Person {
    pub(crate) user: Arc<User>,
    /// What forms made for it carry.
    pub(crate) form_token: String,
    /// Under which of our names it came.
    pub(crate) base: String,
    pub(crate) login: BrowserLogin,
}

pub(crate) async fn at_browser(app: &App, headers: &HeaderMap) -> Result<Option<Person>, Error> {
    let oauth = app.settings.load().oauth.clone();
    let Some((oauth, identity)) = oauth.zip(app.gateway.people().identity()) else { return Ok(None) };
    let place = Place::of(&oauth, headers);
    let Some(secret) = cookie::read(headers, cookie::LOGIN, place.is_https()) else { return Ok(None) };
    app.gateway.freshness().check()?;
    let Some(login) = identity.login(&secret).await? else { return Ok(None) };
    let form_token = identity.form_token(&secret).await?;
    let browser = BrowserLogin { secret: login.secret, since: login.since };
    Ok(Some(Person { user: login.user, form_token, base: place.base, login: browser }))
}

/// Sends a browser to the login, and from there back to where it wanted to go.
pub(crate) fn log_in_first(uri: &Uri) -> Response {
    login::send_to(&uri.to_string())
}

/// What the config says of it.
#[derive(Clone, Debug)]
pub struct Oauth {
    /// Under which name tokens are made, and for how long.
    pub terms: Terms,
    /// Whether we have no name but those of this machine: then the one that a client uses is right.
    pub is_local: bool,
    pub cimd: Cimd,
    /// Whether clients may register themselves.
    pub registration: bool,
    /// For descriptions of clients, which lie at addresses that strangers name.
    pub client: Client,
}

/// Whether the id of a client may be the address of its description.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cimd {
    /// Well-known clients are known as they come with hikite, others are looked up.
    Auto,
    /// All are looked up; what comes with hikite stands in where that fails.
    On,
    Off,
}

/// How often what could be tried out was tried.
#[derive(Debug, Default)]
pub(crate) struct Tries {
    /// Wrong passwords, by the name they were tried with.
    names: Buckets<Arc<str>>,
    /// New clients, by where they came from.
    registrations: Buckets<IpAddr>,
    /// Descriptions that were looked up, likewise.
    lookups: Buckets<IpAddr>,
    /// Questions that were kept, likewise.
    begun: Buckets<IpAddr>,
}

pub(crate) fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/.well-known/oauth-authorization-server", get(discovery::server))
        .route("/.well-known/openid-configuration", get(discovery::openid))
        .route("/.well-known/oauth-protected-resource", get(discovery::house))
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
        .route("/oauth/federated/{name}", get(federated::go))
        .route("/oauth/federated/{name}/callback", get(federated::back))
        .route("/oauth/passkey", get(passkey::show))
        .route("/oauth/passkey.js", get(passkey::script))
        .route("/oauth/passkey/login", post(passkey::log_in))
        .route("/oauth/passkey/login/options", post(passkey::ask_to_log_in))
        .route("/oauth/passkey/register", post(passkey::register))
        .route("/oauth/passkey/register/options", post(passkey::ask_to_register))
        .route("/oauth/passkey/remove", post(passkey::remove))
        .route("/oauth/page.css", get(page::css))
        .route("/setup", get(setup::show).post(setup::set_up))
}

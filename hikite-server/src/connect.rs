//! Connecting an account in a browser: a page that names the user, the redirect to the provider, and the callback. A
//! link works only for the user it names, who is logged in, enters the one-time code of the terminal, or, without
//! OAuth, shows their token. A cookie binds the browser from then on; submitted secrets are never displayed. The
//! addresses also serve logins to upstream servers, in `server`.

mod page;
mod server;

use std::sync::Arc;

use axum::Extension;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use hikite_core::caller::Scopes;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::language::Language;
use hikite_core::secret::Secret;
use hikite_gateway::{AccountStore, BrowserSecret, ConnectionCallback, PendingConnection};
use http::header::{CACHE_CONTROL, COOKIE, HeaderValue, LOCATION, REFERRER_POLICY, SET_COOKIE};
use http::{HeaderMap, StatusCode, Uri};

use self::page::{AcceptedProofs, ConnectPage};
use crate::app::App;
use crate::auth;
use crate::connection::ClientAddress;
use crate::oauth::text::PageLanguage;
use crate::oauth::{self, FormFields};
use crate::settings::Auth;

const COOKIE_NAME: &str = "hikite_connect";
const COOKIE_SECONDS: u32 = 900;

/// The user who opens a link.
enum Opener {
    /// The user named in the link.
    Named,
    /// An unauthenticated user who can log in.
    MustLogIn,
    /// An unauthenticated user who can enter a proof on this page.
    MustProve(AcceptedProofs),
}

/// Handles `GET /connect/{provider}?link=…`: shows what the link is for. Does not consume the link.
pub(crate) async fn show(
    State(app): State<Arc<App>>,
    Path(provider): Path<String>,
    uri: Uri,
    headers: HeaderMap,
) -> Response {
    let page = ConnectPage(Language::of(&headers));
    let outcome = async {
        let link = parameter(&uri, "link");
        if link.is_none() && server::logins_of(&app, &provider).is_some() {
            return server::show(&app, (page, &provider), &uri, &headers).await;
        }
        let accounts = accounts(&app)?;
        if let Some(link) = link {
            let waiting = accounts.connections().waiting(&provider, &link).await?;
            return Ok(match opener(&app, &headers, &waiting).await? {
                Opener::Named => page.question(&waiting, &name(&app, &waiting), None),
                Opener::MustLogIn => oauth::redirect_to_login(&uri),
                Opener::MustProve(proof) => page.question(&waiting, &name(&app, &waiting), Some((proof, &uri))),
            });
        }
        // A user who is logged in needs no link and gets one; anybody else is sent to the login, if there is one.
        let Some(subject) = oauth::logged_in(&app, &headers).await? else {
            let can_log_in = app.settings.load().oauth.is_some();
            return if can_log_in { Ok(oauth::redirect_to_login(&uri)) } else { Err(no_link()) };
        };
        let link = accounts.connections().begin(&subject, &provider, parameter(&uri, "name").as_deref()).await?;
        Ok(redirect(link.url.expose()))
    };
    outcome.await.unwrap_or_else(|error| page.failure(&error))
}

/// Handles `POST /connect/{provider}?link=…`: consumes the link and redirects the browser to the provider.
pub(crate) async fn redirect_to_provider(
    State(app): State<Arc<App>>,
    Path(provider): Path<String>,
    uri: Uri,
    peer: Option<Extension<ClientAddress>>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let page = ConnectPage(Language::of(&headers));
    let outcome = async {
        let Some(link) = parameter(&uri, "link") else {
            let peer = peer.map(|Extension(peer)| peer);
            return server::begin(&app, (page, &provider), (&uri, &headers, body), peer).await;
        };
        let accounts = accounts(&app)?;
        let waiting = accounts.connections().waiting(&provider, &link).await?;
        match opener(&app, &headers, &waiting).await? {
            Opener::Named => {}
            Opener::MustLogIn => return Ok(oauth::redirect_to_login(&uri)),
            Opener::MustProve(proof) => {
                let peer = peer.map(|Extension(peer)| peer.address);
                app.login_throttle.look(peer)?;
                let fields = FormFields::of(&app, &headers, body).await.unwrap_or_default();
                let shown = fields.get("proof").unwrap_or_default();
                if !proves(&app, &waiting, &link, shown).await? {
                    app.login_throttle.note(peer)?;
                    let wrong = AcceptedProofs { is_wrong: true, ..proof };
                    return Ok(page.question(&waiting, &name(&app, &waiting), Some((wrong, &uri))));
                }
            }
        }
        let browser = match browser(&headers) {
            Some(browser) => browser,
            None => BrowserSecret::random()?,
        };
        let away = accounts.connections().redirect_to_provider(&provider, &link, &browser).await?;
        let mut response = redirect(away.expose());
        let value = cookie(COOKIE_NAME, browser.0.expose(), COOKIE_SECONDS, is_https(accounts));
        let value = HeaderValue::try_from(value);
        response.headers_mut().extend(value.ok().map(|value| (SET_COOKIE, value)));
        Ok(response)
    };
    outcome.await.unwrap_or_else(|error| page.failure(&error))
}

/// Handles `GET /connect/callback`: the provider's redirect back.
pub(crate) async fn callback(State(app): State<Arc<App>>, uri: Uri, headers: HeaderMap) -> Response {
    let page = ConnectPage(Language::of(&headers));
    let outcome = async {
        let state = parameter(&uri, "state").ok_or_else(no_link)?;
        if let Some(logins) = server::pending(&app, &state) {
            return server::finish(&app, page, &*logins, &uri, &headers).await;
        }
        let accounts = accounts(&app)?;
        let returned = ConnectionCallback {
            state,
            code: parameter(&uri, "code").map(Secret::hidden),
            error: parameter(&uri, "error"),
        };
        let logged_in = oauth::logged_in(&app, &headers).await?;
        let connected =
            accounts.connections().handle_callback(returned, browser(&headers).as_ref(), logged_in.as_deref()).await?;
        app.gateway.catalogs().show_accounts();
        Ok(page.success(&connected))
    };
    outcome.await.unwrap_or_else(|error| page.failure(&error))
}

fn accounts(app: &App) -> Result<&Arc<AccountStore>, Error> {
    app.gateway.accounts().ok_or_else(no_link)
}

/// Returns the display name of the user whom a link is for.
fn name(app: &App, waiting: &PendingConnection) -> Arc<str> {
    let known = app.gateway.people().name_of(&waiting.subject);
    known.map_or_else(|| Arc::clone(&waiting.subject), |(_, name)| name)
}

/// Determines who opens a link. Another user who is logged in is refused: the link may be a phishing attempt.
async fn opener(app: &App, headers: &HeaderMap, waiting: &PendingConnection) -> Result<Opener, Error> {
    let settings = app.settings.load_full();
    if settings.oauth.is_some() {
        return match oauth::logged_in(app, headers).await? {
            Some(subject) if subject == waiting.subject => Ok(Opener::Named),
            Some(_) => Err(no_link()),
            None if waiting.has_code => {
                Ok(Opener::MustProve(AcceptedProofs { can_log_in: true, ..AcceptedProofs::of(waiting) }))
            }
            None => Ok(Opener::MustLogIn),
        };
    }
    // In auth mode `none` whoever can connect is the owner.
    if matches!(settings.auth, Auth::None) && waiting.subject == app.gateway.people().owner().subject {
        return Ok(Opener::Named);
    }
    Ok(Opener::MustProve(AcceptedProofs { takes_token: true, ..AcceptedProofs::of(waiting) }))
}

/// Returns `true` if a text proves the identity of the user named in the link: the code that the terminal shows, or,
/// without OAuth, a token of that user.
async fn proves(app: &App, waiting: &PendingConnection, link: &str, text: &str) -> Result<bool, Error> {
    if app.settings.load().oauth.is_none() {
        let is_theirs = auth::known(app, text)?
            .is_some_and(|caller| caller.subject == waiting.subject && caller.scopes.contains(Scopes::CALL));
        if is_theirs {
            return Ok(true);
        }
    }
    accounts(app)?.connections().is_terminal_code(&waiting.provider, link, text).await
}

/// Returns the query parameter of this name, if there is exactly one.
fn parameter(uri: &Uri, name: &str) -> Option<String> {
    let pairs = axum::extract::Query::<Vec<(String, String)>>::try_from_uri(uri).ok()?.0;
    let mut values = pairs.into_iter().filter(|(key, _)| key == name).map(|(_, value)| value);
    let (value, more) = (values.next()?, values.next());
    more.is_none().then_some(value)
}

fn browser(headers: &HeaderMap) -> Option<BrowserSecret> {
    cookie_value(headers, COOKIE_NAME).map(|value| BrowserSecret(Secret::hidden(value)))
}

/// Returns the value of a cookie that `cookie` made.
fn cookie_value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
    let mut pairs = cookies.flat_map(|cookies| cookies.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(found, _)| found.strip_prefix("__Host-").unwrap_or(found) == name).map(|(_, value)| value)
}

fn cookie(name: &str, value: &str, seconds: u32, https: bool) -> String {
    let (prefix, secure) = if https { ("__Host-", "; Secure") } else { ("", "") };
    format!("{prefix}{name}={value}; Path=/; HttpOnly; SameSite=Lax; Max-Age={seconds}{secure}")
}

/// Returns `true` if browsers reach hikite over TLS, so that cookies can be `Secure`.
fn is_https(accounts: &AccountStore) -> bool {
    accounts.public_url().starts_with("https://")
}

fn redirect(to: &str) -> Response {
    let Ok(place) = HeaderValue::try_from(to) else { return StatusCode::BAD_GATEWAY.into_response() };
    let headers = [
        (LOCATION, place),
        (CACHE_CONTROL, HeaderValue::from_static("no-store")),
        (REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    ];
    (StatusCode::SEE_OTHER, headers).into_response()
}

fn no_link() -> Error {
    Error::new(ErrorKind::NotFound, "This link is invalid or has expired.")
}

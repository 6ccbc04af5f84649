//! Passkeys over HTTP: `WebAuthn` options, browser responses, and the page to manage keys, with its script. Each
//! request carries the CSRF token of its page.

use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use hikite_core::error::{Error, Kind};
use hikite_gateway::identity::Login;
use hikite_gateway::{Deed, Entrances};
use hikite_vault::RelyingParty;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};

use super::answer::fresh;
use super::desk::Desk;
use super::federated::entrances;
use super::form::{self, Binding};
use super::page::{self, Html};
use super::{cookie, login, trial, words};

/// Maximum length of a browser's response.
const BODY_BYTES: usize = 64 * 1024;

/// Action name in the audit log.
const LOG_IN: &str = "login.passkey";

/// The context of a passkey request.
struct Visit {
    entrances: Arc<Entrances>,
    site: RelyingParty,
    /// The cookie value of the browser.
    browser: String,
    body: Value,
}

/// Returns the `WebAuthn` options for a login.
pub(crate) async fn ask_to_log_in(desk: Desk, body: Body) -> Response {
    answered(async {
        trial::begin(&desk)?;
        let visit = Visit::read(&desk, body).await?;
        visit.entrances.passkeys.ask_to_log_in(&visit.site, &visit.browser).await
    })
    .await
}

pub(crate) async fn log_in(desk: Desk, body: Body) -> Response {
    let proved = async {
        trial::look(&desk)?;
        let visit = Visit::read(&desk, body).await?;
        let proved =
            visit.entrances.passkeys.log_in(&visit.site, &visit.browser, &visit.body["answer"]).await;
        let subject = match proved {
            Ok(subject) => subject,
            Err(error) => {
                trial::failed(&desk);
                let refused = Some(error.kind);
                desk.note(Deed { action: LOG_IN, refused, ..Deed::default() }).await?;
                return Err(error);
            }
        };
        let user = desk.identity.user_of(&subject).filter(|user| !user.disabled);
        let user = user.ok_or_else(|| Error::new(Kind::Authentication, "this user may not log in"))?;
        let next = visit.body["next"].as_str().and_then(login::local).unwrap_or("/ui").to_owned();
        desk.note(Deed { action: LOG_IN, subject: &user.subject, ..Deed::default() }).await?;
        Ok((desk.begin_login(&user).await?, next))
    };
    match proved.await {
        Ok((login, next)) => {
            let mut response = fresh(StatusCode::OK, &json!({ "next": next }));
            let https = desk.place.is_https();
            cookie::set(response.headers_mut(), cookie::LOGIN, login.secret.expose(), https);
            cookie::clear(response.headers_mut(), cookie::VISIT, https);
            response
        }
        Err(error) => refused(&error),
    }
}

/// Returns the `WebAuthn` options for registering a key, for a user who is logged in.
pub(crate) async fn ask_to_register(desk: Desk, body: Body) -> Response {
    answered(async {
        let (visit, login) = Visit::of_user(&desk, body).await?;
        let who = (&*login.user.subject, &*login.user.name);
        visit.entrances.passkeys.ask_to_register(&visit.site, who, &visit.browser).await
    })
    .await
}

pub(crate) async fn register(desk: Desk, body: Body) -> Response {
    answered(async {
        let (visit, login) = Visit::of_user(&desk, body).await?;
        let answer = (&visit.body["answer"], visit.body["name"].as_str().unwrap_or_default());
        let passkeys = &visit.entrances.passkeys;
        let deed = Deed { action: "passkey.register", subject: &login.user.subject, ..Deed::default() };
        let work = passkeys.register(&visit.site, &login.user.subject, &visit.browser, answer);
        let made = desk.app.gateway.audit_deed_with(deed, work).await?;
        tracing::info!(user = &*login.user.name, "a passkey was registered");
        Ok(made)
    })
    .await
}

pub(crate) async fn remove(desk: Desk, body: Body) -> Response {
    answered(async {
        let (visit, login) = Visit::of_user(&desk, body).await?;
        let id = visit.body["id"].as_str().unwrap_or_default();
        let deed = Deed { action: "passkey.remove", subject: &login.user.subject, ..Deed::default() };
        let work = visit.entrances.passkeys.remove(&login.user.subject, id);
        desk.app.gateway.audit_deed_with(deed, work).await?;
        tracing::info!(user = &*login.user.name, "a passkey was removed");
        Ok(json!({}))
    })
    .await
}

/// Shows the page to manage passkeys.
pub(crate) async fn show(desk: Desk) -> Response {
    match listed(&desk).await {
        Ok(response) => response,
        Err(error) => page::trouble(&desk, &error),
    }
}

async fn listed(desk: &Desk) -> Result<Response, Error> {
    let Some(login) = desk.login().await? else { return Ok(login::send_to("/oauth/passkey")) };
    let none = || Error::new(Kind::NotFound, "there are no passkeys here");
    let entrances = entrances(desk).ok_or_else(none)?;
    let keys = entrances.passkeys.list(&login.user.subject).await?;
    let binding = Binding::of(desk).await?;
    let say = |words| desk.say(words);
    let text = |key: &Value, name: &str| key[name].as_str().unwrap_or_default().to_owned();
    let mut body = Html::default().element("<p class=\"faint\">", say(words::PASSKEY_WHY), "</p>\n<ul>\n");
    for key in &keys {
        body = body
            .element("<li>", &text(key, "name"), " ")
            .element("<span class=\"faint\">", &text(key, "createdAt"), "</span> ")
            .marks("<button class=\"second\" type=\"button\" data-passkey=\"remove\" data-id=\"")
            .value(&text(key, "id"))
            .element("\">", say(words::PASSKEY_REMOVE), "</button></li>\n");
    }
    let body = body
        .element(
            "</ul>\n<label>",
            say(words::PASSKEY_NAME),
            "<input id=\"passkey-name\" maxlength=\"64\"></label>\n",
        )
        .element(
            "<div class=\"choice\"><button type=\"button\" data-passkey=\"register\">",
            say(words::PASSKEY_MAKE),
            "</button></div>\n",
        )
        .element("<p><a href=\"/ui/start\">", say(words::GO_ON), "</a></p>\n")
        .and(&talk(desk, &binding, None));
    let page = page::page(StatusCode::OK, desk.language, say(words::PASSKEYS), &body, None);
    Ok(binding.put_on(page::with_script(page), desk))
}

/// Returns `true` if passkeys are possible; not under a bare IP address.
pub(crate) fn can_be(desk: &Desk) -> bool {
    RelyingParty::of(&desk.place.base).is_some() && entrances(desk).is_some()
}

/// Renders the button of the login page; `None` if passkeys are not possible.
pub(crate) fn button(desk: &Desk, binding: &Binding, next: Option<&str>) -> Option<Html> {
    if !can_be(desk) {
        return None;
    }
    let button = Html::default()
        .marks("<p><button class=\"second\" type=\"button\" data-passkey=\"login\" hidden>")
        .value(desk.say(words::PASSKEY_LOG_IN))
        .marks("</button></p>\n");
    Some(button.and(&talk(desk, binding, next)))
}

/// Renders the data that the script needs and its error output.
fn talk(desk: &Desk, binding: &Binding, next: Option<&str>) -> Html {
    Html::default()
        .marks("<p class=\"alarm\" role=\"alert\" id=\"passkey\" hidden data-token=\"")
        .value(binding.token())
        .marks("\" data-next=\"")
        .value(next.unwrap_or_default())
        .marks("\" data-failed=\"")
        .value(desk.say(words::PASSKEY_FAILED))
        .marks("\"></p>\n<script src=\"/oauth/passkey.js\" defer></script>\n")
}

pub(crate) async fn script() -> Response {
    let headers = [
        (CONTENT_TYPE, "text/javascript; charset=utf-8"),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (CACHE_CONTROL, "no-cache"),
    ];
    (headers, include_str!("passkey.js")).into_response()
}

impl Visit {
    /// Reads a request that our own page sent, in the browser it was rendered for.
    async fn read(desk: &Desk, body: Body) -> Result<Self, Error> {
        let stale =
            || Error::new(Kind::Authorization, "this page is too old, or was made for another browser");
        let kind = desk.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind != Some("application/json") || !form::is_from_us(desk) {
            return Err(stale());
        }
        let wrong = || Error::new(Kind::Validation, "the body must be JSON");
        let reading = Limited::new(body, BODY_BYTES).collect();
        let body = tokio::time::timeout(desk.app.limits.body_timeout, reading).await;
        let body = body.ok().and_then(Result::ok).ok_or_else(wrong)?.to_bytes();
        let body: Value = serde_json::from_slice(&body).map_err(|_| wrong())?;
        let binding = Binding::of(desk).await?;
        let token = body["token"].as_str().unwrap_or_default();
        if binding.is_new() || !desk.identity.is_form_token(binding.value(), token).await? {
            return Err(stale());
        }
        let none = || Error::new(Kind::NotFound, "there are no passkeys under this address");
        Ok(Self {
            entrances: entrances(desk).ok_or_else(none)?,
            site: RelyingParty::of(&desk.place.base).ok_or_else(none)?,
            browser: binding.value().to_owned(),
            body,
        })
    }

    async fn of_user(desk: &Desk, body: Body) -> Result<(Self, Login), Error> {
        let visit = Self::read(desk, body).await?;
        let nobody = || Error::new(Kind::Authentication, "nobody is logged in at this browser");
        Ok((visit, desk.login().await?.ok_or_else(nobody)?))
    }
}

async fn answered(answer: impl Future<Output = Result<Value, Error>>) -> Response {
    match answer.await {
        Ok(answer) => fresh(StatusCode::OK, &answer),
        Err(error) => refused(&error),
    }
}

fn refused(error: &Error) -> Response {
    let status = StatusCode::from_u16(error.kind.face().http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if error.kind == Kind::Internal {
        tracing::error!(%error, "a passkey could not be looked at");
        return fresh(status, &json!({ "error": "Internal server error" }));
    }
    fresh(status, &json!({ "error": error.message }))
}

//! Passkeys over HTTP: `WebAuthn` options, browser responses, and the page to manage keys, with its script. Each
//! request carries the CSRF token of its page.

use std::sync::Arc;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use hikite_core::error::{Error, ErrorKind};
use hikite_gateway::AuthEvent;
use hikite_identity::IdentityProviders;
use hikite_identity::LoginSession;
use hikite_vault::RelyingParty;
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};

use super::context::OauthContext;
use super::federated::identity_providers;
use super::form::{self, FormBinding};
use super::page::{self, Html};
use super::response::uncached;
use super::{cookie, login, text, throttle};

/// Maximum length of a browser's response.
const BODY_BYTES: usize = 64 * 1024;

/// Action name in the audit log.
const LOG_IN: &str = "login.passkey";

/// The context of a passkey request.
struct PasskeyRequest {
    identity_providers: Arc<IdentityProviders>,
    site: RelyingParty,
    /// The cookie value of the browser.
    browser: String,
    body: Value,
}

/// Returns the `WebAuthn` options for a login.
pub(crate) async fn login_options(context: OauthContext, body: Body) -> Response {
    json_response(async {
        throttle::begin(&context)?;
        let visit = PasskeyRequest::read(&context, body).await?;
        visit.identity_providers.passkeys.login_options(&visit.site, &visit.browser).await
    })
    .await
}

pub(crate) async fn log_in(context: OauthContext, body: Body) -> Response {
    let proved = async {
        throttle::look(&context)?;
        let visit = PasskeyRequest::read(&context, body).await?;
        let proved = visit.identity_providers.passkeys.log_in(&visit.site, &visit.browser, &visit.body["answer"]).await;
        let subject = match proved {
            Ok(subject) => subject,
            Err(error) => {
                throttle::failed(&context);
                let refused = Some(error.kind);
                context.note(AuthEvent { action: LOG_IN, refused, ..AuthEvent::default() }).await?;
                return Err(error);
            }
        };
        let user = context.identity.users().of_subject(&subject).filter(|user| !user.disabled);
        let user = user.ok_or_else(|| Error::new(ErrorKind::Authentication, "This user is not allowed to log in."))?;
        let next = visit.body["next"].as_str().and_then(login::allowed_redirect).unwrap_or("/ui").to_owned();
        context.note(AuthEvent { action: LOG_IN, subject: &user.subject, ..AuthEvent::default() }).await?;
        Ok((context.begin_login(&user).await?, next))
    };
    match proved.await {
        Ok((login, next)) => {
            let mut response = uncached(StatusCode::OK, &json!({ "next": next }));
            let https = context.place.is_https();
            cookie::set(response.headers_mut(), cookie::LOGIN, login.secret.expose(), https);
            cookie::clear(response.headers_mut(), cookie::VISIT, https);
            response
        }
        Err(error) => refused(&error),
    }
}

/// Returns the `WebAuthn` options for registering a key, for a user who is logged in.
pub(crate) async fn register_options(context: OauthContext, body: Body) -> Response {
    json_response(async {
        let (visit, login) = PasskeyRequest::of_user(&context, body).await?;
        let who = (&*login.user.subject, &*login.user.name);
        visit.identity_providers.passkeys.register_options(&visit.site, who, &visit.browser).await
    })
    .await
}

pub(crate) async fn register(context: OauthContext, body: Body) -> Response {
    json_response(async {
        let (visit, login) = PasskeyRequest::of_user(&context, body).await?;
        let answer = (&visit.body["answer"], visit.body["name"].as_str().unwrap_or_default());
        let passkeys = &visit.identity_providers.passkeys;
        let event = AuthEvent { action: "passkey.register", subject: &login.user.subject, ..AuthEvent::default() };
        let work = passkeys.register(&visit.site, &login.user.subject, &visit.browser, answer);
        let made = context.app.gateway.auditor().record_auth_event_with(event, work).await?;
        tracing::info!(user = &*login.user.name, "a passkey was registered");
        Ok(made)
    })
    .await
}

pub(crate) async fn remove(context: OauthContext, body: Body) -> Response {
    json_response(async {
        let (visit, login) = PasskeyRequest::of_user(&context, body).await?;
        let id = visit.body["id"].as_str().unwrap_or_default();
        let event = AuthEvent { action: "passkey.remove", subject: &login.user.subject, ..AuthEvent::default() };
        let work = visit.identity_providers.passkeys.remove(&login.user.subject, id);
        context.app.gateway.auditor().record_auth_event_with(event, work).await?;
        tracing::info!(user = &*login.user.name, "a passkey was removed");
        Ok(json!({}))
    })
    .await
}

/// Shows the page to manage passkeys.
pub(crate) async fn show(context: OauthContext) -> Response {
    match passkey_page(&context).await {
        Ok(response) => response,
        Err(error) => page::error_page(&context, &error),
    }
}

async fn passkey_page(context: &OauthContext) -> Result<Response, Error> {
    let Some(login) = context.login().await? else { return Ok(login::redirect_to_login("/oauth/passkey")) };
    let none = || Error::new(ErrorKind::NotFound, "There are no passkeys here.");
    let identity_providers = identity_providers(context).ok_or_else(none)?;
    let keys = identity_providers.passkeys.list(&login.user.subject).await?;
    let binding = FormBinding::of(context).await?;
    let say = |words| context.say(words);
    let text = |key: &Value, name: &str| key[name].as_str().unwrap_or_default().to_owned();
    let mut body = Html::default().element("<p class=\"faint\">", say(text::PASSKEY_WHY), "</p>\n<ul>\n");
    for key in &keys {
        body = body
            .element("<li>", &text(key, "name"), " ")
            .element("<span class=\"faint\">", &text(key, "createdAt"), "</span> ")
            .marks("<button class=\"second\" type=\"button\" data-passkey=\"remove\" data-id=\"")
            .value(&text(key, "id"))
            .element("\">", say(text::PASSKEY_REMOVE), "</button></li>\n");
    }
    let body = body
        .element("</ul>\n<label>", say(text::PASSKEY_NAME), "<input id=\"passkey-name\" maxlength=\"64\"></label>\n")
        .element(
            "<div class=\"choice\"><button type=\"button\" data-passkey=\"register\">",
            say(text::PASSKEY_MAKE),
            "</button></div>\n",
        )
        .element("<p><a href=\"/ui/start\">", say(text::GO_ON), "</a></p>\n")
        .and(&script_data(context, &binding, None));
    let page = page::page(StatusCode::OK, context.language, say(text::PASSKEYS), &body, None);
    Ok(binding.set_cookie(page::with_script(page), context))
}

/// Returns `true` if passkeys are possible; not under a bare IP address.
pub(crate) fn is_available(context: &OauthContext) -> bool {
    RelyingParty::of(&context.place.base).is_some() && identity_providers(context).is_some()
}

/// Renders the button of the login page; `None` if passkeys are not possible.
pub(crate) fn button(context: &OauthContext, binding: &FormBinding, next: Option<&str>) -> Option<Html> {
    if !is_available(context) {
        return None;
    }
    let button = Html::default()
        .marks("<p><button class=\"second\" type=\"button\" data-passkey=\"login\" hidden>")
        .value(context.say(text::PASSKEY_LOG_IN))
        .marks("</button></p>\n");
    Some(button.and(&script_data(context, binding, next)))
}

/// Renders the data that the script needs and its error output.
fn script_data(context: &OauthContext, binding: &FormBinding, next: Option<&str>) -> Html {
    Html::default()
        .marks("<p class=\"alarm\" role=\"alert\" id=\"passkey\" hidden data-token=\"")
        .value(binding.token())
        .marks("\" data-next=\"")
        .value(next.unwrap_or_default())
        .marks("\" data-failed=\"")
        .value(context.say(text::PASSKEY_FAILED))
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

impl PasskeyRequest {
    /// Reads a request that our own page sent, in the browser it was rendered for.
    async fn read(context: &OauthContext, body: Body) -> Result<Self, Error> {
        let stale =
            || Error::new(ErrorKind::Authorization, "This page is too old, or it was made for another browser.");
        let kind = context.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok());
        if kind != Some("application/json") || !form::is_same_origin(context) {
            return Err(stale());
        }
        let wrong = || Error::new(ErrorKind::Validation, "The body must be JSON.");
        let reading = Limited::new(body, BODY_BYTES).collect();
        let body = tokio::time::timeout(context.app.limits.body_timeout, reading).await;
        let body = body.ok().and_then(Result::ok).ok_or_else(wrong)?.to_bytes();
        let body: Value = serde_json::from_slice(&body).map_err(|_| wrong())?;
        let binding = FormBinding::of(context).await?;
        let token = body["token"].as_str().unwrap_or_default();
        if binding.is_new() || !context.identity.logins().is_form_token(binding.value(), token).await? {
            return Err(stale());
        }
        let none = || Error::new(ErrorKind::NotFound, "Passkeys are not available at this address.");
        Ok(Self {
            identity_providers: identity_providers(context).ok_or_else(none)?,
            site: RelyingParty::of(&context.place.base).ok_or_else(none)?,
            browser: binding.value().to_owned(),
            body,
        })
    }

    async fn of_user(context: &OauthContext, body: Body) -> Result<(Self, LoginSession), Error> {
        let visit = Self::read(context, body).await?;
        let nobody = || Error::new(ErrorKind::Authentication, "No user is logged in with this browser.");
        Ok((visit, context.login().await?.ok_or_else(nobody)?))
    }
}

async fn json_response(answer: impl Future<Output = Result<Value, Error>>) -> Response {
    match answer.await {
        Ok(answer) => uncached(StatusCode::OK, &answer),
        Err(error) => refused(&error),
    }
}

fn refused(error: &Error) -> Response {
    let status = StatusCode::from_u16(error.kind.definition().http).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if error.kind == ErrorKind::Internal {
        tracing::error!(%error, "failed to verify a passkey");
        return uncached(status, &json!({ "error": "Internal server error" }));
    }
    uncached(status, &json!({ "error": error.message }))
}

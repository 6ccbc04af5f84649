//! Login with user name and password. Failed attempts are throttled by name and by address; an unknown name gets the
//! same response as a wrong password, in the same time.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::rate::Rate;
use hikite_gateway::AuthEvent;
use hikite_identity::RedirectUri;
use http::{StatusCode, Uri};

use super::context::OauthContext;
use super::fields::{FormFields, encode};
use super::form::{self, FormBinding};
use super::page::{self, Html};
use super::text::{self, PageText};
use super::{cookie, federated, passkey};

/// Window of the throttle.
const WINDOW: Duration = Duration::from_secs(60);
/// Maximum length of a user name.
const NAME_CHARS: usize = 64;
/// Action name in the audit log.
const LOG_IN: &str = "login.password";
/// Path prefixes that a login may redirect to; all others are refused.
const REDIRECT_PREFIXES: [&str; 4] = ["/oauth/authorize?", "/oauth/passkey", "/connect/", "/ui"];

/// Redirects a browser to the login page, and from there to `next`.
pub(crate) fn redirect_to_login(next: &str) -> Response {
    page::redirect(&format!("/oauth/login?next={}", encode(next)))
}

pub(crate) async fn show(context: OauthContext, uri: Uri) -> Response {
    let fields = FormFields::read(uri.query().unwrap_or_default()).unwrap_or_default();
    let next = fields.get("next").and_then(allowed_redirect);
    match (context.login().await, next) {
        (Ok(Some(_)), Some(next)) => page::redirect(next),
        (Ok(Some(login)), None) => {
            let say = |words| context.say(words);
            let body = Html::default()
                .element("<p>", &login.user.name, "</p>")
                .element("<p><a href=\"/oauth/passkey\">", say(text::PASSKEYS), "</a></p>")
                .element("<p><a href=\"/oauth/logout\">", say(text::LOG_OUT), "</a></p>");
            page::page(StatusCode::OK, context.language, context.say(text::LOGGED_IN), &body, None)
        }
        (Ok(None), next) => show_form(&context, StatusCode::OK, next, None).await,
        (Err(error), _) => page::error_page(&context, &error),
    }
}

pub(crate) async fn log_in(context: OauthContext, body: Body) -> Response {
    answer(&context, body).await.unwrap_or_else(|answer| answer)
}

async fn answer(context: &OauthContext, body: Body) -> Result<Response, Response> {
    let fields = form::read(context, body).await?;
    let next = fields.get("next").and_then(allowed_redirect);
    let name = key_of(fields.get("name").unwrap_or_default());
    if wait(context, &name).is_err() {
        return Err(show_form(context, StatusCode::TOO_MANY_REQUESTS, next, Some(text::TOO_OFTEN)).await);
    }
    let user = context.identity.logins().log_in(&name, fields.get("password").unwrap_or_default()).await;
    let error_page = |error: Error| page::error_page(context, &error);
    let Some(user) = user.map_err(error_page)? else { return Err(wrong(context, &name, next).await) };
    let event = AuthEvent { action: LOG_IN, subject: &user.subject, ..AuthEvent::default() };
    context.note(event).await.map_err(error_page)?;
    let login = context.begin_password_login(&user).await.map_err(error_page)?;
    let Some(login) = login else { return Err(wrong(context, &name, next).await) };
    Ok(finish_login(context, login.secret.expose(), next.unwrap_or("/ui")))
}

async fn wrong(context: &OauthContext, name: &Arc<str>, next: Option<&str>) -> Response {
    count(context, name);
    let known = context.identity.users().all().into_iter().find(|user| user.name == *name);
    let subject = known.as_ref().map_or("", |user| &user.subject);
    let refused = Some(ErrorKind::Authentication);
    if let Err(error) = context.note(AuthEvent { action: LOG_IN, subject, refused, ..AuthEvent::default() }).await {
        return page::error_page(context, &error);
    }
    show_form(context, StatusCode::FORBIDDEN, next, Some(text::WRONG)).await
}

/// Redirects the browser after a login, sets its login cookie and clears the visit cookie.
pub(crate) fn finish_login(context: &OauthContext, secret: &str, next: &str) -> Response {
    let mut response = page::redirect(next);
    cookie::set(response.headers_mut(), cookie::LOGIN, secret, context.place.is_https());
    cookie::clear(response.headers_mut(), cookie::VISIT, context.place.is_https());
    response
}

async fn show_form(
    context: &OauthContext,
    status: StatusCode,
    next: Option<&str>,
    wrong: Option<PageText>,
) -> Response {
    let say = |words| context.say(words);
    let binding = match FormBinding::of(context).await {
        Ok(binding) => binding,
        Err(error) => return page::error_page(context, &error),
    };
    let mut body = Html::default();
    if let Some(wrong) = wrong {
        body = body.element("<p class=\"alarm\" role=\"alert\">", say(wrong), "</p>\n");
    }
    if context.identity.users().all().is_empty() {
        body = body.element("<p class=\"faint\">", say(text::NOBODY_YET), "</p>\n");
    }
    let body = body
        .marks("<form method=\"post\" action=\"/oauth/login\">\n")
        .and(&binding.field())
        .and(&Html::hidden("next", next.unwrap_or_default()))
        .and(&credentials(context, "current-password"))
        .element("<div class=\"choice\"><button>", say(text::LOG_IN), "</button></div>\n</form>\n")
        .and(&federated::links(context, next));
    let form_target = next.and_then(source);
    let whole = |body: &Html| page::page(status, context.language, say(text::LOG_IN), body, form_target.as_deref());
    let page = match passkey::button(context, &binding, next) {
        Some(button) => page::with_script(whole(&body.and(&button))),
        None => whole(&body),
    };
    binding.set_cookie(page, context)
}

/// Renders the inputs for name and password.
pub(crate) fn credentials(context: &OauthContext, kind: &'static str) -> Html {
    let say = |words| context.say(words);
    Html::default()
        .element("<label>", say(text::NAME), "")
        .marks("<input name=\"name\" autocomplete=\"username\" autocapitalize=\"none\" maxlength=\"64\" required autofocus></label>\n")
        .element("<label>", say(text::PASSWORD), "")
        .marks("<input name=\"password\" type=\"password\" maxlength=\"1000\" required autocomplete=\"")
        .marks(kind)
        .marks("\"></label>\n")
}

/// Returns the path if a login may redirect to it.
pub(crate) fn allowed_redirect(next: &str) -> Option<&str> {
    let plain = next.bytes().all(|byte| byte.is_ascii_graphic()) && !next.contains('\\');
    (plain && REDIRECT_PREFIXES.iter().any(|start| next.starts_with(start))).then_some(next)
}

/// Returns the CSP source of the client's redirect URI, if `next` is an authorization request.
fn source(next: &str) -> Option<String> {
    let fields = FormFields::read(next.strip_prefix("/oauth/authorize?")?).ok()?;
    RedirectUri::read(fields.get("redirect_uri")?).ok().map(|redirect| redirect.source())
}

/// Returns the normalised name for lookup and throttling. It becomes a map key, so a text longer than any user name is
/// truncated.
fn key_of(name: &str) -> Arc<str> {
    name.trim().chars().take(NAME_CHARS + 1).collect::<String>().to_lowercase().into()
}

/// Checks the throttles of this name and address.
fn wait(context: &OauthContext, name: &Arc<str>) -> Result<(), Error> {
    context.app.login_throttle.look(context.peer)?;
    let Some(rate) = rate(context) else { return Ok(()) };
    let look = context.app.attempt_limits.names.look(name, rate, context.app.started.elapsed());
    look.map_err(|wait| Error::new(ErrorKind::RateLimit, "Too many attempts.").after(wait))
}

fn count(context: &OauthContext, name: &Arc<str>) {
    // The limit is enforced at the next attempt.
    let _ = context.app.login_throttle.note(context.peer);
    if let Some(rate) = rate(context) {
        let _ = context.app.attempt_limits.names.take(name, rate, context.app.started.elapsed());
    }
}

/// Returns the configured rate; a limit of zero disables the throttle.
fn rate(context: &OauthContext) -> Option<Rate> {
    let count = context.app.limits.failed_logins;
    (count > 0).then_some(Rate { count, per: WINDOW })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_only_to_places_of_ours() {
        for fine in ["/oauth/authorize?client_id=x", "/connect/notion", "/ui"] {
            assert_eq!(allowed_redirect(fine), Some(fine));
        }
        for wrong in [
            "",
            "/",
            "//evil.example",
            "https://evil.example/oauth/authorize?",
            "/\\evil.example",
            "/oauth/logout",
            "/oauth/authorize",
            "/connect/\\evil",
            "/connect/a b",
            "\t/connect/x",
        ] {
            assert_eq!(allowed_redirect(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_name_is_no_longer_than_a_name() {
        assert_eq!(&*key_of(" Ada "), "ada");
        assert_eq!(key_of(&"x".repeat(64 * 1024)).len(), NAME_CHARS + 1);
    }

    #[test]
    fn a_browser_is_told_where_a_login_may_end_up() {
        let next = "/oauth/authorize?redirect_uri=https%3A%2F%2Fa.example%2Fcb";
        assert_eq!(source(next).as_deref(), Some("https://a.example"));
        for none in ["/connect/x", "/oauth/authorize?x", "/oauth/authorize?redirect_uri=javascript%3Ax"] {
            assert_eq!(source(none), None, "{none}");
        }
    }
}

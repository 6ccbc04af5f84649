//! Login with user name and password. Failed attempts are throttled by name and by address; an unknown name gets the
//! same response as a wrong password, in the same time.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::response::Response;
use hikite_core::error::{Error, Kind};
use hikite_core::rate::Rate;
use hikite_gateway::Deed;
use hikite_gateway::identity::Redirect;
use http::{StatusCode, Uri};

use super::desk::Desk;
use super::fields::{Fields, encode};
use super::form::{self, Binding};
use super::page::{self, Html};
use super::words::{self, Words};
use super::{cookie, federated, passkey};

/// Window of the throttle.
const SPAN: Duration = Duration::from_secs(60);
/// Maximum length of a user name.
const NAME_CHARS: usize = 64;
/// Action name in the audit log.
const LOG_IN: &str = "login.password";
/// Path prefixes that a login may redirect to; all others are refused.
const NEXT: [&str; 4] = ["/oauth/authorize?", "/oauth/passkey", "/connect/", "/ui"];

/// Redirects a browser to the login page, and from there to `next`.
pub(crate) fn send_to(next: &str) -> Response {
    page::go(&format!("/oauth/login?next={}", encode(next)))
}

pub(crate) async fn show(desk: Desk, uri: Uri) -> Response {
    let fields = Fields::read(uri.query().unwrap_or_default()).unwrap_or_default();
    let next = fields.get("next").and_then(local);
    match (desk.login().await, next) {
        (Ok(Some(_)), Some(next)) => page::go(next),
        (Ok(Some(login)), None) => {
            let say = |words| desk.say(words);
            let body = Html::default()
                .element("<p>", &login.user.name, "</p>")
                .element("<p><a href=\"/oauth/passkey\">", say(words::PASSKEYS), "</a></p>")
                .element("<p><a href=\"/oauth/logout\">", say(words::LOG_OUT), "</a></p>");
            page::page(StatusCode::OK, desk.language, desk.say(words::LOGGED_IN), &body, None)
        }
        (Ok(None), next) => ask(&desk, StatusCode::OK, next, None).await,
        (Err(error), _) => page::trouble(&desk, &error),
    }
}

pub(crate) async fn log_in(desk: Desk, body: Body) -> Response {
    answer(&desk, body).await.unwrap_or_else(|answer| answer)
}

async fn answer(desk: &Desk, body: Body) -> Result<Response, Response> {
    let fields = form::read(desk, body).await?;
    let next = fields.get("next").and_then(local);
    let name = key_of(fields.get("name").unwrap_or_default());
    if wait(desk, &name).is_err() {
        return Err(ask(desk, StatusCode::TOO_MANY_REQUESTS, next, Some(words::TOO_OFTEN)).await);
    }
    let user = desk.identity.log_in(&name, fields.get("password").unwrap_or_default()).await;
    let trouble = |error: Error| page::trouble(desk, &error);
    let Some(user) = user.map_err(trouble)? else { return Err(wrong(desk, &name, next).await) };
    let deed = Deed { action: LOG_IN, subject: &user.subject, ..Deed::default() };
    desk.note(deed).await.map_err(trouble)?;
    let login = desk.begin_password_login(&user).await.map_err(trouble)?;
    let Some(login) = login else { return Err(wrong(desk, &name, next).await) };
    Ok(welcome(desk, login.secret.expose(), next.unwrap_or("/ui")))
}

async fn wrong(desk: &Desk, name: &Arc<str>, next: Option<&str>) -> Response {
    count(desk, name);
    let known = desk.identity.users().into_iter().find(|user| user.name == *name);
    let subject = known.as_ref().map_or("", |user| &user.subject);
    let refused = Some(Kind::Authentication);
    if let Err(error) = desk.note(Deed { action: LOG_IN, subject, refused, ..Deed::default() }).await {
        return page::trouble(desk, &error);
    }
    ask(desk, StatusCode::FORBIDDEN, next, Some(words::WRONG)).await
}

/// Redirects the browser after a login, sets its login cookie and clears the visit cookie.
pub(crate) fn welcome(desk: &Desk, secret: &str, next: &str) -> Response {
    let mut response = page::go(next);
    cookie::set(response.headers_mut(), cookie::LOGIN, secret, desk.place.is_https());
    cookie::clear(response.headers_mut(), cookie::VISIT, desk.place.is_https());
    response
}

async fn ask(desk: &Desk, status: StatusCode, next: Option<&str>, wrong: Option<Words>) -> Response {
    let say = |words| desk.say(words);
    let binding = match Binding::of(desk).await {
        Ok(binding) => binding,
        Err(error) => return page::trouble(desk, &error),
    };
    let mut body = Html::default();
    if let Some(wrong) = wrong {
        body = body.element("<p class=\"alarm\" role=\"alert\">", say(wrong), "</p>\n");
    }
    if desk.identity.users().is_empty() {
        body = body.element("<p class=\"faint\">", say(words::NOBODY_YET), "</p>\n");
    }
    let body = body
        .marks("<form method=\"post\" action=\"/oauth/login\">\n")
        .and(&binding.field())
        .and(&Html::hidden("next", next.unwrap_or_default()))
        .and(&credentials(desk, "current-password"))
        .element("<div class=\"choice\"><button>", say(words::LOG_IN), "</button></div>\n</form>\n")
        .and(&federated::links(desk, next));
    let elsewhere = next.and_then(source);
    let whole =
        |body: &Html| page::page(status, desk.language, say(words::LOG_IN), body, elsewhere.as_deref());
    let page = match passkey::button(desk, &binding, next) {
        Some(button) => page::with_script(whole(&body.and(&button))),
        None => whole(&body),
    };
    binding.put_on(page, desk)
}

/// Renders the inputs for name and password.
pub(crate) fn credentials(desk: &Desk, kind: &'static str) -> Html {
    let say = |words| desk.say(words);
    Html::default()
        .element("<label>", say(words::NAME), "")
        .marks("<input name=\"name\" autocomplete=\"username\" autocapitalize=\"none\" maxlength=\"64\" required autofocus></label>\n")
        .element("<label>", say(words::PASSWORD), "")
        .marks("<input name=\"password\" type=\"password\" maxlength=\"1000\" required autocomplete=\"")
        .marks(kind)
        .marks("\"></label>\n")
}

/// Returns the path if a login may redirect to it.
pub(crate) fn local(next: &str) -> Option<&str> {
    let plain = next.bytes().all(|byte| byte.is_ascii_graphic()) && !next.contains('\\');
    (plain && NEXT.iter().any(|start| next.starts_with(start))).then_some(next)
}

/// Returns the CSP source of the client's redirect URI, if `next` is an authorization request.
fn source(next: &str) -> Option<String> {
    let fields = Fields::read(next.strip_prefix("/oauth/authorize?")?).ok()?;
    Redirect::read(fields.get("redirect_uri")?).ok().map(|redirect| redirect.source())
}

/// Returns the normalised name for lookup and throttling. It becomes a map key, so a text longer than any user name is
/// truncated.
fn key_of(name: &str) -> Arc<str> {
    name.trim().chars().take(NAME_CHARS + 1).collect::<String>().to_lowercase().into()
}

/// Checks the throttles of this name and address.
fn wait(desk: &Desk, name: &Arc<str>) -> Result<(), Error> {
    desk.app.brake.look(desk.peer, &desk.app)?;
    let Some(rate) = rate(desk) else { return Ok(()) };
    let look = desk.app.tries.names.look(name, rate, desk.app.started.elapsed());
    look.map_err(|wait| Error::new(Kind::RateLimit, "too many tries").after(wait))
}

fn count(desk: &Desk, name: &Arc<str>) {
    // The limit is enforced at the next attempt.
    let _ = desk.app.brake.note(desk.peer, &desk.app);
    if let Some(rate) = rate(desk) {
        let _ = desk.app.tries.names.take(name, rate, desk.app.started.elapsed());
    }
}

/// Returns the configured rate; a limit of zero disables the throttle.
fn rate(desk: &Desk) -> Option<Rate> {
    let count = desk.app.limits.failed_logins;
    (count > 0).then_some(Rate { count, per: SPAN })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_login_leads_only_to_places_of_ours() {
        for fine in ["/oauth/authorize?client_id=x", "/connect/notion", "/ui"] {
            assert_eq!(local(fine), Some(fine));
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
            assert_eq!(local(wrong), None, "{wrong}");
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

//! Logout, confirmed on a page so that no other site can trigger it.

use axum::body::Body;
use axum::response::Response;
use hikite_core::error::Error;
use hikite_gateway::Deed;
use http::StatusCode;

use super::desk::Desk;
use super::form::{self, Binding};
use super::page::{self, Html};
use super::{cookie, words};

pub(crate) async fn show(desk: Desk) -> Response {
    let binding = match Binding::of(&desk).await {
        Ok(binding) => binding,
        Err(error) => return page::trouble(&desk, &error),
    };
    let say = |words| desk.say(words);
    let body = Html::default()
        .marks("<form method=\"post\" action=\"/oauth/logout\">\n")
        .and(&binding.field())
        .element("<div class=\"choice\"><button>", say(words::LOG_OUT), "</button></div>\n</form>");
    binding.put_on(page::page(StatusCode::OK, desk.language, say(words::LOG_OUT), &body, None), &desk)
}

pub(crate) async fn log_out(desk: Desk, body: Body) -> Response {
    if let Err(answer) = form::read(&desk, body).await {
        return answer;
    }
    if let Err(error) = end(&desk).await {
        return page::trouble(&desk, &error);
    }
    let body = Html::default().element("<p><a href=\"/oauth/login\">", desk.say(words::LOG_IN), "</a></p>");
    let title = desk.say(words::LOGGED_OUT);
    let mut response = page::page(StatusCode::OK, desk.language, title, &body, None);
    cookie::clear(response.headers_mut(), cookie::LOGIN, desk.place.is_https());
    response
}

async fn end(desk: &Desk) -> Result<(), Error> {
    let Some(login) = desk.login().await? else { return Ok(()) };
    desk.note(Deed { action: "logout", subject: &login.user.subject, ..Deed::default() }).await?;
    desk.identity.end_login(login.secret.expose()).await
}

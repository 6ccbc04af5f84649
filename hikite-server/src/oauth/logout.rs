//! Logout, confirmed on a page so that no other site can trigger it.

use axum::body::Body;
use axum::response::Response;
use hikite_core::error::Error;
use hikite_gateway::AuthEvent;
use http::StatusCode;

use super::context::OauthContext;
use super::form::{self, FormBinding};
use super::page::{self, Html};
use super::{cookie, text};

pub(crate) async fn show(context: OauthContext) -> Response {
    let binding = match FormBinding::of(&context).await {
        Ok(binding) => binding,
        Err(error) => return page::error_page(&context, &error),
    };
    let say = |words| context.say(words);
    let body = Html::default()
        .marks("<form method=\"post\" action=\"/oauth/logout\">\n")
        .and(&binding.field())
        .element("<div class=\"choice\"><button>", say(text::LOG_OUT), "</button></div>\n</form>");
    binding.set_cookie(page::page(StatusCode::OK, context.language, say(text::LOG_OUT), &body, None), &context)
}

pub(crate) async fn log_out(context: OauthContext, body: Body) -> Response {
    if let Err(answer) = form::read(&context, body).await {
        return answer;
    }
    if let Err(error) = end(&context).await {
        return page::error_page(&context, &error);
    }
    let body = Html::default().element("<p><a href=\"/oauth/login\">", context.say(text::LOG_IN), "</a></p>");
    let title = context.say(text::LOGGED_OUT);
    let mut response = page::page(StatusCode::OK, context.language, title, &body, None);
    cookie::clear(response.headers_mut(), cookie::LOGIN, context.place.is_https());
    response
}

async fn end(context: &OauthContext) -> Result<(), Error> {
    let Some(login) = context.login().await? else { return Ok(()) };
    context.note(AuthEvent { action: "logout", subject: &login.user.subject, ..AuthEvent::default() }).await?;
    context.identity.logins().end(login.secret.expose()).await
}

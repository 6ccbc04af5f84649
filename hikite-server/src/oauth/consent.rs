//! The consent page. It names the client, the recipient of the code and the scopes; the decision is accepted only from
//! the browser of the user who was asked.

use axum::body::Body;
use axum::response::Response;
use hikite_core::caller::Scopes;
use hikite_core::error::{Error, ErrorKind};
use hikite_gateway::AuthEvent;
use hikite_identity::LoginSession;
use http::StatusCode;

use super::context::OauthContext;
use super::form::{self, FormBinding};
use super::page::{self, Html};
use super::request::{self, AuthorizationRequest};
use super::{authorize, text};

pub(crate) async fn ask(
    context: &OauthContext,
    request: &AuthorizationRequest,
    login: &LoginSession,
    scopes: Scopes,
    query: &str,
) -> Result<Response, Error> {
    let say = |words| context.say(words);
    let binding = FormBinding::of(context).await?;
    let mut may = Html::default();
    for (scope, words) in [(Scopes::READ, text::READ), (Scopes::CALL, text::CALL), (Scopes::ADMIN, text::ADMIN)] {
        if scopes.contains(scope) {
            may = may.element("<li>", say(words), "</li>\n");
        }
    }
    let mut body = Html::default()
        .element("<p><strong>", &request.client.name, "</strong> ")
        .element("", say(text::WANTS), " ")
        .element("<strong>", &login.user.name, "</strong></p>\n")
        .element("<p>", say(text::REDIRECTS_TO), "")
        .element(" <span class=\"place\">", &request.recipient, "</span></p>\n");
    if request.is_loopback {
        body = body.element("<p class=\"faint\">", say(text::ON_THIS_MACHINE), "</p>\n");
    }
    body = match authorize::project(request, login) {
        Some(project) => body.element("<p>", say(text::IN_PROJECT), "").element(
            " <strong class=\"project\">",
            project,
            "</strong></p>\n",
        ),
        None => body.element("<p class=\"faint\">", say(text::IN_ALL_PROJECTS), "</p>\n"),
    };
    let body = body
        .element("<p>", say(text::MAY), ":</p>\n<ul>\n")
        .and(&may)
        .element("</ul>\n<p class=\"faint\">", say(text::UNSURE), "</p>\n")
        .marks("<form method=\"post\" action=\"/oauth/consent\">\n")
        .and(&binding.field())
        .and(&Html::hidden("request", query))
        .and(&Html::hidden("scopes", &scopes.names().collect::<Vec<_>>().join(" ")))
        .marks("<div class=\"choice\">\n<button name=\"decision\" value=\"allow\">")
        .element("", say(text::ALLOW), "</button>\n")
        .element("<button class=\"second\" name=\"decision\" value=\"deny\">", say(text::DENY), "</button>\n")
        .marks("</div>\n</form>");
    let page = page::page(StatusCode::OK, context.language, say(text::CONSENT), &body, Some(&request.source));
    Ok(binding.set_cookie(page, context))
}

/// Handles the decision. The request in the form is parsed and checked again.
pub(crate) async fn decide(context: OauthContext, body: Body) -> Response {
    answer(&context, body).await.unwrap_or_else(|answer| answer)
}

async fn answer(context: &OauthContext, body: Body) -> Result<Response, Response> {
    let error_page = |error: Error| page::error_page(context, &error);
    let fields = form::read(context, body).await?;
    let Some(login) = context.login().await.map_err(error_page)? else {
        return Err(error_page(Error::new(ErrorKind::Authorization, "No user is logged in with this browser.")));
    };
    let request = request::read(context, fields.get("request").unwrap_or_default()).await?;
    // Only scopes that were shown are granted, even if the user's role has gained more since.
    let shown = request::scopes(fields.get("scopes")).unwrap_or(Scopes::NONE);
    let scopes = authorize::allowed(context, &request, &login)?.both(shown);
    if scopes == Scopes::NONE {
        return Err(error_page(Error::new(
            ErrorKind::Validation,
            "The form does not contain the permissions to allow.",
        )));
    }
    let event =
        |action| AuthEvent { action, subject: &login.user.subject, what: &request.client.id, ..AuthEvent::default() };
    match fields.get("decision") {
        Some("allow") => {
            context.note(event("consent.allow")).await.map_err(error_page)?;
            let consent = authorize::of(&request, &login);
            context.identity.clients().consent(consent, scopes).await.map_err(error_page)?;
            authorize::finish(context, &request, &login, scopes).await
        }
        Some("deny") => {
            context.note(event("consent.deny")).await.map_err(error_page)?;
            Ok(request.refused(context, "access_denied", "The user denied the request."))
        }
        _ => Err(error_page(Error::new(ErrorKind::Validation, "The form contains no decision."))),
    }
}

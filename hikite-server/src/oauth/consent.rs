//! The consent page. It names the client, the recipient of the code and the scopes; the decision is accepted only from
//! the browser of the user who was asked.

use axum::body::Body;
use axum::response::Response;
use hikite_core::caller::Scopes;
use hikite_core::error::{Error, Kind};
use hikite_gateway::Deed;
use hikite_gateway::identity::Login;
use http::StatusCode;

use super::desk::Desk;
use super::form::{self, Binding};
use super::page::{self, Html};
use super::request::{self, Asked};
use super::{authorize, words};

pub(crate) async fn ask(
    desk: &Desk,
    asked: &Asked,
    login: &Login,
    scopes: Scopes,
    query: &str,
) -> Result<Response, Error> {
    let say = |words| desk.say(words);
    let binding = Binding::of(desk).await?;
    let mut may = Html::default();
    for (scope, words) in
        [(Scopes::READ, words::READ), (Scopes::CALL, words::CALL), (Scopes::ADMIN, words::ADMIN)]
    {
        if scopes.contains(scope) {
            may = may.element("<li>", say(words), "</li>\n");
        }
    }
    let mut body = Html::default()
        .element("<p><strong>", &asked.client.name, "</strong> ")
        .element("", say(words::WANTS), " ")
        .element("<strong>", &login.user.name, "</strong></p>\n")
        .element("<p>", say(words::ANSWERED_AT), "")
        .element(" <span class=\"place\">", &asked.recipient, "</span></p>\n");
    if asked.is_loopback {
        body = body.element("<p class=\"faint\">", say(words::ON_THIS_MACHINE), "</p>\n");
    }
    body = match authorize::project(asked, login) {
        Some(project) => body.element("<p>", say(words::IN_PROJECT), "").element(
            " <strong class=\"project\">",
            project,
            "</strong></p>\n",
        ),
        None => body.element("<p class=\"faint\">", say(words::IN_ALL_PROJECTS), "</p>\n"),
    };
    let body = body
        .element("<p>", say(words::MAY), ":</p>\n<ul>\n")
        .and(&may)
        .element("</ul>\n<p class=\"faint\">", say(words::UNSURE), "</p>\n")
        .marks("<form method=\"post\" action=\"/oauth/consent\">\n")
        .and(&binding.field())
        .and(&Html::hidden("request", query))
        .and(&Html::hidden("scopes", &scopes.names().collect::<Vec<_>>().join(" ")))
        .marks("<div class=\"choice\">\n<button name=\"decision\" value=\"allow\">")
        .element("", say(words::ALLOW), "</button>\n")
        .element(
            "<button class=\"second\" name=\"decision\" value=\"deny\">",
            say(words::DENY),
            "</button>\n",
        )
        .marks("</div>\n</form>");
    let page = page::page(StatusCode::OK, desk.language, say(words::CONSENT), &body, Some(&asked.source));
    Ok(binding.put_on(page, desk))
}

/// Handles the decision. The request in the form is parsed and checked again.
pub(crate) async fn decide(desk: Desk, body: Body) -> Response {
    answer(&desk, body).await.unwrap_or_else(|answer| answer)
}

async fn answer(desk: &Desk, body: Body) -> Result<Response, Response> {
    let trouble = |error: Error| page::trouble(desk, &error);
    let fields = form::read(desk, body).await?;
    let Some(login) = desk.login().await.map_err(trouble)? else {
        return Err(trouble(Error::new(Kind::Authorization, "nobody is logged in at this browser")));
    };
    let asked = request::read(desk, fields.get("request").unwrap_or_default()).await?;
    // Only scopes that were shown are granted, even if the user's role has gained more since.
    let shown = request::scopes(fields.get("scopes")).unwrap_or(Scopes::NONE);
    let scopes = authorize::allowed(desk, &asked, &login)?.both(shown);
    if scopes == Scopes::NONE {
        return Err(trouble(Error::new(Kind::Validation, "the form does not say what is allowed")));
    }
    let deed =
        |action| Deed { action, subject: &login.user.subject, what: &asked.client.id, ..Deed::default() };
    match fields.get("decision") {
        Some("allow") => {
            desk.note(deed("consent.allow")).await.map_err(trouble)?;
            let consent = authorize::of(&asked, &login);
            desk.identity.consent(consent, scopes).await.map_err(trouble)?;
            authorize::finish(desk, &asked, &login, scopes).await
        }
        Some("deny") => {
            desk.note(deed("consent.deny")).await.map_err(trouble)?;
            Ok(asked.refused(desk, "access_denied", "the user said no"))
        }
        _ => Err(trouble(Error::new(Kind::Validation, "the form says neither yes nor no"))),
    }
}

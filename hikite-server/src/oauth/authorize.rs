//! Where a client sends the browser of its user: to log in, to be asked, and back with a code.

use axum::response::Response;
use hikite_core::caller::Scopes;
use hikite_core::error::Error;
use hikite_gateway::identity::{Ask, Consent, Login};
use http::Uri;

use super::desk::Desk;
use super::request::{self, Asked};
use super::{consent, login, page};

pub(crate) async fn authorize(desk: Desk, uri: Uri) -> Response {
    answer(&desk, uri.query().unwrap_or_default()).await.unwrap_or_else(|answer| answer)
}

async fn answer(desk: &Desk, query: &str) -> Result<Response, Response> {
    let asked = request::read(desk, query).await?;
    let trouble = |error: Error| page::trouble(desk, &error);
    let is_silent = asked.prompt.as_deref() == Some("none");
    let Some(login) = desk.login().await.map_err(trouble)? else {
        if is_silent {
            return Ok(asked.refused(desk, "login_required", "nobody is logged in"));
        }
        return Ok(login::send_to(&format!("/oauth/authorize?{query}")));
    };
    let scopes = allowed(desk, &asked, &login)?;
    let before = desk.identity.consented(of(&asked, &login)).await.map_err(trouble)?;
    let is_asked_for = asked.prompt.as_deref() == Some("consent");
    if before.contains(scopes) && !is_asked_for {
        return finish(desk, &asked, &login, scopes).await;
    }
    if is_silent {
        return Ok(asked.refused(desk, "consent_required", "the user has not allowed this yet"));
    }
    consent::ask(desk, &asked, &login, scopes, query).await.map_err(trouble)
}

/// What of the request this user can allow at all.
pub(crate) fn allowed(desk: &Desk, asked: &Asked, login: &Login) -> Result<Scopes, Response> {
    let scopes = asked.scopes.both(login.user.role.scopes());
    if scopes == Scopes::NONE {
        return Err(asked.refused(desk, "invalid_scope", "this user may do nothing of what is asked for"));
    }
    Ok(scopes)
}

pub(crate) fn of<'a>(asked: &'a Asked, login: &'a Login) -> Consent<'a> {
    Consent { subject: &login.user.subject, client: &asked.client.id, place: &asked.place }
}

/// Back to the client, with a code.
pub(crate) async fn finish(
    desk: &Desk,
    asked: &Asked,
    login: &Login,
    scopes: Scopes,
) -> Result<Response, Response> {
    let ask = Ask {
        subject: &login.user.subject,
        client: &asked.client.id,
        redirect: &asked.redirect,
        challenge: &asked.challenge,
        scopes,
    };
    let code = desk.identity.make_code(ask).await.map_err(|error| page::trouble(desk, &error))?;
    Ok(asked.back(desk, &[("code", code.expose())]))
}

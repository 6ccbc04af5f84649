//! The authorization endpoint: login, consent, and the redirect back with a code.

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
    let must_ask = asked.is_asked_every_time || asked.prompt.as_deref() == Some("consent");
    if before.contains(scopes) && !must_ask {
        return finish(desk, &asked, &login, scopes).await;
    }
    if is_silent {
        return Ok(asked.refused(desk, "consent_required", "the user has to be asked"));
    }
    consent::ask(desk, &asked, &login, scopes, query).await.map_err(trouble)
}

/// Returns the requested scopes that this user can grant. Tokens for a project have no admin scope.
pub(crate) fn allowed(desk: &Desk, asked: &Asked, login: &Login) -> Result<Scopes, Response> {
    let people = desk.app.gateway.people();
    if !asked.resource.project().is_none_or(|project| people.person_may_enter(&login.user, project)) {
        let why = "there is no such project, or this user may not enter it";
        return Err(asked.refused(desk, "invalid_target", why));
    }
    let most = if project(asked, login).is_some() { Scopes::USUAL } else { Scopes::ALL };
    let scopes = asked.scopes.both(login.user.role.scopes()).both(most);
    if scopes == Scopes::NONE {
        return Err(asked.refused(desk, "invalid_scope", "this user may do nothing of what is asked for"));
    }
    Ok(scopes)
}

pub(crate) fn of<'a>(asked: &'a Asked, login: &'a Login) -> Consent<'a> {
    let project = project(asked, login);
    Consent { subject: &login.user.subject, client: &asked.client.id, place: &asked.place, project }
}

/// Returns the only project that the client may enter: the requested one, or the one that its user is bound to.
pub(crate) fn project<'a>(asked: &'a Asked, login: &'a Login) -> Option<&'a str> {
    asked.resource.project().or(login.user.project.as_deref())
}

/// Redirects to the client with a code.
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
        project: asked.resource.project(),
    };
    let code = desk.identity.make_code(ask).await.map_err(|error| page::trouble(desk, &error))?;
    Ok(asked.back(desk, &[("code", code.expose())]))
}

//! The authorization endpoint: login, consent, and the redirect back with a code.

use axum::response::Response;
use hikite_core::caller::Scopes;
use hikite_core::error::Error;
use hikite_identity::{ApprovedRequest, Consent, LoginSession};
use http::Uri;

use super::context::OauthContext;
use super::request::{self, AuthorizationRequest};
use super::{consent, login, page};

pub(crate) async fn authorize(context: OauthContext, uri: Uri) -> Response {
    answer(&context, uri.query().unwrap_or_default()).await.unwrap_or_else(|answer| answer)
}

async fn answer(context: &OauthContext, query: &str) -> Result<Response, Response> {
    let request = request::read(context, query).await?;
    let error_page = |error: Error| page::error_page(context, &error);
    let is_silent = request.prompt.as_deref() == Some("none");
    let Some(login) = context.login().await.map_err(error_page)? else {
        if is_silent {
            return Ok(request.refused(context, "login_required", "No user is logged in."));
        }
        return Ok(login::redirect_to_login(&format!("/oauth/authorize?{query}")));
    };
    let scopes = allowed(context, &request, &login)?;
    let before = context.identity.clients().consented(of(&request, &login)).await.map_err(error_page)?;
    let must_ask = request.is_consent_always_required || request.prompt.as_deref() == Some("consent");
    if before.contains(scopes) && !must_ask {
        return finish(context, &request, &login, scopes).await;
    }
    if is_silent {
        return Ok(request.refused(context, "consent_required", "The user has to be asked for consent."));
    }
    consent::ask(context, &request, &login, scopes, query).await.map_err(error_page)
}

/// Returns the requested scopes that this user can grant. Tokens for a project have no admin scope.
pub(crate) fn allowed(
    context: &OauthContext,
    request: &AuthorizationRequest,
    login: &LoginSession,
) -> Result<Scopes, Response> {
    let people = context.app.gateway.people();
    if !request.resource.project().is_none_or(|project| people.user_may_enter(&login.user, project)) {
        let why = "There is no such project, or this user is not a member of it.";
        return Err(request.refused(context, "invalid_target", why));
    }
    let most = if project(request, login).is_some() { Scopes::DEFAULT } else { Scopes::ALL };
    let scopes = request.scopes.both(login.user.role.scopes()).both(most);
    if scopes == Scopes::NONE {
        return Err(request.refused(context, "invalid_scope", "This user has none of the requested permissions."));
    }
    Ok(scopes)
}

pub(crate) fn of<'a>(request: &'a AuthorizationRequest, login: &'a LoginSession) -> Consent<'a> {
    let project = project(request, login);
    Consent { subject: &login.user.subject, client: &request.client.id, place: &request.place, project }
}

/// Returns the only project that the client may enter: the requested one, or the one that its user is bound to.
pub(crate) fn project<'a>(request: &'a AuthorizationRequest, login: &'a LoginSession) -> Option<&'a str> {
    request.resource.project().or(login.user.project.as_deref())
}

/// Redirects to the client with a code.
pub(crate) async fn finish(
    context: &OauthContext,
    request: &AuthorizationRequest,
    login: &LoginSession,
    scopes: Scopes,
) -> Result<Response, Response> {
    let ask = ApprovedRequest {
        subject: &login.user.subject,
        client: &request.client.id,
        redirect: &request.redirect,
        challenge: &request.challenge,
        scopes,
        project: request.resource.project(),
    };
    let code = context.identity.tokens().issue_code(ask).await.map_err(|error| page::error_page(context, &error))?;
    Ok(request.back(context, &[("code", code.expose())]))
}

//! The token endpoint: authorization codes with PKCE, refresh tokens and client credentials.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hikite_core::error::ErrorKind;
use hikite_gateway::AuthEvent;
use hikite_identity::{ClientRecord, CodeExchange, RefreshRequest, TokenError, TokenPair};
use http::StatusCode;
use http::header::AUTHORIZATION;
use serde_json::json;

use super::context::OauthContext;
use super::fields::{FormFields, decode};
use super::request;
use super::response::{OauthError, uncached};

pub(crate) async fn token(context: OauthContext, body: Body) -> Response {
    answer(&context, body).await.map_or_else(IntoResponse::into_response, |pair| token_response(&pair))
}

async fn answer(context: &OauthContext, body: Body) -> Result<TokenPair, OauthError> {
    let fields = FormFields::of(&context.app, &context.headers, body).await;
    let fields = fields.map_err(|bad| OauthError::new("invalid_request", bad.0))?;
    let client = client(context, &fields).await?;
    let resource = context.place.target(fields.resources());
    let resource = resource.map_err(|why| OauthError::new("invalid_target", why))?;
    let target = resource.target();
    let missing = |what: &str| OauthError::new("invalid_request", format!("{what} is missing."));
    let (terms, scopes) = (&context.oauth.terms, request::scopes(fields.get("scope")));
    match fields.get("grant_type") {
        Some("authorization_code") => {
            let code = CodeExchange {
                code: fields.get("code").ok_or_else(|| missing("code"))?,
                client: &client.id,
                redirect: fields.get("redirect_uri"),
                verifier: fields.get("code_verifier").ok_or_else(|| missing("code_verifier"))?,
                target,
            };
            audit_reuse(context, &client, context.identity.tokens().redeem_code(terms, code).await).await
        }
        Some("refresh_token") => {
            let token = fields.get("refresh_token").ok_or_else(|| missing("refresh_token"))?;
            let refresh = RefreshRequest { token, scopes, target };
            audit_reuse(context, &client, context.identity.tokens().refresh(terms, &client, refresh).await).await
        }
        Some("client_credentials") if client.is_own() => {
            Ok(context.identity.tokens().client_credentials_token(terms, &client, scopes, target).await?)
        }
        Some("client_credentials") => Err(OauthError::new(
            "unauthorized_client",
            "An admin must allow this client to use the client credentials grant.",
        )),
        Some(_) => Err(OauthError::new("unsupported_grant_type", "This grant_type is not supported.")),
        None => Err(missing("grant_type")),
    }
}

/// Records the reuse of a code or refresh token in the audit log, and refuses it.
async fn audit_reuse(
    context: &OauthContext,
    client: &ClientRecord,
    outcome: Result<TokenPair, TokenError>,
) -> Result<TokenPair, OauthError> {
    if let Err(TokenError::Replay(again)) = &outcome {
        context
            .note(AuthEvent {
                action: again.action,
                subject: &again.subject,
                grant: Some(&again.grant),
                what: &client.id,
                refused: Some(ErrorKind::Authentication),
            })
            .await?;
    }
    Ok(outcome?)
}

/// Authenticates the client. Wrong secrets are counted per address.
pub(super) async fn client(context: &OauthContext, fields: &FormFields) -> Result<ClientRecord, OauthError> {
    let by_header = context.headers.contains_key(AUTHORIZATION);
    let (id, secret) = credentials(context, fields)?;
    if secret.is_some() {
        context.app.login_throttle.look(context.peer)?;
    }
    let proved = context.identity.clients().authenticate(&id, secret.as_deref()).await;
    if matches!(proved, Err(TokenError::Client(_))) && secret.is_some() {
        context.app.login_throttle.note(context.peer)?;
    }
    proved.map_err(|denied| OauthError::from(denied).by_header(by_header))
}

fn credentials(context: &OauthContext, fields: &FormFields) -> Result<(String, Option<String>), OauthError> {
    let wrong = |why: &str| OauthError::new("invalid_client", why).by_header(true);
    let mut sent = context.headers.get_all(AUTHORIZATION).iter();
    match (sent.next(), sent.next()) {
        (None, _) => {
            let id =
                fields.get("client_id").ok_or_else(|| OauthError::new("invalid_client", "client_id is missing."))?;
            Ok((id.to_owned(), fields.get("client_secret").map(str::to_owned)))
        }
        (Some(value), None) => {
            let (id, secret) = basic(value.to_str().unwrap_or_default())
                .ok_or_else(|| wrong("The Authorization header is not a Basic one."))?;
            if fields.get("client_secret").is_some() || fields.get("client_id").is_some_and(|other| other != id) {
                return Err(OauthError::new("invalid_request", "The client authenticates in two ways."));
            }
            Ok((id, Some(secret).filter(|secret| !secret.is_empty())))
        }
        (Some(_), Some(_)) => Err(wrong("The request has more than one Authorization header.")),
    }
}

/// Decodes HTTP Basic credentials; id and secret are form-encoded (RFC 6749, 2.3.1).
fn basic(value: &str) -> Option<(String, String)> {
    let (scheme, text) = value.split_once(' ')?;
    let text = scheme.eq_ignore_ascii_case("basic").then(|| BASE64_STANDARD.decode(text.trim()).ok())??;
    let text = String::from_utf8(text).ok()?;
    let (id, secret) = text.split_once(':')?;
    Some((decode(id)?, decode(secret)?))
}

fn token_response(pair: &TokenPair) -> Response {
    let mut body = json!({
        "access_token": pair.access.expose(),
        "token_type": "Bearer",
        "expires_in": pair.expires_in.as_secs(),
        "scope": pair.scopes.names().collect::<Vec<_>>().join(" "),
    });
    if let Some(refresh) = &pair.refresh {
        body["refresh_token"] = refresh.expose().into();
    }
    uncached(StatusCode::OK, &body)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_basic_header_is_read_as_forms_are() {
        let encode = |text: &str| format!("Basic {}", BASE64_STANDARD.encode(text));
        let pair = |id: &str, secret: &str| Some((id.to_owned(), secret.to_owned()));
        assert_eq!(basic(&encode("hkc_1:s%3Ax+y")), pair("hkc_1", "s:x y"));
        assert_eq!(basic(&encode("https%3A%2F%2Fa.example%2Fc:")), pair("https://a.example/c", ""));
        for wrong in ["", "Basic", "Basic !", "Bearer eA==", &encode("x"), &encode("a:%zz")] {
            assert_eq!(basic(wrong), None, "{wrong}");
        }
    }
}

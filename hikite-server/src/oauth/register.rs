//! Dynamic client registration (RFC 7591). It only yields an id: a client gets no access until a user grants it, and
//! its redirect URI may need an admin's approval.

use std::time::Duration;

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::rate::Rate;
use hikite_gateway::AuthEvent;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use http_body_util::{BodyExt, Limited};
use serde_json::{Value, json};

use super::client;
use super::context::OauthContext;
use super::response::{OauthError, uncached};

const BODY_BYTES: usize = 16 * 1024;
/// Registrations allowed per address.
const RATE: Rate = Rate { count: 30, per: Duration::from_secs(600) };

pub(crate) async fn register(context: OauthContext, body: Body) -> Response {
    answer(&context, body).await.unwrap_or_else(IntoResponse::into_response)
}

async fn answer(context: &OauthContext, body: Body) -> Result<Response, OauthError> {
    if !context.oauth.registration {
        return Err(OauthError::new("access_denied", "Client registration is disabled. Ask an admin for a client id."));
    }
    if let Some(peer) = context.peer {
        let taken = context.app.attempt_limits.registrations.take(&peer, RATE, context.app.started.elapsed()).0;
        taken.map_err(|wait| {
            context.identity.clients().count_refused(&context.client_room());
            Error::new(ErrorKind::RateLimit, "Too many clients were registered from this address.").after(wait)
        })?;
    }
    let metadata = read(context, body).await?;
    let form = client::read(&metadata, true)?;
    let by_post = metadata["token_endpoint_auth_method"].as_str() == Some("client_secret_post");
    let (client, secret) = context.identity.clients().register(form, &context.client_room()).await?;
    context.note(AuthEvent { action: "client.register", what: &client.id, ..AuthEvent::default() }).await?;
    tracing::info!(client = client.id, name = client.name, "a client registered");
    let method = match (&secret, by_post) {
        (None, _) => "none",
        (Some(_), true) => "client_secret_post",
        (Some(_), false) => "client_secret_basic",
    };
    let mut answer = json!({
        "client_id": client.id,
        "client_id_issued_at": client.created_at / 1000,
        "client_name": client.name,
        "redirect_uris": client.redirect_uris,
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
    });
    if let Some(secret) = secret {
        answer["client_secret"] = secret.expose().into();
        answer["client_secret_expires_at"] = 0.into();
    }
    Ok(uncached(StatusCode::CREATED, &answer))
}

async fn read(context: &OauthContext, body: Body) -> Result<Value, OauthError> {
    let wrong = |why: &str| OauthError::new("invalid_client_metadata", why);
    let kind = context.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if !kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case("application/json") {
        return Err(wrong("The body must be application/json."));
    }
    let reading = Limited::new(body, BODY_BYTES).collect();
    let body = tokio::time::timeout(context.app.limits.body_timeout, reading).await;
    let unread = || wrong("The body could not be read, or is larger than 16 KiB.");
    let body = body.ok().and_then(Result::ok).ok_or_else(unread)?.to_bytes();
    let metadata: Value = serde_json::from_slice(&body).map_err(|_| wrong("The body is not JSON."))?;
    if metadata.is_object() { Ok(metadata) } else { Err(wrong("The body must be a JSON object.")) }
}

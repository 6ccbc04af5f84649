//! Token revocation (RFC 7009). Does not reveal whether the token existed.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use hikite_gateway::AuthEvent;
use http::StatusCode;
use serde_json::json;

use super::context::OauthContext;
use super::fields::FormFields;
use super::response::{OauthError, uncached};
use super::token;

pub(crate) async fn revoke(context: OauthContext, body: Body) -> Response {
    answer(&context, body).await.unwrap_or_else(IntoResponse::into_response)
}

async fn answer(context: &OauthContext, body: Body) -> Result<Response, OauthError> {
    let fields = FormFields::of(&context.app, &context.headers, body).await;
    let fields = fields.map_err(|bad| OauthError::new("invalid_request", bad.0))?;
    let client = token::client(context, &fields).await?;
    let revoked_token = fields.get("token").ok_or_else(|| OauthError::new("invalid_request", "token is missing."))?;
    if let Some((subject, grant)) = context.identity.tokens().revoke(&client, revoked_token).await? {
        let event = AuthEvent { action: "grant.revoke", subject: &subject, what: &client.id, ..AuthEvent::default() };
        context.note(AuthEvent { grant: Some(&grant), ..event }).await?;
    }
    Ok(uncached(StatusCode::OK, &json!({})))
}

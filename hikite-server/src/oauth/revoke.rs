//! Token revocation (RFC 7009). Does not reveal whether the token existed.

use axum::body::Body;
use axum::response::{IntoResponse, Response};
use hikite_gateway::Deed;
use http::StatusCode;
use serde_json::json;

use super::answer::{Refusal, fresh};
use super::desk::Desk;
use super::fields::Fields;
use super::token;

pub(crate) async fn revoke(desk: Desk, body: Body) -> Response {
    answer(&desk, body).await.unwrap_or_else(IntoResponse::into_response)
}

async fn answer(desk: &Desk, body: Body) -> Result<Response, Refusal> {
    let fields = Fields::of(&desk.app, &desk.headers, body).await;
    let fields = fields.map_err(|bad| Refusal::new("invalid_request", bad.0))?;
    let client = token::client(desk, &fields).await?;
    let given = fields.get("token").ok_or_else(|| Refusal::new("invalid_request", "token is missing"))?;
    if let Some((subject, grant)) = desk.identity.revoke(&client, given).await? {
        let deed = Deed { action: "grant.revoke", subject: &subject, what: &client.id, ..Deed::default() };
        desk.note(Deed { grant: Some(&grant), ..deed }).await?;
    }
    Ok(fresh(StatusCode::OK, &json!({})))
}

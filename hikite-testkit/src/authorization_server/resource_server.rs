//! The protected MCP server: one tool, for requests with a valid token.

use std::sync::Arc;

use axum::{
    Json,
    extract::State,
    response::{IntoResponse, Response},
};
use http::{HeaderMap, StatusCode, header::WWW_AUTHENTICATE};
use serde_json::{Value, json};

use super::AuthorizationServerState;

pub(super) async fn metadata(State(shared): State<Arc<AuthorizationServerState>>, headers: HeaderMap) -> Response {
    shared.note("/resource", &headers, "");
    let faults = shared.faults.lock().clone();
    let document = json!({
        "resource": faults.resource.unwrap_or_else(|| shared.resource()),
        "authorization_servers": faults.servers.unwrap_or_else(|| vec![shared.issuer()]),
    });
    Json(document).into_response()
}

pub(super) async fn post(
    State(shared): State<Arc<AuthorizationServerState>>,
    headers: HeaderMap,
    body: String,
) -> Response {
    shared.note("/mcp", &headers, &body);
    let shown = headers.get("authorization").and_then(|value| value.to_str().ok());
    let token = shown.and_then(|shown| shown.strip_prefix("Bearer ")).unwrap_or_default();
    if !shared.issued.lock().access.contains(token) {
        let usual = format!("http://{}/.well-known/oauth-protected-resource/mcp", shared.server);
        let place = shared.faults.lock().metadata_url.clone().unwrap_or(usual);
        let wanted = format!(r#"Bearer resource_metadata="{place}""#);
        return (StatusCode::UNAUTHORIZED, [(WWW_AUTHENTICATE, wanted)]).into_response();
    }
    let request: Value = serde_json::from_str(&body).unwrap_or_default();
    let result = match request["method"].as_str().unwrap_or_default() {
        "initialize" => json!({
            "protocolVersion": "2025-11-25",
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "guarded", "version": "1" },
        }),
        "tools/list" => json!({ "tools": [{ "name": "secret_word", "inputSchema": { "type": "object" } }] }),
        "tools/call" => json!({ "content": [{ "type": "text", "text": "open sesame" }] }),
        method if method.starts_with("notifications/") => return StatusCode::ACCEPTED.into_response(),
        _ => {
            let error = json!({ "code": -32601, "message": "Method not found" });
            return Json(json!({ "jsonrpc": "2.0", "id": request["id"], "error": error })).into_response();
        }
    };
    Json(json!({ "jsonrpc": "2.0", "id": request["id"], "result": result })).into_response()
}

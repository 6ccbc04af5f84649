//! The endpoints of the mock authorization server.

use std::{collections::HashMap, sync::Arc};

use axum::{
    Json,
    extract::{Query, State},
    response::{IntoResponse, Redirect, Response},
};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use http::{HeaderMap, StatusCode, header::LOCATION};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{AuthorizationServerState, IssuedCode, IssuedCredentials};

type Pairs = HashMap<String, String>;

pub(super) async fn metadata(State(shared): State<Arc<AuthorizationServerState>>, headers: HeaderMap) -> Response {
    shared.note("/metadata", &headers, "");
    let faults = shared.faults.lock().clone();
    if let Some(elsewhere) = &faults.metadata_redirect {
        return Redirect::temporary(elsewhere).into_response();
    }
    let base = shared.issuer();
    let mut document = json!({
        "issuer": faults.issuer.unwrap_or_else(|| base.clone()),
        "authorization_endpoint": format!("{base}/authorize"),
        "token_endpoint": format!("{base}/token"),
        "response_types_supported": ["code"],
        "token_endpoint_auth_methods_supported": ["none"],
        "authorization_response_iss_parameter_supported": true,
    });
    if !faults.no_pkce {
        document["code_challenge_methods_supported"] = json!(["S256"]);
    }
    if !faults.no_registration {
        document["registration_endpoint"] = format!("{base}/register").into();
    }
    Json(document).into_response()
}

pub(super) async fn register(
    State(shared): State<Arc<AuthorizationServerState>>,
    headers: HeaderMap,
    Json(asked): Json<Value>,
) -> Response {
    shared.note("/register", &headers, &asked.to_string());
    let ways: Vec<String> = serde_json::from_value(asked["redirect_uris"].clone()).unwrap_or_default();
    if ways.is_empty() || asked["token_endpoint_auth_method"] != "none" {
        return refuse("invalid_client_metadata");
    }
    let client = shared.new_secret("client");
    shared.issued.lock().clients.insert(client.clone(), ways.clone());
    (StatusCode::CREATED, Json(json!({ "client_id": client, "redirect_uris": ways }))).into_response()
}

pub(super) async fn authorize(
    State(shared): State<Arc<AuthorizationServerState>>,
    headers: HeaderMap,
    Query(asked): Query<Pairs>,
) -> Response {
    shared.note("/authorize", &headers, &format!("{asked:?}"));
    let text = |name: &str| asked.get(name).cloned().unwrap_or_default();
    let (client, redirect, challenge) = (text("client_id"), text("redirect_uri"), text("code_challenge"));
    let mut issued = shared.issued.lock();
    if !issued.clients.get(&client).is_some_and(|ways| ways.contains(&redirect)) {
        return refuse("invalid_request");
    }
    let is_right = text("response_type") == "code"
        && text("code_challenge_method") == "S256"
        && challenge.len() == 43
        && text("state").len() >= 32
        && text("resource") == shared.resource();
    if !is_right {
        return refuse("invalid_request");
    }
    let code = shared.new_secret("code");
    let resource = text("resource");
    issued.codes.insert(code.clone(), IssuedCode { client, redirect: redirect.clone(), challenge, resource });
    let named = shared.faults.lock().answered_issuer.clone().unwrap_or_else(|| shared.issuer());
    let issuer_query = if named.is_empty() { named } else { format!("&iss={}", escaped(&named)) };
    let back = format!("{redirect}?code={code}&state={}{issuer_query}", text("state"));
    (StatusCode::FOUND, [(LOCATION, back)]).into_response()
}

pub(super) async fn token(
    State(shared): State<Arc<AuthorizationServerState>>,
    headers: HeaderMap,
    body: String,
) -> Response {
    shared.note("/token", &headers, &body);
    if let Some(elsewhere) = &shared.faults.lock().token_redirect {
        return Redirect::temporary(elsewhere).into_response();
    }
    let Some(asked) = form(&body) else { return refuse("invalid_request") };
    let text = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
    let mut issued = shared.issued.lock();
    if !issued.clients.contains_key(text("client_id")) {
        return refuse("invalid_client");
    }
    if text("resource") != shared.resource() {
        return refuse("invalid_target");
    }
    let is_right = match text("grant_type") {
        "authorization_code" => issued.codes.remove(text("code")).is_some_and(|code| {
            let proof = URL_SAFE_NO_PAD.encode(Sha256::digest(text("code_verifier")));
            (code.client.as_str(), code.redirect.as_str()) == (text("client_id"), text("redirect_uri"))
                && code.challenge == proof
                && code.resource == text("resource")
        }),
        "refresh_token" => rotate(&mut issued, text("refresh_token")),
        _ => false,
    };
    if !is_right {
        return refuse("invalid_grant");
    }
    let access = shared.new_secret("access");
    issued.access.insert(access.clone());
    let mut given = json!({ "access_token": access, "token_type": "Bearer", "expires_in": 3600 });
    if !shared.faults.lock().no_refresh {
        let refresh = shared.new_secret("refresh");
        issued.refresh.insert(refresh.clone());
        given["refresh_token"] = refresh.into();
    }
    Json(given).into_response()
}

/// Consumes a refresh token. A replayed one revokes every token.
fn rotate(issued: &mut IssuedCredentials, token: &str) -> bool {
    if issued.used.contains(token) {
        issued.replayed = true;
        issued.access.clear();
        issued.refresh.clear();
        return false;
    }
    let is_good = issued.refresh.remove(token);
    if is_good {
        issued.used.insert(token.to_owned());
    }
    is_good
}

fn refuse(error: &str) -> Response {
    (StatusCode::BAD_REQUEST, Json(json!({ "error": error }))).into_response()
}

/// Parses a form; `None` if a name occurs twice.
fn form(body: &str) -> Option<Pairs> {
    let mut pairs = Pairs::new();
    for pair in body.split('&') {
        let (name, value) = pair.split_once('=')?;
        if pairs.insert(name.to_owned(), unescaped(value)?).is_some() {
            return None;
        }
    }
    Some(pairs)
}

fn escaped(text: &str) -> String {
    text.replace(':', "%3A").replace('/', "%2F")
}

fn unescaped(text: &str) -> Option<String> {
    let (mut bytes, mut rest) = (Vec::new(), text.bytes());
    while let Some(byte) = rest.next() {
        let byte = match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        };
        bytes.push(byte);
    }
    String::from_utf8(bytes).ok()
}

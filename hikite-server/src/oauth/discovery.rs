//! Discovery documents: authorization server metadata (RFC 8414), its `OpenID` Connect variant, and protected resource
//! metadata (RFC 9728).

use axum::response::Response;
use hikite_core::caller::Scopes;
use http::Uri;
use serde_json::{Value, json};

use super::context::OauthContext;
use super::response::document;
use crate::settings::ClientMetadataMode;

pub(crate) async fn server(context: OauthContext) -> Response {
    document(&metadata(&context))
}

pub(crate) async fn openid(context: OauthContext) -> Response {
    let mut metadata = metadata(&context);
    metadata["subject_types_supported"] = json!(["public"]);
    metadata["id_token_signing_alg_values_supported"] = json!(["ES256"]);
    document(&metadata)
}

/// Returns the metadata of the whole server as a resource.
pub(crate) async fn whole_server(context: OauthContext) -> Response {
    document(&resource_metadata(&context, &context.place.base))
}

/// Returns the metadata of the MCP endpoint, or of a project's.
pub(crate) async fn resource(context: OauthContext, uri: Uri) -> Response {
    let path = uri.path().trim_start_matches("/.well-known/oauth-protected-resource");
    document(&resource_metadata(&context, &context.place.at(path)))
}

fn metadata(context: &OauthContext) -> Value {
    let at = |path: &str| context.place.at(path);
    let scopes: Vec<&str> = Scopes::ALL.names().chain(["offline_access"]).collect();
    let methods = json!(["none", "client_secret_basic", "client_secret_post"]);
    let mut metadata = json!({
        "issuer": context.place.base,
        "authorization_endpoint": at("/oauth/authorize"),
        "token_endpoint": at("/oauth/token"),
        "jwks_uri": at("/oauth/jwks"),
        "revocation_endpoint": at("/oauth/revoke"),
        "scopes_supported": scopes,
        "response_types_supported": ["code"],
        "response_modes_supported": ["query"],
        "grant_types_supported": ["authorization_code", "refresh_token", "client_credentials"],
        "token_endpoint_auth_methods_supported": methods,
        "revocation_endpoint_auth_methods_supported": methods,
        "code_challenge_methods_supported": ["S256"],
        "authorization_response_iss_parameter_supported": true,
        "client_id_metadata_document_supported": context.oauth.cimd != ClientMetadataMode::Off,
        "protected_resources": [at("/mcp")],
        "ui_locales_supported": ["en", "ja"],
    });
    if context.oauth.registration {
        metadata["registration_endpoint"] = at("/oauth/register").into();
    }
    metadata
}

/// Builds protected resource metadata. Its scopes are those that a client should request first.
fn resource_metadata(context: &OauthContext, resource: &str) -> Value {
    json!({
        "resource": resource,
        "resource_name": "hikite",
        "authorization_servers": [context.place.base],
        "scopes_supported": Scopes::DEFAULT.names().collect::<Vec<_>>(),
        "bearer_methods_supported": ["header"],
    })
}

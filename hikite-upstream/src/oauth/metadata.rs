//! Metadata of servers and authorization servers (RFC 9728, RFC 8414, `OpenID` Connect Discovery), reduced to the
//! members in use, and their well-known URLs.

use http::Uri;
use serde::Deserialize;

use super::address::origin;

const RESOURCE: &str = "/.well-known/oauth-protected-resource";
const SERVER: &str = "/.well-known/oauth-authorization-server";
const OPENID: &str = "/.well-known/openid-configuration";

/// Protected resource metadata.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ResourceDocument {
    pub(super) resource: String,
    #[serde(default)]
    pub(super) authorization_servers: Vec<String>,
    #[serde(default)]
    pub(super) scopes_supported: Vec<String>,
}

/// Authorization server metadata.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ServerDocument {
    pub(super) issuer: String,
    pub(super) authorization_endpoint: Option<String>,
    pub(super) token_endpoint: String,
    pub(super) registration_endpoint: Option<String>,
    #[serde(default)]
    pub(super) scopes_supported: Vec<String>,
    pub(super) code_challenge_methods_supported: Option<Vec<String>>,
    pub(super) token_endpoint_auth_methods_supported: Option<Vec<String>>,
    #[serde(default)]
    pub(super) authorization_response_iss_parameter_supported: bool,
    #[serde(default)]
    pub(super) client_id_metadata_document_supported: bool,
}

/// Returns the well-known URLs of the resource metadata: below the server's path, then at its root.
pub(super) fn resource_metadata_urls(home: &Uri) -> Vec<String> {
    let (origin, path) = (origin(home), home.path().trim_end_matches('/'));
    let root = format!("{origin}{RESOURCE}");
    if path.is_empty() { vec![root] } else { vec![format!("{root}{path}"), root] }
}

/// Returns the well-known URLs of the authorization server metadata, in the order of the specification.
pub(super) fn server_metadata_urls(issuer: &Uri) -> Vec<String> {
    let (origin, path) = (origin(issuer), issuer.path().trim_end_matches('/'));
    if path.is_empty() {
        return vec![format!("{origin}{SERVER}"), format!("{origin}{OPENID}")];
    }
    vec![format!("{origin}{SERVER}{path}"), format!("{origin}{OPENID}{path}"), format!("{origin}{path}{OPENID}")]
}

/// Returns `true` if two issuers are equal up to one trailing slash, the only common mistake that names no other
/// issuer.
pub(super) fn same_issuer(one: &str, other: &str) -> bool {
    one.strip_suffix('/').unwrap_or(one) == other.strip_suffix('/').unwrap_or(other)
}

/// Returns the default endpoints of 2025-03-26, for servers without metadata.
pub(super) fn legacy(home: &Uri) -> ServerDocument {
    let origin = origin(home);
    ServerDocument {
        authorization_endpoint: Some(format!("{origin}/authorize")),
        token_endpoint: format!("{origin}/token"),
        registration_endpoint: Some(format!("{origin}/register")),
        issuer: origin,
        scopes_supported: Vec::new(),
        code_challenge_methods_supported: None,
        token_endpoint_auth_methods_supported: None,
        authorization_response_iss_parameter_supported: false,
        client_id_metadata_document_supported: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documents_are_looked_for_in_the_order_of_the_specification() {
        let uri = |text: &str| text.parse::<Uri>().expect(text);
        assert_eq!(
            resource_metadata_urls(&uri("https://a.example/x/mcp?k=1")),
            [
                "https://a.example/.well-known/oauth-protected-resource/x/mcp",
                "https://a.example/.well-known/oauth-protected-resource",
            ]
        );
        assert_eq!(
            resource_metadata_urls(&uri("https://a.example/")),
            ["https://a.example/.well-known/oauth-protected-resource"]
        );
        assert_eq!(
            server_metadata_urls(&uri("https://as.example/t/")),
            [
                "https://as.example/.well-known/oauth-authorization-server/t",
                "https://as.example/.well-known/openid-configuration/t",
                "https://as.example/t/.well-known/openid-configuration",
            ]
        );
        assert_eq!(
            server_metadata_urls(&uri("https://as.example")),
            [
                "https://as.example/.well-known/oauth-authorization-server",
                "https://as.example/.well-known/openid-configuration",
            ]
        );
    }

    #[test]
    fn issuers_differ_by_anything_but_one_slash() {
        assert!(same_issuer("https://a.example", "https://a.example/"));
        for other in ["https://a.example//", "https://A.example", "https://a.example:443", "http://a.example"] {
            assert!(!same_issuer("https://a.example", other), "{other}");
        }
    }
}

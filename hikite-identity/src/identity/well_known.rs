//! Well-known clients with their metadata. Logging in with one needs neither a request to fetch its metadata document
//! nor an approval of its redirect URIs. The list is `known.json`.

use std::sync::LazyLock;

use serde::Deserialize;

#[derive(Debug, Deserialize)]
pub struct WellKnownClient {
    pub name: String,
    /// URL of its metadata document, if it has one.
    pub client_id: Option<String>,
    pub redirect_uris: Vec<String>,
    /// Prefixes of redirect URIs whose rest identifies a connection.
    #[serde(default)]
    redirect_prefixes: Vec<String>,
}

static ALL: LazyLock<Vec<WellKnownClient>> =
    LazyLock::new(|| serde_json::from_str(include_str!("known.json")).unwrap_or_default());

impl WellKnownClient {
    /// Returns the client with this metadata document.
    pub fn of(client_id: &str) -> Option<&'static Self> {
        ALL.iter().find(|known| known.client_id.as_deref() == Some(client_id))
    }

    /// Returns `true` if this is a redirect URI of a well-known client.
    pub fn has_redirect_uri(uri: &str) -> bool {
        let plain = |rest: &str| {
            !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_./".contains(&byte))
        };
        let begins = |known: &Self| {
            known
                .redirect_prefixes
                .iter()
                .any(|prefix| uri.strip_prefix(prefix.as_str()).is_some_and(|rest| plain(rest) && !rest.contains("..")))
        };
        ALL.iter().any(|known| known.redirect_uris.iter().any(|own| own == uri) || begins(known))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::RedirectUri;

    #[test]
    fn every_known_client_could_be_registered() {
        assert!(ALL.len() > 4);
        for known in ALL.iter() {
            for uri in &known.redirect_uris {
                assert!(RedirectUri::read(uri).is_ok(), "{uri}");
            }
            assert!(known.client_id.as_deref().is_none_or(|id| id.starts_with("https://")));
        }
    }

    #[test]
    fn only_their_own_places_are_theirs() {
        for own in [
            "https://claude.ai/api/mcp/auth_callback",
            "https://chatgpt.com/connector/oauth/abc-1",
            "cursor://anysphere.cursor-mcp/oauth/callback",
        ] {
            assert!(WellKnownClient::has_redirect_uri(own), "{own}");
        }
        for other in [
            "https://claude.ai/api/mcp/auth_callback/x",
            "https://claude.ai.evil.example/api/mcp/auth_callback",
            "https://chatgpt.com/connector/oauth/",
            "https://chatgpt.com/connector/oauth/../../x",
            "https://chatgpt.com/connector/oauth/a?next=x",
            "https://evil.example/",
        ] {
            assert!(!WellKnownClient::has_redirect_uri(other), "{other}");
        }
    }
}

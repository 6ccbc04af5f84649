//! Token requests: exchanges a code, a refresh token or client credentials for tokens, and validates the response.
//! Errors repeat nothing of the response but the error code.

use hikite_core::error::Error;
use http::StatusCode;
use serde_json::Value;

use super::client::OAuthClient;
use super::fetch::MetadataFetcher;
use super::form;
use super::metadata::ServerDocument;
use super::tokens::{TokenOrigin, TokenSet};

/// Grant to exchange for a token.
#[derive(Clone, Copy, Debug)]
pub(super) enum TokenGrant<'a> {
    Code { code: &'a str, verifier: &'a str },
    Refresh(&'a str),
    ClientCredentials,
}

/// Reason why no token was issued.
#[derive(Debug)]
pub(super) enum TokenRefusal {
    /// The grant is invalid or expired.
    InvalidGrant,
    /// The server does not know the client.
    InvalidClient,
    Other(Error),
}

pub(super) async fn ask(
    fetcher: &MetadataFetcher,
    (server, client): (&ServerDocument, &OAuthClient),
    offer: TokenGrant<'_>,
    scopes: &[String],
    bound: TokenOrigin,
    now: u64,
) -> Result<TokenSet, TokenRefusal> {
    let mut pairs: Vec<(&'static str, String)> = match offer {
        TokenGrant::Code { code, verifier } => vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code.to_owned()),
            ("redirect_uri", bound.redirect.clone()),
            ("code_verifier", verifier.to_owned()),
        ],
        TokenGrant::Refresh(token) => {
            vec![("grant_type", "refresh_token".to_owned()), ("refresh_token", token.to_owned())]
        }
        TokenGrant::ClientCredentials => vec![("grant_type", "client_credentials".to_owned())],
    };
    pairs.push(("resource", bound.resource.clone()));
    if matches!(offer, TokenGrant::ClientCredentials) && !scopes.is_empty() {
        pairs.push(("scope", scopes.join(" ")));
    }
    let header = client.sign(&mut pairs, &server.issuer, now).map_err(TokenRefusal::Other)?;
    let endpoint = fetcher.address("`token_endpoint`", &server.token_endpoint).map_err(TokenRefusal::Other)?;
    let body = form::write(pairs.iter().map(|(name, value)| (*name, value.as_str())));
    let posted = fetcher.post(&endpoint, "application/x-www-form-urlencoded", body, header).await;
    let (status, answer) = posted.map_err(TokenRefusal::Other)?;
    if !status.is_success() {
        return Err(refused(fetcher, status, &answer));
    }
    TokenSet::from_response(&answer, scopes, bound, now).map_err(|why| TokenRefusal::Other(fetcher.failed(why)))
}

fn refused(fetcher: &MetadataFetcher, status: StatusCode, answer: &Value) -> TokenRefusal {
    match answer["error"].as_str() {
        Some("invalid_grant") => TokenRefusal::InvalidGrant,
        Some("invalid_client" | "unauthorized_client") => TokenRefusal::InvalidClient,
        Some(error) => {
            let what = format!("its authorization server rejected the request ({})", plain(error));
            TokenRefusal::Other(fetcher.failed(&what))
        }
        None => TokenRefusal::Other(fetcher.failed(&format!("its authorization server returned {status}"))),
    }
}

/// Returns an error code that is safe to display.
pub(super) fn plain(error: &str) -> String {
    error.chars().filter(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | '-')).take(60).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_error_only_its_name_is_shown() {
        assert_eq!(plain("access_denied"), "access_denied");
        assert_eq!(plain("<b>x</b>\n"), "bxb");
        assert_eq!(plain(&"a".repeat(100)).len(), 60);
    }
}

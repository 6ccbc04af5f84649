//! Token requests: exchanges a code, a refresh token or client credentials for tokens, and validates the response.
//! Errors repeat nothing of the response but the error code.

use hikite_core::error::Error;
use http::StatusCode;
use serde_json::Value;

use super::client::Client;
use super::fetch::Fetcher;
use super::form;
use super::metadata::ServerDocument;
use super::tokens::{Bound, Tokens};

/// Grant to exchange for a token.
#[derive(Clone, Copy, Debug)]
pub(super) enum Offer<'a> {
    Code { code: &'a str, verifier: &'a str },
    Refresh(&'a str),
    Ourselves,
}

/// Reason why no token was issued.
#[derive(Debug)]
pub(super) enum Refusal {
    /// The grant is invalid or expired.
    Worthless,
    /// The server does not know the client.
    Unknown,
    Other(Error),
}

pub(super) async fn ask(
    fetcher: &Fetcher,
    (server, client): (&ServerDocument, &Client),
    offer: Offer<'_>,
    scopes: &[String],
    bound: Bound,
    now: u64,
) -> Result<Tokens, Refusal> {
    let mut pairs: Vec<(&'static str, String)> = match offer {
        Offer::Code { code, verifier } => vec![
            ("grant_type", "authorization_code".to_owned()),
            ("code", code.to_owned()),
            ("redirect_uri", bound.redirect.clone()),
            ("code_verifier", verifier.to_owned()),
        ],
        Offer::Refresh(token) => {
            vec![("grant_type", "refresh_token".to_owned()), ("refresh_token", token.to_owned())]
        }
        Offer::Ourselves => vec![("grant_type", "client_credentials".to_owned())],
    };
    pairs.push(("resource", bound.resource.clone()));
    if matches!(offer, Offer::Ourselves) && !scopes.is_empty() {
        pairs.push(("scope", scopes.join(" ")));
    }
    let header = client.sign(&mut pairs, &server.issuer, now).map_err(Refusal::Other)?;
    let endpoint = fetcher.address("`token_endpoint`", &server.token_endpoint).map_err(Refusal::Other)?;
    let body = form::write(pairs.iter().map(|(name, value)| (*name, value.as_str())));
    let posted = fetcher.post(&endpoint, "application/x-www-form-urlencoded", body, header).await;
    let (status, answer) = posted.map_err(Refusal::Other)?;
    if !status.is_success() {
        return Err(refused(fetcher, status, &answer));
    }
    Tokens::answered(&answer, scopes, bound, now).map_err(|why| Refusal::Other(fetcher.failed(why)))
}

fn refused(fetcher: &Fetcher, status: StatusCode, answer: &Value) -> Refusal {
    match answer["error"].as_str() {
        Some("invalid_grant") => Refusal::Worthless,
        Some("invalid_client" | "unauthorized_client") => Refusal::Unknown,
        Some(error) => {
            let what = format!("its authorization server refuses ({})", plain(error));
            Refusal::Other(fetcher.failed(&what))
        }
        None => Refusal::Other(fetcher.failed(&format!("its authorization server answered {status} to us"))),
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

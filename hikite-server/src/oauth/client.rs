//! Resolves the client of a request: a registered one, or one whose id is the URL of its metadata document.

use hikite_core::error::{Error, ErrorKind};
use hikite_identity::{ClientRecord, NewClient, RedirectUri, WellKnownClient};
use serde_json::Value;

use super::client_document;
use super::context::OauthContext;
use super::response::OauthError;
use crate::settings::ClientMetadataMode;

const NAME_CHARS: usize = 200;
const REDIRECT_URIS_MAX: usize = 20;
/// Maximum bytes of all redirect URIs together, because they are stored.
const REDIRECT_URI_BYTES_MAX: usize = 8 * 1024;
/// Name of a client that declares none.
const DEFAULT_CLIENT_NAME: &str = "unnamed client";

/// Returns the client, or an error with advice for the user.
pub(crate) async fn find(context: &OauthContext, id: &str) -> Result<ClientRecord, Error> {
    if !id.starts_with("https://") {
        return context
            .identity
            .clients()
            .get(id)
            .await?
            .ok_or_else(|| unknown().hint("Connect the client again; it will register."));
    }
    let known = WellKnownClient::of(id)
        .map(|known| ClientRecord::described(id, known.name.clone(), known.redirect_uris.clone()));
    let client = match (context.oauth.cimd, known) {
        (ClientMetadataMode::Off, _) => {
            return Err(unknown().hint("Client ids that are addresses are disabled: see `auth.cimd` in the config."));
        }
        (ClientMetadataMode::Auto, Some(known)) => known,
        (_, known) => match client_document::client(context, id).await {
            Ok(client) => client,
            Err(error) => known.ok_or(error)?,
        },
    };
    context.identity.clients().save_described(client, &context.client_room()).await
}

/// Reads client metadata (RFC 7591), from a registration or a metadata document.
pub(crate) fn read(metadata: &Value, confidential_by_default: bool) -> Result<NewClient, OauthError> {
    let wrong = |why: &str| OauthError::new("invalid_client_metadata", why);
    let listed = |name: &str| -> Result<Option<Vec<&str>>, OauthError> {
        match &metadata[name] {
            Value::Null => Ok(None),
            Value::Array(items) => {
                let texts: Option<Vec<&str>> = items.iter().map(Value::as_str).collect();
                texts.map(Some).ok_or_else(|| wrong("A list contains values that are not strings."))
            }
            _ => Err(wrong("A value that must be a list is not one.")),
        }
    };
    let uris = listed("redirect_uris")?.unwrap_or_default();
    if uris.is_empty() || uris.len() > REDIRECT_URIS_MAX {
        return Err(OauthError::new("invalid_redirect_uri", "redirect_uris must contain 1 to 20 addresses."));
    }
    if uris.iter().map(|uri| uri.len()).sum::<usize>() > REDIRECT_URI_BYTES_MAX {
        return Err(OauthError::new("invalid_redirect_uri", "redirect_uris are too long: at most 8 KiB in total."));
    }
    for uri in &uris {
        RedirectUri::read(uri)
            .map_err(|why| OauthError::new("invalid_redirect_uri", format!("A redirect_uri is not valid: {why}.")))?;
    }
    let has = |name: &str, word: &str| Ok::<bool, OauthError>(listed(name)?.is_none_or(|words| words.contains(&word)));
    if !has("grant_types", "authorization_code")? || !has("response_types", "code")? {
        return Err(wrong(
            "Only clients with the grant `authorization_code` and the response type `code` are supported.",
        ));
    }
    let confidential = match metadata["token_endpoint_auth_method"].as_str() {
        None => confidential_by_default,
        Some("none") => false,
        Some("client_secret_basic" | "client_secret_post") => true,
        Some(_) => {
            return Err(wrong("token_endpoint_auth_method must be none, client_secret_basic or client_secret_post."));
        }
    };
    let name = metadata["client_name"].as_str().map(str::trim).filter(|name| !name.is_empty());
    let name = name.unwrap_or(DEFAULT_CLIENT_NAME).chars().filter(|c| !c.is_control()).take(NAME_CHARS).collect();
    Ok(NewClient { name, redirect_uris: uris.into_iter().map(str::to_owned).collect(), confidential, own: None })
}

fn unknown() -> Error {
    Error::new(ErrorKind::Validation, "There is no such client.")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_client_says_enough_of_itself_or_is_not_taken() {
        let uris = json!(["http://127.0.0.1:1/cb"]);
        let form = read(&json!({ "redirect_uris": uris, "client_name": " A\u{7}b " }), true).expect("a client");
        assert_eq!((form.name.as_str(), form.confidential), ("Ab", true));
        let none = json!({ "redirect_uris": uris, "token_endpoint_auth_method": "none" });
        let form = read(&none, true).expect("a client");
        assert_eq!((form.name.as_str(), form.confidential), (DEFAULT_CLIENT_NAME, false));
        for wrong in [
            json!({}),
            json!({ "redirect_uris": [] }),
            json!({ "redirect_uris": "http://127.0.0.1/" }),
            json!({ "redirect_uris": [1] }),
            json!({ "redirect_uris": ["javascript:alert(1)"] }),
            json!({ "redirect_uris": ["http://evil.example/cb"] }),
            json!({ "redirect_uris": ["https://a.example/#x"] }),
            json!({ "redirect_uris": vec!["http://127.0.0.1/"; 21] }),
            json!({ "redirect_uris": vec![format!("http://127.0.0.1/{}", "x".repeat(1900)); 5] }),
            json!({ "redirect_uris": uris, "grant_types": ["client_credentials"] }),
            json!({ "redirect_uris": uris, "response_types": ["token"] }),
            json!({ "redirect_uris": uris, "token_endpoint_auth_method": "private_key_jwt" }),
        ] {
            assert!(read(&wrong, true).is_err(), "{wrong}");
        }
    }
}

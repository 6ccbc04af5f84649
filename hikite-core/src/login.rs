//! OAuth logins to modules: the redirect of a browser to the authorization server, and its callback.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::error::Error;
use crate::source::BoxFuture;

/// Path of the OAuth redirect URI.
pub const CALLBACK: &str = "/connect/callback";
/// Path of our OAuth client metadata document.
pub const DOCUMENT: &str = "/oauth/client.json";
/// Client name shown to users.
pub const CLIENT_NAME: &str = "hikite";

/// A started login.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoginRedirect {
    /// Authorization URL for the browser.
    pub url: String,
    /// Single-use OAuth `state`.
    pub state: String,
}

/// Logins to all modules that support them. Callers are authorized before.
pub trait ModuleLogins: Send + Sync + fmt::Debug {
    /// Returns `true` if the module exists and uses this kind of login.
    fn knows(&self, module: &str) -> bool;

    /// Starts a login that returns to `redirect`.
    fn begin<'a>(&'a self, module: &'a str, redirect: &'a str) -> BoxFuture<'a, Result<LoginRedirect, Error>>;

    /// Returns `true` if a login with this state is pending.
    fn is_pending(&self, state: &str) -> bool;

    /// Completes a login with the query of the callback and returns the module's name.
    fn finish<'a>(&'a self, query: &'a str) -> BoxFuture<'a, Result<Arc<str>, Error>>;

    /// Logs out: removes the tokens and the client registration of the login.
    fn leave<'a>(&'a self, module: &'a str) -> BoxFuture<'a, Result<(), Error>>;
}

/// Returns the client metadata document, served at `DOCUMENT` if there is a public URL.
pub fn document(public_url: &str) -> Value {
    let base = public_url.trim_end_matches('/');
    json!({
        "client_id": format!("{base}{DOCUMENT}"),
        "client_name": CLIENT_NAME,
        "client_uri": base,
        "redirect_uris": [format!("{base}{CALLBACK}")],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": "none",
        "application_type": "web",
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_names_its_own_address() {
        let document = document("https://tools.example/");
        assert_eq!(document["client_id"], "https://tools.example/oauth/client.json");
        assert_eq!(document["redirect_uris"][0], "https://tools.example/connect/callback");
    }
}

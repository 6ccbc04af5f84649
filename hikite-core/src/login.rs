//! Modules that a person logs in to: what a browser is sent to, and what it brings back.

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::error::Error;
use crate::source::BoxFuture;

/// The path of the page that a browser comes back to.
pub const CALLBACK: &str = "/connect/callback";
/// The path of what we say of ourselves to authorization servers.
pub const DOCUMENT: &str = "/oauth/client.json";
/// What people are shown as our name.
pub const CLIENT_NAME: &str = "hikite";

/// A login that has begun.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Begun {
    /// Where the browser goes.
    pub url: String,
    /// What it brings back, once.
    pub state: String,
}

/// All modules that can be logged in to. Who may ask for it is decided before.
pub trait Logins: Send + Sync + fmt::Debug {
    /// Whether there is such a module, and it is logged in to so.
    fn knows(&self, module: &str) -> bool;

    /// The browser is to come back to `redirect`.
    fn begin<'a>(&'a self, module: &'a str, redirect: &'a str) -> BoxFuture<'a, Result<Begun, Error>>;

    /// Whether a login of this state has begun and is not over.
    fn awaits(&self, state: &str) -> bool;

    /// Ends a login with the query that the browser brought; the name of the module.
    fn finish<'a>(&'a self, query: &'a str) -> BoxFuture<'a, Result<Arc<str>, Error>>;

    /// Takes back what a login gave.
    fn leave<'a>(&'a self, module: &'a str) -> BoxFuture<'a, Result<(), Error>>;
}

/// What we say of ourselves at `DOCUMENT`, where we have a public address.
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

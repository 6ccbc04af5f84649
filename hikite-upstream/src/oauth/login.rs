//! Authorization code login: builds the authorization URL and handles the redirect. A response is accepted once, and
//! only from the authorization server that was asked.

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::login::LoginRedirect;
use hikite_core::secret::Secret;
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use super::client::{self, OAuthClient};
use super::discovery::DiscoveryResult;
use super::endpoint::{self, TokenGrant, TokenRefusal};
use super::pending::PendingLogin;
use super::tokens::TokenOrigin;
use super::{Authorization, GrantType, form, random};
use crate::clock::now_ms;

impl Authorization {
    /// Begins a login and returns the authorization URL.
    pub(crate) async fn begin(&self, redirect: &str) -> Result<LoginRedirect, Error> {
        if self.access.grant == GrantType::ClientCredentials {
            let message = format!("`{}` has no login for people.", self.name);
            return Err(Error::new(ErrorKind::Validation, message));
        }
        let challenge = self.state.lock().challenge.clone();
        let found = self.find(&challenge).await?;
        self.require_pkce(&found)?;
        let authorize = found.server.authorization_endpoint.clone();
        let authorize = authorize.ok_or_else(|| self.fetcher.failed("it has no login page"))?;
        let page = self.fetcher.address("`authorization_endpoint`", &authorize)?;
        let scopes = self.scopes(&found, &challenge);
        let client =
            OAuthClient::find(&self.access, &self.fetcher, &found.server, (redirect, &scopes), now_ms()).await?;
        let (verifier, state) = (URL_SAFE_NO_PAD.encode(random()?), URL_SAFE_NO_PAD.encode(random()?));
        let proof = URL_SAFE_NO_PAD.encode(Sha256::digest(&verifier));
        let mut pairs = vec![
            ("response_type", "code"),
            ("client_id", &client.id),
            ("redirect_uri", redirect),
            ("state", &state),
            ("code_challenge", &proof),
            ("code_challenge_method", "S256"),
            ("resource", &found.resource),
        ];
        let words = scopes.join(" ");
        if !words.is_empty() {
            pairs.push(("scope", &words));
        }
        // Some servers issue a refresh token only with a new consent.
        if scopes.iter().any(|scope| scope == "offline_access") {
            pairs.push(("prompt", "consent"));
        }
        let joint = if page.query().is_some() { '&' } else { '?' };
        let url = format!("{page}{joint}{}", form::write(pairs));
        let login = PendingLogin {
            server: found.server,
            client,
            resource: found.resource,
            redirect: redirect.to_owned(),
            scopes,
            verifier: Secret::hidden(verifier),
        };
        self.state.lock().pending.put(state.clone(), login, Instant::now());
        Ok(LoginRedirect { url, state })
    }

    pub(crate) fn is_pending(&self, state: &str) -> bool {
        self.state.lock().pending.has(state, Instant::now())
    }

    /// Completes a login with the query of the redirect.
    pub(crate) async fn finish(&self, query: &str) -> Result<(), Error> {
        let Some(pairs) = form::read(query) else { return Err(refused("the response is not valid")) };
        let value = |name: &str| pairs.iter().find(|(known, _)| known == name).map(|(_, value)| &**value);
        let login = value("state").and_then(|state| self.state.lock().pending.take(state, Instant::now()));
        let Some(login) = login else {
            return Err(refused("this login is unknown or has expired").hint("Start the login again."));
        };
        check_issuer(&login, value("iss"))?;
        if let Some(error) = value("error") {
            let what = format!("the authorization server rejected it ({})", endpoint::plain(error));
            return Err(refused(&what));
        }
        let Some(code) = value("code").filter(|code| !code.is_empty()) else {
            return Err(refused("the response has no code"));
        };
        self.exchange(login, code).await
    }

    /// Deletes the tokens and the client registration.
    pub(crate) async fn log_out(&self) -> Result<(), Error> {
        let _turn = self.renewal_lock.lock().await;
        self.load_stored(None).await?;
        let tokens = self.state.lock().tokens.clone();
        if let Some(tokens) = tokens {
            client::forget(&*self.access.keep, &tokens.bound).await?;
        }
        self.drop_tokens().await
    }

    async fn exchange(&self, login: PendingLogin, code: &str) -> Result<(), Error> {
        let _turn = self.renewal_lock.lock().await;
        let bound = TokenOrigin {
            issuer: login.server.issuer.clone(),
            client_id: login.client.id.clone(),
            resource: login.resource,
            redirect: login.redirect,
        };
        let offer = TokenGrant::Code { code, verifier: login.verifier.expose() };
        let who = (&login.server, &login.client);
        let asked = endpoint::ask(&self.fetcher, who, offer, &login.scopes, bound.clone(), now_ms()).await;
        let tokens = match asked {
            Ok(tokens) => tokens,
            Err(TokenRefusal::Other(error)) => return Err(error),
            Err(TokenRefusal::InvalidGrant) => return Err(refused("the code is no longer valid")),
            Err(TokenRefusal::InvalidClient) => {
                client::forget(&*self.access.keep, &bound).await?;
                return Err(
                    refused("the authorization server does not know this client").hint("Start the login again.")
                );
            }
        };
        self.keep(tokens).await?;
        self.state.lock().more.clear();
        self.logged_in.notify_one();
        Ok(())
    }

    /// Returns an error unless the server supports PKCE: without it, an intercepted code is as good as a token.
    fn require_pkce(&self, found: &DiscoveryResult) -> Result<(), Error> {
        let methods = found.server.code_challenge_methods_supported.as_deref();
        let is_right = match methods {
            Some(methods) => methods.iter().any(|method| method == "S256"),
            None => !found.must_advertise_pkce,
        };
        if is_right {
            return Ok(());
        }
        Err(self.fetcher.failed("its authorization server does not support PKCE with S256"))
    }
}

/// Checks the issuer of the response (RFC 9207), byte by byte.
fn check_issuer(login: &PendingLogin, answered: Option<&str>) -> Result<(), Error> {
    match answered {
        Some(answered) if answered == login.server.issuer => Ok(()),
        None if !login.server.authorization_response_iss_parameter_supported => Ok(()),
        _ => Err(refused("the response comes from another authorization server")),
    }
}

fn refused(what: &str) -> Error {
    Error::new(ErrorKind::Validation, format!("The login failed: {what}."))
}

//! Credentials that a module presents to a service on behalf of a caller. Modules request a credential and do not know
//! where it is stored; the store renews tokens through `TokenEndpoint` and does not know HTTP.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::secret::Secret;
use crate::source::{BoxFuture, CallContext};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Account that the credential belongs to. Renewing a token changes the secret, not this.
    pub account: Arc<str>,
    pub scheme: AuthScheme,
    /// Credential after the scheme in the `Authorization` header.
    pub secret: Secret,
    /// Further attributes of the account, such as its site or workspace.
    pub details: BTreeMap<String, String>,
    /// Base URL that replaces the service's own, for self-hosted installations.
    pub api: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthScheme {
    Bearer,
    Basic,
}

impl AuthScheme {
    /// Returns the scheme as spelled in the header.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Basic => "Basic",
        }
    }
}

/// Token endpoint of a provider.
pub trait TokenEndpoint: Send + Sync + fmt::Debug {
    /// Sends a token request. Fails only if no usable response came back.
    fn post(&self, request: TokenRequest) -> BoxFuture<'_, Result<TokenResponse, Error>>;
}

#[derive(Clone, Debug)]
pub struct TokenRequest {
    pub url: String,
    pub form: Vec<(String, Secret)>,
    /// Send the fields as JSON instead of a form.
    pub as_json: bool,
    /// Client id and secret for HTTP Basic authentication.
    pub basic: Option<(String, Secret)>,
}

#[derive(Clone, Debug)]
pub struct TokenResponse {
    pub status: u16,
    pub body: Secret,
    /// `Retry-After` of the response.
    pub retry_after: Option<Duration>,
}

/// Provides the caller's credential for a provider. One provider can serve several modules.
pub trait CredentialProvider: Send + Sync + fmt::Debug {
    /// Returns `true` if any account with the provider exists.
    fn knows(&self, provider: &str) -> bool;

    /// Returns the caller's credential; `None` if the caller has no account with the provider.
    fn credential<'a>(
        &'a self,
        provider: &'a str,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>>;

    /// Returns a newer credential in place of one that the service refused; `None` if there is none.
    fn renewed<'a>(
        &'a self,
        provider: &'a str,
        refused: &'a Credential,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>>;

    /// Records that a service accepted the credential. Called after every response, so it must not block.
    fn accepted(&self, _: &str, _: &Credential) {}
}

/// Verifies a credential with one cheap request to its service.
pub trait Verifier: Send + Sync + fmt::Debug {
    fn verify<'a>(&'a self, provider: &'a str, credential: Arc<Credential>) -> BoxFuture<'a, CredentialVerdict>;
}

/// Outcome of a verification. Messages are the vendor's own, sanitized and truncated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CredentialVerdict {
    Accepted,
    /// The service rejected the credential.
    Refused(String),
    /// Unknown: the service was unreachable or failing.
    Unclear(String),
    /// No module defines a verification request.
    Unsupported,
}

/// A verifier without any verification requests.
#[derive(Clone, Copy, Debug)]
pub struct NoVerifier;

impl Verifier for NoVerifier {
    fn verify<'a>(&'a self, _: &'a str, _: Arc<Credential>) -> BoxFuture<'a, CredentialVerdict> {
        Box::pin(std::future::ready(CredentialVerdict::Unsupported))
    }
}

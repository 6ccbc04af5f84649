//! Whose keys are used: what a module shows a service that it calls for somebody. Modules ask for a credential and never
//! see where it is kept; whoever keeps it asks its provider through `TokenEndpoint` and never sees HTTP.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Error;
use crate::secret::Secret;
use crate::source::{BoxFuture, CallContext};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Credential {
    /// Names the account it belongs to. Renewing a token changes the secret, not this.
    pub account: Arc<str>,
    pub scheme: Scheme,
    /// What stands behind the scheme in the header.
    pub secret: Secret,
    /// What else is known of the account: its site, its workspace.
    pub details: BTreeMap<String, String>,
    /// An address in place of the service's own: an installation of one's own.
    pub api: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    Bearer,
    Basic,
}

impl Scheme {
    /// As the header spells it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Bearer => "Bearer",
            Self::Basic => "Basic",
        }
    }
}

/// Where a provider gives tokens: one form in, one answer out.
pub trait TokenEndpoint: Send + Sync + fmt::Debug {
    /// An error if nothing came back that could be an answer.
    fn post(&self, request: TokenRequest) -> BoxFuture<'_, Result<TokenAnswer, Error>>;
}

#[derive(Clone, Debug)]
pub struct TokenRequest {
    pub url: String,
    pub form: Vec<(String, Secret)>,
    /// Sent as JSON in place of a form.
    pub as_json: bool,
    /// Who we are, in the header.
    pub basic: Option<(String, Secret)>,
}

#[derive(Clone, Debug)]
pub struct TokenAnswer {
    pub status: u16,
    pub body: Secret,
    /// How long it asks to be left alone.
    pub retry_after: Option<Duration>,
}

/// Gives a caller's key for a provider. A provider serves one module or several.
pub trait Exchanger: Send + Sync + fmt::Debug {
    /// Whether there is any account with it at all.
    fn knows(&self, provider: &str) -> bool;

    /// `None` if the caller has no account with it.
    fn credential<'a>(
        &'a self,
        provider: &'a str,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>>;

    /// A newer one in place of one that the service refused; `None` if there is none.
    fn renewed<'a>(
        &'a self,
        provider: &'a str,
        refused: &'a Credential,
        context: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>>;

    /// A service took this credential. Called after every answer, so it must not wait.
    fn accepted(&self, _: &str, _: &Credential) {}
}

/// Proves a credential by one cheap request to the service that it is for.
pub trait Verifier: Send + Sync + fmt::Debug {
    fn verify<'a>(&'a self, provider: &'a str, credential: Arc<Credential>) -> BoxFuture<'a, Proof>;
}

/// The outcome of such a request. The words are the vendor's own, cleaned and cut.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Proof {
    Accepted,
    /// The vendor refuses the credential.
    Refused(String),
    /// Nothing is known: the vendor was not reached, or was in trouble.
    Unclear(String),
    /// No module says how to find out.
    NoProbe,
}

/// Knows no way to prove anything.
#[derive(Clone, Copy, Debug)]
pub struct NoProbes;

impl Verifier for NoProbes {
    fn verify<'a>(&'a self, _: &'a str, _: Arc<Credential>) -> BoxFuture<'a, Proof> {
        Box::pin(std::future::ready(Proof::NoProbe))
    }
}

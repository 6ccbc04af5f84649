//! Storage for the tokens and client registrations of one owner, each under a name. Users of the trait do not know
//! where the secrets are stored.

use std::fmt;

use serde_json::Value;

use crate::error::Error;
use crate::secret::Secret;
use crate::source::BoxFuture;

pub trait OwnerSecrets: Send + Sync + fmt::Debug {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Secret>, Error>>;

    /// Stores a secret durably: after `Ok` it survives a crash.
    fn save<'a>(&'a self, name: &'a str, secret: &'a Secret) -> BoxFuture<'a, Result<(), Error>>;

    fn forget<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Takes the lease to change these secrets, for a limited time or until `done`. Returns `false` if another process
    /// holds it.
    fn claim(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(std::future::ready(Ok(true)))
    }

    fn done(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Signs assertions about this installation.
pub trait Signer: Send + Sync + fmt::Debug {
    /// Returns the claims as a signed JWT.
    fn sign(&self, claims: &Value) -> Result<String, Error>;
}

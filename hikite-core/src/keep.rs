//! A place for what must not be lost or seen: tokens and registrations of one owner, each under a name. Who asks does not
//! know where that is.

use std::fmt;

use serde_json::Value;

use crate::error::Error;
use crate::secret::Secret;
use crate::source::BoxFuture;

pub trait Keep: Send + Sync + fmt::Debug {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Secret>, Error>>;

    /// What it returned `Ok` for is there after a crash.
    fn save<'a>(&'a self, name: &'a str, secret: &'a Secret) -> BoxFuture<'a, Result<(), Error>>;

    fn forget<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>>;

    /// Whether it is this process's turn to change something here; for a while, and until `done`.
    fn claim(&self) -> BoxFuture<'_, Result<bool, Error>> {
        Box::pin(std::future::ready(Ok(true)))
    }

    fn done(&self) -> BoxFuture<'_, ()> {
        Box::pin(std::future::ready(()))
    }
}

/// Signs what we say of ourselves.
pub trait Signer: Send + Sync + fmt::Debug {
    /// The claims as a signed token of type `JWT`.
    fn sign(&self, claims: &Value) -> Result<String, Error>;
}

//! An in-memory credential store and a signing key, in place of the vault.

use std::collections::HashMap;
use std::future::ready;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::owner_secrets::{OwnerSecrets, Signer};
use hikite_core::secret::Secret;
use hikite_core::source::BoxFuture;
use hikite_vault::SigningKey;
use parking_lot::Mutex;
use serde_json::Value;

#[derive(Debug, Default)]
pub struct MemoryCredentialStore(Mutex<HashMap<String, Secret>>);

impl OwnerSecrets for MemoryCredentialStore {
    fn load<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Option<Secret>, Error>> {
        Box::pin(ready(Ok(self.0.lock().get(name).cloned())))
    }

    fn save<'a>(&'a self, name: &'a str, secret: &'a Secret) -> BoxFuture<'a, Result<(), Error>> {
        self.0.lock().insert(name.to_owned(), secret.clone());
        Box::pin(ready(Ok(())))
    }

    fn forget<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<(), Error>> {
        self.0.lock().remove(name);
        Box::pin(ready(Ok(())))
    }
}

#[derive(Debug)]
pub struct ClientSigningKey(SigningKey);

impl ClientSigningKey {
    /// Reads a key from PEM.
    pub fn read(pem: &Secret) -> Result<Self, String> {
        SigningKey::from_pem(pem).map(Self).map_err(|why| why.to_string())
    }
}

impl Signer for ClientSigningKey {
    fn sign(&self, claims: &Value) -> Result<String, Error> {
        self.0.sign("JWT", claims).map_err(|why| Error::new(ErrorKind::Internal, why.to_string()))
    }
}

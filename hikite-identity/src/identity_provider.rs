//! Identity providers besides passwords: passkeys, tokens of external issuers, and federated logins. One of each per
//! process; the config decides whom they admit.

use std::sync::Arc;

use hikite_core::fetch::DocumentFetcher;
use hikite_store::Store;

use crate::federation::{Federation, LoginRule};
use crate::issuer::{IssuerRule, Issuers};
use crate::passkey::Passkeys;

#[derive(Debug)]
pub struct IdentityProviders {
    pub passkeys: Passkeys,
    pub issuers: Issuers,
    pub federation: Federation,
}

impl IdentityProviders {
    pub fn new(store: &Store, fetch: Arc<dyn DocumentFetcher>) -> Self {
        Self {
            passkeys: Passkeys::new(store.clone()),
            issuers: Issuers::new(Arc::clone(&fetch)),
            federation: Federation::new(fetch, store.clone()),
        }
    }

    pub fn follow(&self, issuers: &[IssuerRule], logins: &[LoginRule]) {
        self.issuers.follow(issuers.to_vec());
        self.federation.follow(logins.to_vec());
    }
}

//! What services do, against a server that plays one.

use std::sync::Arc;

use hikite_core::credential::{Credential, Exchanger, Scheme};
use hikite_core::error::Error;
use hikite_core::limits::Limits;
use hikite_core::secret::Secret;
use hikite_core::source::{BoxFuture, CallContext};
use hikite_egress::Client;

use super::Settings;
use crate::file::Language;

/// Gives everybody the same token.
#[derive(Debug)]
pub(crate) struct Everybody {
    pub(crate) credential: Arc<Credential>,
}

impl Exchanger for Everybody {
    fn knows(&self, _: &str) -> bool {
        true
    }

    fn credential<'a>(
        &'a self,
        _: &'a str,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>> {
        Box::pin(std::future::ready(Ok(Some(Arc::clone(&self.credential)))))
    }

    fn renewed<'a>(
        &'a self,
        _: &'a str,
        _: &'a Credential,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

pub(crate) fn settings() -> Settings {
    let credential = Credential {
        scheme: Scheme::Bearer,
        secret: Secret::hidden("test-token"),
        details: Default::default(),
        api: None,
    };
    Settings {
        client: Client::new(),
        exchanger: Arc::new(Everybody { credential: Arc::new(credential) }),
        limits: Arc::new(Limits::default()),
        language: Language::English,
    }
}

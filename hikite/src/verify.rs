//! Verifies a credential with the probe request that a module file of the same provider defines.

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use hikite_config::Config;
use hikite_core::credential::{Credential, CredentialVerdict, Verifier};
use hikite_core::source::BoxFuture;
use hikite_modules::Service;

use crate::services;

/// The services that can verify credentials.
#[derive(Debug, Default)]
pub(crate) struct CredentialProber {
    services: ArcSwapOption<Vec<Arc<Service>>>,
    /// Config from which services are loaded on first use, where no gateway is running.
    config: Option<Box<Config>>,
}

impl CredentialProber {
    /// Creates a prober for commands that run without a gateway.
    pub(crate) fn of(config: &Config) -> Self {
        Self { services: ArcSwapOption::empty(), config: Some(Box::new(config.clone())) }
    }

    /// Replaces the services.
    pub(crate) fn follow(&self, services: &[Arc<Service>]) {
        self.services.store(Some(Arc::new(services.to_vec())));
    }

    fn services(&self) -> Arc<Vec<Arc<Service>>> {
        if let Some(services) = self.services.load_full() {
            return services;
        }
        let Some(config) = &self.config else { return Arc::default() };
        let configured = services::configured(config, &services::settings(Some(config)));
        let read = configured.into_iter().filter(|configured| configured.hidden_by.is_none());
        let services: Vec<Arc<Service>> = read.filter_map(|configured| configured.read.ok()).map(Arc::new).collect();
        self.follow(&services);
        self.services.load_full().unwrap_or_default()
    }

    /// Tries every service of the provider. One acceptance is enough: an account need not have every product of its
    /// provider.
    async fn probe(&self, provider: &str, credential: Arc<Credential>) -> CredentialVerdict {
        let mut proof = CredentialVerdict::Unsupported;
        let services = self.services();
        let able = |service: &&Arc<Service>| service.provider() == Some(provider) && service.can_verify();
        for service in services.iter().filter(able) {
            match (service.verify(Arc::clone(&credential)).await, &proof) {
                (CredentialVerdict::Accepted, _) => return CredentialVerdict::Accepted,
                // A service that cannot be reached might still accept the credential.
                (_, CredentialVerdict::Unclear(_)) => {}
                (other, _) => proof = other,
            }
        }
        proof
    }
}

impl Verifier for CredentialProber {
    fn verify<'a>(&'a self, provider: &'a str, credential: Arc<Credential>) -> BoxFuture<'a, CredentialVerdict> {
        Box::pin(self.probe(provider, credential))
    }
}

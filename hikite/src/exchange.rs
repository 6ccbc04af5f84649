//! Credentials from the config file. All callers share them.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use hikite_core::credential::{Credential, Exchanger};
use hikite_core::error::{Error, Kind};
use hikite_core::source::{BoxFuture, CallContext};

use crate::config::{ProviderConfig, TokenPlace};

/// Account id of a credential from the config file; a provider has at most one.
const CONFIGURED: &str = "file";

#[derive(Debug, Default)]
pub(crate) struct Configured(ArcSwap<HashMap<String, Held>>);

/// An account of the config, with its credential once it has been read.
#[derive(Clone, Debug)]
struct Held {
    config: ProviderConfig,
    credential: Option<Arc<Credential>>,
}

impl Configured {
    /// Replaces the accounts. Unchanged accounts keep their cached credential.
    pub(crate) fn follow(&self, providers: &[ProviderConfig]) {
        let before = self.0.load();
        let held = |config: &ProviderConfig| {
            let known = before.get(&config.name).filter(|held| held.config == *config).cloned();
            let held = known.unwrap_or_else(|| Held { config: config.clone(), credential: None });
            (config.name.clone(), held)
        };
        let accounts = providers.iter().filter(|config| config.token.is_some());
        self.0.store(Arc::new(accounts.map(held).collect()));
    }

    async fn find(&self, provider: &str) -> Result<Option<Arc<Credential>>, Error> {
        let held = self.0.load().get(provider).cloned();
        match held {
            None => Ok(None),
            Some(Held { credential: Some(credential), .. }) => Ok(Some(credential)),
            Some(Held { config, .. }) => {
                let credential = Arc::new(read(&config).await?);
                self.keep(&config, &credential);
                Ok(Some(credential))
            }
        }
    }

    /// Reads the credential again, and returns it if it differs from the refused one.
    async fn newer(&self, provider: &str, refused: &Credential) -> Result<Option<Arc<Credential>>, Error> {
        let Some(Held { config, .. }) = self.0.load().get(provider).cloned() else { return Ok(None) };
        let credential = read(&config).await?;
        if credential == *refused {
            return Ok(None);
        }
        let credential = Arc::new(credential);
        self.keep(&config, &credential);
        Ok(Some(credential))
    }

    fn keep(&self, config: &ProviderConfig, credential: &Arc<Credential>) {
        self.0.rcu(|all| {
            let mut all = HashMap::clone(all);
            if let Some(held) = all.get_mut(&config.name).filter(|held| held.config == *config) {
                held.credential = Some(Arc::clone(credential));
            }
            all
        });
    }
}

async fn read(config: &ProviderConfig) -> Result<Credential, Error> {
    let token = match &config.token {
        Some(TokenPlace::Here(token)) => token.expose().trim().to_owned(),
        None => String::new(),
        Some(TokenPlace::File(file)) => {
            let text = tokio::fs::read_to_string(file).await.map_err(|error| {
                tracing::warn!(provider = config.name, %error, "the file with the token cannot be read");
                Error::new(Kind::AccountRequired, format!("the token of `{}` cannot be read", config.name))
                    .hint(format!("the owner looks at `providers.{}.token_file` of the config", config.name))
            })?;
            text.trim().to_owned()
        }
    };
    let (scheme, secret) = config.secret(&token);
    Ok(Credential {
        account: CONFIGURED.into(),
        scheme,
        secret,
        details: config.details.clone(),
        api: config.api.clone(),
    })
}

impl Exchanger for Configured {
    fn knows(&self, provider: &str) -> bool {
        self.0.load().contains_key(provider)
    }

    fn credential<'a>(
        &'a self,
        provider: &'a str,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>> {
        Box::pin(self.find(provider))
    }

    fn renewed<'a>(
        &'a self,
        provider: &'a str,
        refused: &'a Credential,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>> {
        Box::pin(self.newer(provider, refused))
    }
}

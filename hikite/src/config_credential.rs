//! Credentials from the config file. All callers share them.

use std::collections::HashMap;
use std::sync::Arc;

use arc_swap::ArcSwap;
use hikite_config::{ProviderConfig, TokenLocation};
use hikite_core::credential::{Credential, CredentialProvider};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::source::{BoxFuture, CallContext};

/// Account id of a credential from the config file; a provider has at most one.
const CONFIG_ACCOUNT: &str = "file";

#[derive(Debug, Default)]
pub(crate) struct ConfigCredentials(ArcSwap<HashMap<String, ConfigAccount>>);

/// An account of the config, with its credential once it has been read.
#[derive(Clone, Debug)]
struct ConfigAccount {
    config: ProviderConfig,
    credential: Option<Arc<Credential>>,
}

impl ConfigCredentials {
    /// Replaces the accounts. Unchanged accounts keep their cached credential.
    pub(crate) fn follow(&self, providers: &[ProviderConfig]) {
        let before = self.0.load();
        let entry = |config: &ProviderConfig| {
            let known = before.get(&config.name).filter(|entry| entry.config == *config).cloned();
            let entry = known.unwrap_or_else(|| ConfigAccount { config: config.clone(), credential: None });
            (config.name.clone(), entry)
        };
        let accounts = providers.iter().filter(|config| config.token.is_some());
        self.0.store(Arc::new(accounts.map(entry).collect()));
    }

    async fn find(&self, provider: &str) -> Result<Option<Arc<Credential>>, Error> {
        let entry = self.0.load().get(provider).cloned();
        match entry {
            None => Ok(None),
            Some(ConfigAccount { credential: Some(credential), .. }) => Ok(Some(credential)),
            Some(ConfigAccount { config, .. }) => {
                let credential = Arc::new(read(&config).await?);
                self.cache(&config, &credential);
                Ok(Some(credential))
            }
        }
    }

    /// Reads the credential again, and returns it if it differs from the refused one.
    async fn reread(&self, provider: &str, refused: &Credential) -> Result<Option<Arc<Credential>>, Error> {
        let Some(ConfigAccount { config, .. }) = self.0.load().get(provider).cloned() else {
            return Ok(None);
        };
        let credential = read(&config).await?;
        if credential == *refused {
            return Ok(None);
        }
        let credential = Arc::new(credential);
        self.cache(&config, &credential);
        Ok(Some(credential))
    }

    fn cache(&self, config: &ProviderConfig, credential: &Arc<Credential>) {
        self.0.rcu(|all| {
            let mut all = HashMap::clone(all);
            if let Some(entry) = all.get_mut(&config.name).filter(|entry| entry.config == *config) {
                entry.credential = Some(Arc::clone(credential));
            }
            all
        });
    }
}

async fn read(config: &ProviderConfig) -> Result<Credential, Error> {
    let token = match &config.token {
        Some(TokenLocation::Inline(token)) => token.expose().trim().to_owned(),
        None => String::new(),
        Some(TokenLocation::File(file)) => {
            let text = tokio::fs::read_to_string(file).await.map_err(|error| {
                tracing::warn!(provider = config.name, %error, "failed to read the token file");
                Error::new(ErrorKind::AccountRequired, format!("The token of `{}` cannot be read.", config.name))
                    .hint(format!("The owner checks `providers.{}.token_file` of the config.", config.name))
            })?;
            text.trim().to_owned()
        }
    };
    let (scheme, secret) = config.secret(&token);
    Ok(Credential {
        account: CONFIG_ACCOUNT.into(),
        scheme,
        secret,
        details: config.details.clone(),
        api: config.api.clone(),
    })
}

impl CredentialProvider for ConfigCredentials {
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
        Box::pin(self.reread(provider, refused))
    }
}

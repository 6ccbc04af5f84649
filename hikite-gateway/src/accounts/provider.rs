//! A provider as data: its authorization endpoint, its token endpoint and the form of its requests.

use hikite_api::ProviderObject;
use hikite_core::credential::TokenRequest;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::secret::Secret;

use super::{AccountStore, CLIENT_SECRET};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccountProvider {
    pub name: String,
    pub title: String,
    pub authorize_url: String,
    pub token_url: String,
    /// Additional query parameters of the authorization URL.
    pub authorize_params: Vec<(String, String)>,
    pub scopes: Vec<String>,
    pub pkce: bool,
    pub auth: TokenAuth,
    /// `true` if token requests are JSON instead of form-encoded.
    pub as_json: bool,
    /// `true` if every refresh request repeats the scopes.
    pub repeats_scopes: bool,
    /// Members of token responses that are stored with the account.
    pub details: Vec<String>,
    /// Host name suffixes that an account may use as its site.
    pub sites: Vec<String>,
    /// API URL in place of the service's own.
    pub api: Option<String>,
    /// Our OAuth client, if the config defines it.
    pub app: Option<OAuthApp>,
}

/// Client authentication at the token endpoint.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TokenAuth {
    #[default]
    Basic,
    Post,
    /// A public client: the id alone.
    None,
}

/// Our OAuth client at a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OAuthApp {
    pub client_id: String,
    pub client_secret: Option<Secret>,
}

impl AccountProvider {
    /// Builds a token request with client authentication.
    pub(super) fn request(&self, app: &OAuthApp, mut form: Vec<(String, Secret)>) -> TokenRequest {
        let secret = || app.client_secret.clone().unwrap_or_else(|| Secret::hidden(""));
        let id = || ("client_id".to_owned(), Secret::hidden(app.client_id.as_str()));
        let basic = match self.auth {
            TokenAuth::Basic => Some((app.client_id.clone(), secret())),
            TokenAuth::Post => {
                form.extend([id(), (CLIENT_SECRET.to_owned(), secret())]);
                None
            }
            TokenAuth::None => {
                form.push(id());
                None
            }
        };
        TokenRequest { url: self.token_url.clone(), form, as_json: self.as_json, basic }
    }
}

/// The providers that accounts can be connected with, and our OAuth clients there.
#[derive(Clone, Copy, Debug)]
pub struct ProviderRegistry<'a>(pub(super) &'a AccountStore);

impl ProviderRegistry<'_> {
    /// Returns all providers for the API.
    pub fn objects(self) -> Vec<ProviderObject> {
        let (settings, known) = (self.0.settings.load(), self.0.known.load());
        let object = |provider: &AccountProvider| {
            let stored = || known.app(&provider.name).and_then(|form| form.text("client_id"));
            let client_id = provider.app.as_ref().map(|app| app.client_id.clone()).or_else(stored);
            ProviderObject {
                name: provider.name.clone(),
                title: provider.title.clone(),
                scopes: provider.scopes.clone(),
                connectable: client_id.is_some(),
                client_id,
                managed_by_file: provider.app.is_some(),
                account_of_the_file: settings.from_file.contains_key(&provider.name),
            }
        };
        settings.providers.iter().map(object).collect()
    }

    pub(super) fn get(self, name: &str) -> Option<AccountProvider> {
        self.0.settings.load().providers.iter().find(|provider| provider.name == name).cloned()
    }

    /// Returns our OAuth client at a provider, from the config, else from the store.
    pub(super) async fn app(self, provider: &AccountProvider) -> Result<Option<OAuthApp>, Error> {
        if let Some(app) = &provider.app {
            return Ok(Some(app.clone()));
        }
        let name = &provider.name;
        let client_id = self.0.known.load().app(name).and_then(|form| form.text("client_id"));
        let Some(client_id) = client_id else { return Ok(None) };
        let kept = self.0.secret_store.get(&safe_of(name), name, CLIENT_SECRET).await?;
        Ok(Some(OAuthApp { client_id, client_secret: kept.map(|kept| kept.secret) }))
    }

    /// Returns a provider that accounts can be connected with, and our OAuth client there.
    pub(super) async fn connectable(self, name: &str) -> Result<(AccountProvider, OAuthApp), Error> {
        let Some(provider) = self.get(name) else {
            let known: Vec<String> =
                self.0.settings.load().providers.iter().map(|provider| provider.name.clone()).collect();
            let error = Error::new(ErrorKind::NotFound, format!("There is no provider `{name}`."));
            return Err(error.hint(format!("Available providers: {}.", known.join(", "))));
        };
        match self.app(&provider).await? {
            Some(app) => Ok((provider, app)),
            None => Err(Error::new(
                ErrorKind::AccountRequired,
                format!("No OAuth app is registered with {}.", provider.title),
            )
            .hint(format!(
                "The owner registers an app there and sets its client id and secret with `hikite provider set \
                     {name}` or in `providers.{name}.oauth` of the config. Or add a token with `hikite account add \
                     {name}`."
            ))),
        }
    }
}

/// Returns the id under which the secret of our OAuth client is stored.
pub(super) fn safe_of(provider: &str) -> String {
    format!("provider:{provider}")
}

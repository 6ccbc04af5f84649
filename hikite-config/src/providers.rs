//! The built-in OAuth providers, read from `providers.json`, with overrides from the config.

use std::collections::BTreeMap;

use hikite_gateway::{AccountProvider, OAuthApp, TokenAuth};
use serde::Deserialize;

use crate::{OauthConfig, ProviderConfig};

const BUILTIN: &str = include_str!("../providers.json");

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ProviderDefinition {
    title: String,
    authorize_url: String,
    token_url: String,
    #[serde(default)]
    authorize_params: BTreeMap<String, String>,
    token_auth: AuthWord,
    #[serde(default)]
    token_body: BodyWord,
    pkce: bool,
    scopes: Vec<String>,
    #[serde(default)]
    repeat_scopes: bool,
    #[serde(default)]
    details: Vec<String>,
    #[serde(default)]
    sites: Vec<String>,
}

#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AuthWord {
    Basic,
    Post,
}

#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
enum BodyWord {
    #[default]
    Form,
    Json,
}

/// Returns all providers by name; the config overrides the built-in ones.
pub fn providers(config: &[ProviderConfig]) -> Vec<AccountProvider> {
    let mut all: BTreeMap<String, AccountProvider> = builtin();
    for configured in config {
        let known = all.remove(&configured.name);
        let provider = match &configured.oauth {
            Some(oauth) => with_overrides(known, &configured.name, oauth),
            None => known,
        };
        if let Some(provider) = provider {
            all.insert(configured.name.clone(), AccountProvider { api: configured.api.clone(), ..provider });
        }
    }
    all.into_values().collect()
}

/// Returns `true` if the provider is built in.
pub(crate) fn is_builtin(name: &str) -> bool {
    builtin().contains_key(name)
}

fn builtin() -> BTreeMap<String, AccountProvider> {
    let definitions: BTreeMap<String, ProviderDefinition> = serde_json::from_str(BUILTIN).unwrap_or_default();
    definitions.into_iter().map(|(name, definition)| (name.clone(), of(name, definition))).collect()
}

fn of(name: String, definition: ProviderDefinition) -> AccountProvider {
    AccountProvider {
        name,
        title: definition.title,
        authorize_url: definition.authorize_url,
        token_url: definition.token_url,
        authorize_params: definition.authorize_params.into_iter().collect(),
        scopes: definition.scopes,
        pkce: definition.pkce,
        auth: match definition.token_auth {
            AuthWord::Basic => TokenAuth::Basic,
            AuthWord::Post => TokenAuth::Post,
        },
        as_json: definition.token_body == BodyWord::Json,
        repeats_scopes: definition.repeat_scopes,
        details: definition.details,
        sites: definition.sites,
        api: None,
        app: None,
    }
}

fn with_overrides(known: Option<AccountProvider>, name: &str, oauth: &OauthConfig) -> Option<AccountProvider> {
    let base = match known {
        Some(known) => known,
        None => AccountProvider {
            name: name.to_owned(),
            title: name.to_owned(),
            authorize_url: oauth.authorize_url.clone()?,
            token_url: oauth.token_url.clone()?,
            authorize_params: Vec::new(),
            scopes: Vec::new(),
            pkce: true,
            auth: TokenAuth::Basic,
            as_json: false,
            repeats_scopes: false,
            details: Vec::new(),
            sites: Vec::new(),
            api: None,
            app: None,
        },
    };
    let or = |override_value: &Option<String>, base: String| override_value.clone().unwrap_or(base);
    Some(AccountProvider {
        authorize_url: or(&oauth.authorize_url, base.authorize_url),
        token_url: or(&oauth.token_url, base.token_url),
        authorize_params: oauth.authorize_params.clone().unwrap_or(base.authorize_params),
        scopes: oauth.scopes.clone().unwrap_or(base.scopes),
        pkce: oauth.pkce.unwrap_or(base.pkce),
        auth: oauth.token_auth.unwrap_or(base.auth),
        as_json: oauth.token_json.unwrap_or(base.as_json),
        repeats_scopes: oauth.repeat_scopes.unwrap_or(base.repeats_scopes),
        app: oauth
            .client_id
            .clone()
            .map(|client_id| OAuthApp { client_id, client_secret: oauth.client_secret.clone() }),
        ..base
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_provider_of_our_own_is_whole() {
        let all = providers(&[]);
        let names: Vec<&str> = all.iter().map(|provider| provider.name.as_str()).collect();
        assert_eq!(names, ["atlassian", "github", "google", "microsoft", "notion", "supabase"]);
        for provider in &all {
            for url in [&provider.authorize_url, &provider.token_url] {
                assert!(url.starts_with("https://"), "{}: {url}", provider.name);
            }
            assert!(provider.app.is_none() && !provider.title.is_empty());
        }
    }
}

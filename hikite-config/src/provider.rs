//! The `providers` section: accounts and OAuth apps for services.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hikite_core::credential::AuthScheme;
use hikite_core::json::Raw;
use hikite_core::permission::{self, Permissions};
use hikite_core::secret::{MASK, Secret};
use hikite_gateway::TokenAuth;
use hikite_modules::NamedMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::checker::ConfigChecker;
use super::position::ConfigPath;
use super::project::PermissionsFile;
use super::tool::report_fault;

/// An account with a service. Everybody who may call its tools calls them with it.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Provider")]
pub(crate) struct ProviderFile {
    /// How accounts are connected in a browser: our app with this provider, and what hikite does not know of it.
    oauth: Option<OauthFile>,
    /// The token, as a rule from a variable: `${NOTION_TOKEN}`.
    token: Option<String>,
    /// A file that holds the token. It is read again when the service refuses the token.
    token_file: Option<String>,
    /// The user that the token belongs to, where the service wants both (Atlassian API tokens).
    email: Option<String>,
    /// The host of the account's site, such as `example.atlassian.net`.
    site: Option<String>,
    /// The id of the site, where it is known.
    cloud_id: Option<String>,
    /// An address in place of the service's own: `https://github.example/api/v3`.
    api: Option<String>,
    /// Which tools may be called with this account. Default: all of them.
    permissions: Option<PermissionsFile>,
}

/// OAuth with a provider. What is left out is as hikite knows it; of a provider that it does not know, both addresses
/// must be given.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "ProviderOauth")]
pub(crate) struct OauthFile {
    /// The id of the app.
    client_id: Option<String>,
    /// Its secret, as a rule from a variable.
    client_secret: Option<String>,
    /// A file that holds the secret.
    client_secret_file: Option<String>,
    /// Where users are asked.
    authorize_url: Option<String>,
    /// Where tokens are given.
    token_url: Option<String>,
    /// Scopes to request.
    scopes: Option<Vec<String>>,
    /// Uses PKCE (S256). Default for a provider that hikite does not know: true.
    pkce: Option<bool>,
    /// How we say who we are where tokens are given. Default, of one that hikite does not know: `basic`.
    token_auth: Option<TokenAuthWord>,
    /// In which form tokens are asked for.
    token_body: Option<TokenBodyWord>,
    /// Additional parameters of the authorization URL.
    authorize_params: Option<BTreeMap<String, String>>,
    /// Sends the scopes again with every refresh.
    repeat_scopes: Option<bool>,
}

/// How we say who we are.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TokenAuthWord {
    /// In a header.
    Basic,
    /// In the form.
    Post,
    /// By our id alone.
    None,
}

/// In which form tokens are asked for.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TokenBodyWord {
    /// As a form, which is the rule.
    Form,
    /// As JSON.
    Json,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OauthConfig {
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    pub authorize_url: Option<String>,
    pub token_url: Option<String>,
    pub scopes: Option<Vec<String>>,
    pub pkce: Option<bool>,
    pub token_auth: Option<TokenAuth>,
    pub token_json: Option<bool>,
    pub authorize_params: Option<Vec<(String, String)>>,
    pub repeat_scopes: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderConfig {
    pub name: String,
    /// Token of an account shared by all users.
    pub token: Option<TokenLocation>,
    pub oauth: Option<OauthConfig>,
    pub email: Option<String>,
    pub details: BTreeMap<String, String>,
    pub api: Option<String>,
    /// Permissions of the account as written, already checked.
    pub permissions: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenLocation {
    Inline(Secret),
    File(PathBuf),
}

impl ProviderConfig {
    /// Returns the permissions of the account.
    pub fn allowed(&self) -> Arc<Permissions> {
        let Some(form) = &self.permissions else { return Arc::default() };
        Permissions::read(&Raw::of(form)).map_or_else(|_| permission::nothing(), Arc::new)
    }

    /// Returns the authorization scheme and secret: Basic with an email, Bearer without.
    pub fn secret(&self, token: &str) -> (AuthScheme, Secret) {
        match &self.email {
            Some(email) => (AuthScheme::Basic, Secret::hidden(BASE64_STANDARD.encode(format!("{email}:{token}")))),
            None => (AuthScheme::Bearer, Secret::hidden(token)),
        }
    }
}

pub(crate) fn check(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: &NamedMap<ProviderFile>,
) -> Vec<ProviderConfig> {
    raw.iter().filter_map(|(name, file)| provider(check, &path.key(name), name, file)).collect()
}

fn provider(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    name: &str,
    raw: &ProviderFile,
) -> Option<ProviderConfig> {
    let oauth = match &raw.oauth {
        Some(oauth) => Some(self::oauth(check, &path.key("oauth"), name, oauth)?),
        None => None,
    };
    let token = match (&raw.token, &raw.token_file) {
        (Some(token), None) => Some(TokenLocation::Inline(Secret::hidden(check.expand(&path.key("token"), token)?))),
        (None, Some(file)) => {
            let file = check.expand(&path.key("token_file"), file)?;
            Some(TokenLocation::File(check.resolve(&file)))
        }
        (None, None) if oauth.is_some() => None,
        _ => {
            let message = "exactly one of `token` and `token_file` must be given".to_owned();
            return check.fail(path, message, "Write `\"token\": \"${NAME_OF_A_VARIABLE}\"`.");
        }
    };
    let mut text = |key: &str, written: &Option<String>| match written {
        None => Some(None),
        Some(written) => check.expand(&path.key(key), written).map(Some),
    };
    let (email, site, cloud_id) =
        (text("email", &raw.email)?, text("site", &raw.site)?, text("cloud_id", &raw.cloud_id)?);
    let api = text("api", &raw.api)?;
    if let Some((fault, hint)) = api.as_deref().and_then(super::url::fault) {
        return check.fail(&path.key("api"), fault.to_owned(), hint);
    }
    let site = site.map(|site| site.trim_start_matches("https://").trim_end_matches('/').to_owned());
    let details = [("site", site), ("cloud_id", cloud_id)];
    let details = details.into_iter().filter_map(|(key, value)| Some((key.to_owned(), value?))).collect();
    let permissions = match &raw.permissions {
        Some(mask) => Some(permissions(check, &path.key("permissions"), mask, token.is_some())?),
        None => None,
    };
    Some(ProviderConfig { name: name.to_owned(), token, oauth, email, details, api, permissions })
}

/// Checks the permissions, which require an account.
fn permissions(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: &PermissionsFile,
    has_account: bool,
) -> Option<Value> {
    if !has_account {
        let message = "there is no account here for this mask".to_owned();
        return check.fail(path, message, "`hikite account mask` is for accounts that users connect.");
    }
    let form = serde_json::to_value(raw).ok()?;
    match Permissions::read(&Raw::of(&form)) {
        Ok(_) => Some(form),
        Err(faults) => {
            for fault in &faults {
                report_fault(check, path, fault);
            }
            None
        }
    }
}

fn oauth(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, name: &str, raw: &OauthFile) -> Option<OauthConfig> {
    let client_secret = match (&raw.client_secret, &raw.client_secret_file) {
        (Some(_), Some(_)) => {
            let message = "both `client_secret` and `client_secret_file` are given".to_owned();
            return check.fail(path, message, "Keep one of them.");
        }
        (Some(secret), None) => Some(check.expand(&path.key("client_secret"), secret)?),
        (None, Some(file)) => Some(check.secret_file(&path.key("client_secret_file"), file)?),
        (None, None) => None,
    };
    let mut text = |key: &str, written: &Option<String>| match written {
        None => Some(None),
        Some(written) => check.expand(&path.key(key), written).map(Some),
    };
    let client_id = text("client_id", &raw.client_id)?;
    let urls = [
        ("authorize_url", text("authorize_url", &raw.authorize_url)?),
        ("token_url", text("token_url", &raw.token_url)?),
    ];
    for (key, url) in &urls {
        if let Some((fault, hint)) = url.as_deref().and_then(super::url::fault) {
            return check.fail(&path.key(key), fault.to_owned(), hint);
        }
        if url.is_none() && !crate::providers::is_builtin(name) {
            let message = format!("`{key}` is missing: `{name}` is not a built-in provider");
            return check.fail(path, message, "Add `authorize_url` and `token_url`.");
        }
    }
    let [(_, authorize_url), (_, token_url)] = urls;
    let auth = |word| match word {
        TokenAuthWord::Basic => TokenAuth::Basic,
        TokenAuthWord::Post => TokenAuth::Post,
        TokenAuthWord::None => TokenAuth::None,
    };
    Some(OauthConfig {
        client_id,
        client_secret: client_secret.map(Secret::hidden),
        authorize_url,
        token_url,
        scopes: raw.scopes.clone(),
        pkce: raw.pkce,
        token_auth: raw.token_auth.map(auth),
        token_json: raw.token_body.map(|word| matches!(word, TokenBodyWord::Json)),
        authorize_params: raw.authorize_params.clone().map(|params| params.into_iter().collect()),
        repeat_scopes: raw.repeat_scopes,
    })
}

pub(crate) fn show_oauth(oauth: &OauthConfig) -> Value {
    let mut shown = Map::new();
    let texts =
        [("client_id", &oauth.client_id), ("authorize_url", &oauth.authorize_url), ("token_url", &oauth.token_url)];
    shown.extend(texts.into_iter().filter_map(|(key, text)| Some((key.to_owned(), json!(text.as_ref()?)))));
    shown.extend(oauth.client_secret.as_ref().map(|_| ("client_secret".to_owned(), MASK.into())));
    shown.extend(oauth.scopes.as_ref().map(|scopes| ("scopes".to_owned(), json!(scopes))));
    shown.extend(oauth.pkce.map(|pkce| ("pkce".to_owned(), json!(pkce))));
    let word = |auth| match auth {
        TokenAuth::Basic => "basic",
        TokenAuth::Post => "post",
        TokenAuth::None => "none",
    };
    shown.extend(oauth.token_auth.map(|auth| ("token_auth".to_owned(), json!(word(auth)))));
    let body = |json: bool| if json { "json" } else { "form" };
    shown.extend(oauth.token_json.map(|json| ("token_body".to_owned(), json!(body(json)))));
    let params = oauth
        .authorize_params
        .as_ref()
        .map(|params| params.iter().map(|(name, value)| (name.clone(), json!(value))).collect::<Map<_, _>>());
    shown.extend(params.map(|params| ("authorize_params".to_owned(), params.into())));
    shown.extend(oauth.repeat_scopes.map(|repeat| ("repeat_scopes".to_owned(), json!(repeat))));
    shown.into()
}

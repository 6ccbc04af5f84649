//! The `providers` section: the accounts with which modules call their services, as far as the owner writes them down here.

use std::collections::BTreeMap;
use std::path::PathBuf;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use hikite_core::credential::Scheme;
use hikite_core::secret::Secret;
use hikite_modules::Named;
use schemars::JsonSchema;
use serde::Deserialize;

use super::check::Check;
use super::place::Path;

/// An account with a service. Everybody who may call its tools calls them with it.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Provider")]
pub(crate) struct ProviderFile {
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
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderConfig {
    pub name: String,
    pub token: TokenPlace,
    pub email: Option<String>,
    pub details: BTreeMap<String, String>,
    pub api: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TokenPlace {
    Here(Secret),
    File(PathBuf),
}

impl ProviderConfig {
    /// How a token is sent: with the user it belongs to, or alone.
    pub(crate) fn secret(&self, token: &str) -> (Scheme, Secret) {
        match &self.email {
            Some(email) => {
                (Scheme::Basic, Secret::hidden(BASE64_STANDARD.encode(format!("{email}:{token}"))))
            }
            None => (Scheme::Bearer, Secret::hidden(token)),
        }
    }
}

pub(crate) fn check(
    check: &mut Check<'_, '_>,
    path: &Path<'_>,
    raw: &Named<ProviderFile>,
) -> Vec<ProviderConfig> {
    raw.iter().filter_map(|(name, file)| provider(check, &path.key(name), name, file)).collect()
}

fn provider(
    check: &mut Check<'_, '_>,
    path: &Path<'_>,
    name: &str,
    raw: &ProviderFile,
) -> Option<ProviderConfig> {
    let token = match (&raw.token, &raw.token_file) {
        (Some(token), None) => TokenPlace::Here(Secret::hidden(check.expand(&path.key("token"), token)?)),
        (None, Some(file)) => {
            let file = check.expand(&path.key("token_file"), file)?;
            TokenPlace::File(check.resolve(&file))
        }
        _ => {
            let message = "exactly one of `token` and `token_file` must be given".to_owned();
            return check.fail(path, message, "write `\"token\": \"${NAME_OF_A_VARIABLE}\"`");
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
    Some(ProviderConfig { name: name.to_owned(), token, email, details, api })
}

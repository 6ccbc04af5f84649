//! The `mcpServers.NAME.auth` section: OAuth settings of a remote server that discovery cannot find or that should
//! differ.

use hikite_core::secret::Secret;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::checker::ConfigChecker;
use super::position::ConfigPath;
use super::transport::TransportConfig;
use super::url;
use hikite_core::secret::MASK;

/// How hikite logs in to a remote server. Most servers say all that is needed.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Access")]
pub(crate) struct AccessFile {
    /// The OAuth grant: a person logs in with a browser, or hikite itself with its client.
    #[schemars(extend("default" = "authorization_code"))]
    grant: Option<GrantWord>,
    /// A client that was registered for hikite. Default: hikite describes or registers itself.
    client_id: Option<String>,
    /// Its secret, as a rule from a variable: `${DOCS_SECRET}`.
    client_secret: Option<String>,
    /// A file that holds its secret.
    client_secret_file: Option<String>,
    /// A file with the key that signs in place of a secret (PKCS #8 in PEM, for ES256).
    private_key_file: Option<String>,
    /// Scopes to request. Default: those that the server names.
    scopes: Option<Vec<String>>,
    /// The only authorization server that is used. Default: the one that the server names.
    issuer: Option<String>,
}

/// The OAuth grant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(rename = "Grant")]
pub enum GrantWord {
    /// A person, with a browser.
    #[default]
    AuthorizationCode,
    /// Hikite itself.
    ClientCredentials,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccessConfig {
    pub grant: GrantWord,
    pub client_id: Option<String>,
    pub client_secret: Option<Secret>,
    /// Private key in PEM.
    pub private_key: Option<Secret>,
    pub scopes: Vec<String>,
    pub issuer: Option<String>,
}

impl AccessConfig {
    /// Returns all values that identify this login, for change detection.
    pub(crate) fn identity(&self) -> Value {
        let exposed = |secret: &Option<Secret>| secret.as_ref().map(|secret| secret.expose().to_owned());
        let grant = self.grant == GrantWord::ClientCredentials;
        let secrets = [exposed(&self.client_secret), exposed(&self.private_key)];
        json!([grant, self.client_id, secrets, self.scopes, self.issuer])
    }

    pub(crate) fn show(&self) -> Value {
        let mut shown = serde_json::Map::new();
        let mut set = |key: &str, value: Value| shown.insert(key.to_owned(), value);
        let word = match self.grant {
            GrantWord::AuthorizationCode => "authorization_code",
            GrantWord::ClientCredentials => "client_credentials",
        };
        set("grant", word.into());
        self.client_id.as_deref().map(|id| set("client_id", id.into()));
        self.client_secret.as_ref().map(|_| set("client_secret", MASK.into()));
        self.private_key.as_ref().map(|_| set("private_key_file", MASK.into()));
        (!self.scopes.is_empty()).then(|| set("scopes", json!(self.scopes)));
        self.issuer.as_deref().map(|issuer| set("issuer", issuer.into()));
        shown.into()
    }
}

/// Checks the section; `None` for stdio servers and for servers with an `Authorization` header.
pub(crate) fn check(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: Option<&AccessFile>,
    transport: &TransportConfig,
) -> Option<AccessConfig> {
    let path = path.key("auth");
    let unused = match transport {
        TransportConfig::Stdio { .. } => Some("ignored: local programs have no login"),
        TransportConfig::Http { headers, .. } | TransportConfig::Sse { headers, .. } => {
            let setting = headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
            setting.then_some("ignored: `headers` has an `Authorization`")
        }
    };
    if let Some(why) = unused {
        if raw.is_some() {
            check.report.warning(&path, why);
        }
        return None;
    }
    Some(raw.map(|raw| access(check, &path, raw)).unwrap_or_default())
}

fn access(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &AccessFile) -> AccessConfig {
    let mut text = |key: &str, setting: &Option<String>| {
        setting.as_ref().and_then(|setting| check.expand(&path.key(key), setting))
    };
    let (client_id, issuer) = (text("client_id", &raw.client_id), text("issuer", &raw.issuer));
    let written = text("client_secret", &raw.client_secret);
    let mut file = |key: &str, setting: &Option<String>| {
        let setting = setting.as_ref()?;
        check.secret_file(&path.key(key), setting).map(Secret::hidden)
    };
    let from_file = file("client_secret_file", &raw.client_secret_file);
    let private_key = file("private_key_file", &raw.private_key_file);
    let setting = [raw.client_secret.is_some(), raw.client_secret_file.is_some(), raw.private_key_file.is_some()];
    if setting.into_iter().filter(|setting| *setting).count() > 1 {
        let hint = "Keep one of `client_secret`, `client_secret_file` and `private_key_file`.";
        check.report.error(path, "the client has more than one way to authenticate", Some(hint.into()));
    }
    let needs_client = setting.contains(&true) || raw.grant == Some(GrantWord::ClientCredentials);
    if needs_client && raw.client_id.is_none() {
        let hint = "Add the `client_id` that belongs to the secret or key.";
        check.report.missing(path, "has no `client_id`", Some(hint.into()));
    }
    if raw.grant == Some(GrantWord::ClientCredentials) && !setting.contains(&true) {
        let hint = "Add `client_secret` or `private_key_file`.";
        check.report.missing(path, "has no credential for the client", Some(hint.into()));
    }
    if let Some((fault, hint)) = issuer.as_deref().and_then(url::fault) {
        check.report.error(&path.key("issuer"), fault.to_owned(), Some(hint.into()));
    }
    AccessConfig {
        grant: raw.grant.unwrap_or_default(),
        client_id,
        client_secret: written.map(Secret::hidden).or(from_file),
        private_key,
        scopes: scopes(check, &path.key("scopes"), raw.scopes.as_deref().unwrap_or_default()),
        issuer,
    }
}

fn scopes(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, written: &[String]) -> Vec<String> {
    let is_scope =
        |text: &str| !text.is_empty() && text.bytes().all(|byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e));
    for (index, scope) in written.iter().enumerate().filter(|(_, scope)| !is_scope(scope)) {
        let hint = "Write each scope as one word without spaces.";
        check.report.error(&path.index(index), format!("`{scope}` is not a valid scope"), Some(hint.into()));
    }
    written.to_vec()
}

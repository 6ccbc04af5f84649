//! The `auth` section: who may connect, and how users log in.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::json::Raw;
use hikite_core::permission::Permissions;
use hikite_core::secret::Secret;
use hikite_modules::NamedMap;
use hikite_server::ClientMetadataMode;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::checker::ConfigChecker;
use super::issuer::{IssuerFile, LoginFile};
use super::position::ConfigPath;
use super::project::PermissionsFile;
use super::tool::report_fault;
use super::unit::{ConfigDuration, show_span};

/// Authentication and authorization of clients.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Auth")]
pub(crate) struct AuthFile {
    /// How clients prove who they are.
    #[schemars(extend("default" = "oauth"))]
    pub(crate) mode: Option<Mode>,
    /// The token. Without `token` and `tokenFile` one is made and kept in the data folder.
    pub(crate) token: Option<String>,
    /// A file that holds the token.
    #[serde(rename = "tokenFile")]
    pub(crate) token_file: Option<String>,
    /// How long an access token is good, from a minute to a day.
    #[schemars(extend("default" = "60m"))]
    pub(crate) access_token_ttl: Option<ConfigDuration>,
    /// How long a client may stay away before its user must log in again.
    #[schemars(extend("default" = "30d"))]
    pub(crate) refresh_token_ttl: Option<ConfigDuration>,
    /// Client ID metadata documents: the id of a client is the URL of its description.
    #[schemars(extend("default" = "auto"))]
    pub(crate) cimd: Option<CimdWord>,
    /// Dynamic client registration. Clients with an unknown redirect URI wait for an admin.
    #[schemars(extend("default" = "open"))]
    pub(crate) registration: Option<RegistrationMode>,
    /// Issuers whose tokens are good here besides our own.
    pub(crate) issuers: Option<Vec<IssuerFile>>,
    /// With whom people may log in, by name: issuers of `OpenID` Connect.
    pub(crate) login: Option<NamedMap<LoginFile>>,
    /// Which tools there are for people who have no mask of their own, those of other issuers included; the owner is
    /// exempt. Default: all of them.
    pub(crate) default_permissions: Option<PermissionsFile>,
}

/// How clients prove who they are.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// People log in and let their clients in (OAuth 2.1); the token and personal tokens are good as well.
    Oauth,
    /// A bearer token; nobody logs in.
    Token,
    /// Not at all; only on loopback addresses.
    None,
}

/// Client ID metadata documents: the id of a client is the URL of its description.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Cimd")]
pub(crate) enum CimdWord {
    /// Well-known clients are known without a look, others are looked up.
    Auto,
    /// All are looked up.
    On,
    Off,
}

/// Dynamic client registration.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum RegistrationMode {
    Open,
    Off,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AuthSection {
    /// The token of the file, or the local one in the data folder.
    Token(Option<Secret>),
    None,
}

/// OAuth settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OauthSection {
    pub access_token_ttl: Duration,
    pub refresh_token_ttl: Duration,
    pub cimd: ClientMetadataMode,
    pub registration: bool,
}

impl Default for OauthSection {
    fn default() -> Self {
        Self {
            access_token_ttl: ACCESS_TTL,
            refresh_token_ttl: REFRESH_TTL,
            cimd: ClientMetadataMode::Auto,
            registration: true,
        }
    }
}

/// Checks the default permissions of users.
pub(crate) fn default_permissions(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: Option<&PermissionsFile>,
) -> Option<Arc<Permissions>> {
    let form = serde_json::to_value(raw?).ok()?;
    match Permissions::read(&Raw::of(&form)) {
        Ok(permissions) => Some(Arc::new(permissions)),
        Err(faults) => {
            for fault in &faults {
                report_fault(check, path, fault);
            }
            None
        }
    }
}

/// Minimum length of a token; shorter ones can be guessed.
const SHORT: usize = 16;
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);
const ACCESS_TTL: Duration = Duration::from_secs(3600);
const REFRESH_TTL: Duration = Duration::from_secs(30 * 86_400);

/// Checks the section; the OAuth settings are `None` where OAuth is disabled.
pub(crate) fn check(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: &AuthFile,
) -> (AuthSection, Option<OauthSection>) {
    let token = token(check, path, (raw.token.as_deref(), raw.token_file.as_deref()));
    let oauth = oauth(check, path, raw);
    match raw.mode {
        Some(Mode::None) => {
            if raw.token.is_some() || raw.token_file.is_some() {
                check.report.warning(path, "the token is not used because the mode is `none`");
            }
            (AuthSection::None, None)
        }
        Some(Mode::Token) => (AuthSection::Token(token), None),
        Some(Mode::Oauth) | None => (AuthSection::Token(token), Some(oauth)),
    }
}

fn oauth(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &AuthFile) -> OauthSection {
    let mut span = |key: &str, written: Option<&ConfigDuration>, default: Duration, most: Duration| {
        let path = path.key(key);
        match written.map(ConfigDuration::read) {
            None => default,
            Some(Ok(span)) if (MINUTE..=most).contains(&span) => span,
            Some(Ok(_)) => {
                let message = format!("must be from one minute to {}", show_span(most));
                check.fail(&path, message, "Leave it out for the default.").unwrap_or(default)
            }
            Some(Err((message, hint))) => check.fail(&path, message, hint).unwrap_or(default),
        }
    };
    OauthSection {
        access_token_ttl: span("access_token_ttl", raw.access_token_ttl.as_ref(), ACCESS_TTL, DAY),
        refresh_token_ttl: span("refresh_token_ttl", raw.refresh_token_ttl.as_ref(), REFRESH_TTL, DAY * 366),
        cimd: match raw.cimd {
            None | Some(CimdWord::Auto) => ClientMetadataMode::Auto,
            Some(CimdWord::On) => ClientMetadataMode::On,
            Some(CimdWord::Off) => ClientMetadataMode::Off,
        },
        registration: !matches!(raw.registration, Some(RegistrationMode::Off)),
    }
}

pub(crate) fn show(auth: &AuthSection, oauth: Option<&OauthSection>) -> Value {
    let mut shown = match (auth, oauth) {
        (AuthSection::None, _) => json!({ "mode": "none" }),
        (AuthSection::Token(_), None) => json!({ "mode": "token" }),
        (AuthSection::Token(_), Some(oauth)) => json!({
            "mode": "oauth",
            "access_token_ttl": show_span(oauth.access_token_ttl),
            "refresh_token_ttl": show_span(oauth.refresh_token_ttl),
            "cimd": match oauth.cimd {
                ClientMetadataMode::Auto => "auto",
                ClientMetadataMode::On => "on",
                ClientMetadataMode::Off => "off",
            },
            "registration": if oauth.registration { "open" } else { "off" },
        }),
    };
    if matches!(auth, AuthSection::Token(Some(_))) {
        shown["token"] = hikite_core::secret::MASK.into();
    }
    shown
}

/// Reads a token that is given inline or in a file.
pub(crate) fn token(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    written: (Option<&str>, Option<&str>),
) -> Option<Secret> {
    let (key, token) = match written {
        (Some(_), Some(_)) => {
            let message = "both `token` and `tokenFile` are given";
            check.report.error_in_name(&path.key("tokenFile"), message, Some("Keep one of them.".into()));
            return None;
        }
        (Some(token), None) => ("token", check.expand(&path.key("token"), token)?),
        (None, Some(file)) => ("tokenFile", check.secret_file(&path.key("tokenFile"), file)?),
        (None, None) => return None,
    };
    let path = path.key(key);
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let hint = "Use letters, digits and punctuation without spaces, for example from `openssl rand -hex 32`.";
        return check.fail(&path, "a token must not be empty or contain spaces".into(), hint);
    }
    if token.len() < SHORT {
        check.report.warning(&path, format!("the token is shorter than {SHORT} characters"));
    }
    Some(Secret::hidden(token))
}

//! The `auth` section: who may connect, and how users log in.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::json::Raw;
use hikite_core::permission::Permissions;
use hikite_core::secret::Secret;
use hikite_modules::Named;
use hikite_server::Cimd;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

use super::check::Check;
use super::issuer::{IssuerFile, LoginFile};
use super::place::Path;
use super::project::PermissionsFile;
use super::tool::tell;
use super::unit::{Span, show_span};

/// Who may connect.
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
    pub(crate) access_token_ttl: Option<Span>,
    /// How long a client may stay away before its user must log in again.
    #[schemars(extend("default" = "30d"))]
    pub(crate) refresh_token_ttl: Option<Span>,
    /// Whether the id of a client may be the address of its description.
    #[schemars(extend("default" = "auto"))]
    pub(crate) cimd: Option<CimdWord>,
    /// Whether clients may register themselves. Those that lead back to a place that is not known wait for an admin.
    #[schemars(extend("default" = "open"))]
    pub(crate) registration: Option<Registration>,
    /// Issuers whose tokens are good here besides our own.
    pub(crate) issuers: Option<Vec<IssuerFile>>,
    /// With whom people may log in, by name: issuers of `OpenID` Connect.
    pub(crate) login: Option<Named<LoginFile>>,
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

/// Whether the id of a client may be the address of its description.
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

/// Whether clients may register themselves.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Registration {
    Open,
    Off,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// The token of the file, or the local one in the data folder.
    Token(Option<Secret>),
    None,
}

/// OAuth settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OauthSection {
    pub access_token_ttl: Duration,
    pub refresh_token_ttl: Duration,
    pub cimd: Cimd,
    pub registration: bool,
}

impl Default for OauthSection {
    fn default() -> Self {
        Self { access_token_ttl: ACCESS, refresh_token_ttl: REFRESH, cimd: Cimd::Auto, registration: true }
    }
}

/// Checks the default permissions of users.
pub(crate) fn default_permissions(
    check: &mut Check<'_, '_>,
    path: &Path<'_>,
    raw: Option<&PermissionsFile>,
) -> Option<Arc<Permissions>> {
    let form = serde_json::to_value(raw?).ok()?;
    match Permissions::read(&Raw::of(&form)) {
        Ok(permissions) => Some(Arc::new(permissions)),
        Err(faults) => {
            for fault in &faults {
                tell(check, path, fault);
            }
            None
        }
    }
}

/// Minimum length of a token; shorter ones can be guessed.
const SHORT: usize = 16;
const MINUTE: Duration = Duration::from_secs(60);
const DAY: Duration = Duration::from_secs(86_400);
const ACCESS: Duration = Duration::from_secs(3600);
const REFRESH: Duration = Duration::from_secs(30 * 86_400);

/// Checks the section; the OAuth settings are `None` where OAuth is disabled.
pub(crate) fn check(
    check: &mut Check<'_, '_>,
    path: &Path<'_>,
    raw: &AuthFile,
) -> (Auth, Option<OauthSection>) {
    let token = token(check, path, (raw.token.as_deref(), raw.token_file.as_deref()));
    let oauth = oauth(check, path, raw);
    match raw.mode {
        Some(Mode::None) => {
            if raw.token.is_some() || raw.token_file.is_some() {
                check.report.warning(path, "the token is not used: the mode is `none`");
            }
            (Auth::None, None)
        }
        Some(Mode::Token) => (Auth::Token(token), None),
        Some(Mode::Oauth) | None => (Auth::Token(token), Some(oauth)),
    }
}

fn oauth(check: &mut Check<'_, '_>, path: &Path<'_>, raw: &AuthFile) -> OauthSection {
    let mut span = |key: &str, written: Option<&Span>, default: Duration, most: Duration| {
        let path = path.key(key);
        match written.map(Span::read) {
            None => default,
            Some(Ok(span)) if (MINUTE..=most).contains(&span) => span,
            Some(Ok(_)) => {
                let message = format!("must be from a minute to {}", show_span(most));
                check.fail(&path, message, "leave it out for the default").unwrap_or(default)
            }
            Some(Err((message, hint))) => check.fail(&path, message, hint).unwrap_or(default),
        }
    };
    OauthSection {
        access_token_ttl: span("access_token_ttl", raw.access_token_ttl.as_ref(), ACCESS, DAY),
        refresh_token_ttl: span("refresh_token_ttl", raw.refresh_token_ttl.as_ref(), REFRESH, DAY * 366),
        cimd: match raw.cimd {
            None | Some(CimdWord::Auto) => Cimd::Auto,
            Some(CimdWord::On) => Cimd::On,
            Some(CimdWord::Off) => Cimd::Off,
        },
        registration: !matches!(raw.registration, Some(Registration::Off)),
    }
}

pub(crate) fn show(auth: &Auth, oauth: Option<&OauthSection>) -> Value {
    let mut shown = match (auth, oauth) {
        (Auth::None, _) => json!({ "mode": "none" }),
        (Auth::Token(_), None) => json!({ "mode": "token" }),
        (Auth::Token(_), Some(oauth)) => json!({
            "mode": "oauth",
            "access_token_ttl": show_span(oauth.access_token_ttl),
            "refresh_token_ttl": show_span(oauth.refresh_token_ttl),
            "cimd": match oauth.cimd {
                Cimd::Auto => "auto",
                Cimd::On => "on",
                Cimd::Off => "off",
            },
            "registration": if oauth.registration { "open" } else { "off" },
        }),
    };
    if matches!(auth, Auth::Token(Some(_))) {
        shown["token"] = hikite_core::secret::MASK.into();
    }
    shown
}

/// Reads a token that is given inline or in a file.
pub(crate) fn token(
    check: &mut Check<'_, '_>,
    path: &Path<'_>,
    written: (Option<&str>, Option<&str>),
) -> Option<Secret> {
    let (key, token) = match written {
        (Some(_), Some(_)) => {
            let message = "both `token` and `tokenFile` are given";
            check.report.error_in_name(&path.key("tokenFile"), message, Some("keep one of them".into()));
            return None;
        }
        (Some(token), None) => ("token", check.expand(&path.key("token"), token)?),
        (None, Some(file)) => ("tokenFile", check.secret_file(&path.key("tokenFile"), file)?),
        (None, None) => return None,
    };
    let path = path.key(key);
    if token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
        let hint = "use letters, digits and signs without spaces, for example from `openssl rand -hex 32`";
        return check.fail(&path, "a token is not empty and has no spaces".into(), hint);
    }
    if token.len() < SHORT {
        check.report.warning(&path, format!("the token is shorter than {SHORT} characters"));
    }
    Some(Secret::hidden(token))
}

//! The `auth.issuers` and `auth.login` sections: identity providers whose tokens are accepted, and those offered for
//! login.

use hikite_core::caller::Scopes;
use hikite_core::pattern::Pattern;
use hikite_core::secret::{MASK, Secret};
use hikite_identity::{IssuerRule, LoginRule};
use hikite_modules::NamedMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::checker::ConfigChecker;
use super::position::ConfigPath;
use super::url;

/// An issuer whose tokens are good here, if they are for us.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Issuer")]
pub(crate) struct IssuerFile {
    /// The issuer, exactly as its tokens name it in `iss`.
    issuer: String,
    /// The value that its tokens must have in `aud`. Without it, any token of that issuer would be accepted.
    audience: String,
    /// Where its keys lie. Default: where its own description says.
    jwks_url: Option<String>,
    /// The claim that says who somebody is.
    #[schemars(extend("default" = "sub"))]
    subject_claim: Option<String>,
    /// The most that its people may do: `read`, `call`, `admin`.
    #[schemars(extend("default" = ["read", "call"]))]
    scopes: Option<Vec<ScopeWord>>,
    /// The claim that names the scopes of a token, of which those in `scopes` count. Default: all of `scopes`.
    scope_claim: Option<String>,
    /// Users that are accepted: patterns over their verified address or their subject, like `*@example.com`.
    allow: Option<Vec<String>>,
    /// Accepts an address even if the token does not say `email_verified`.
    #[schemars(extend("default" = false))]
    trust_email: Option<bool>,
    /// The project in which they work.
    project: Option<String>,
}

/// A scope of a user or token.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "Scope")]
pub(crate) enum ScopeWord {
    /// List, search and describe tools.
    Read,
    /// Run them.
    Call,
    /// Change what there is for everybody.
    Admin,
}

/// Somewhere that people log in with, in place of a password here: an issuer of `OpenID` Connect.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Login")]
pub(crate) struct LoginFile {
    /// The issuer, exactly as its own description names it.
    issuer: String,
    /// The client id of hikite there. Register `<public_url>/oauth/federated/NAME/callback` as its redirect URI.
    client_id: String,
    /// The secret it gave us; none for a public client.
    client_secret: Option<String>,
    /// A file that holds it.
    client_secret_file: Option<String>,
    /// Scopes to request.
    #[schemars(extend("default" = ["openid", "email", "profile"]))]
    scopes: Option<Vec<String>>,
    /// Users that are accepted: patterns over their verified address or their subject, like `*@example.com`. Default:
    /// everybody who can log in there.
    allow: Option<Vec<String>>,
    /// The role of a user who logs in for the first time.
    #[schemars(extend("default" = "member"))]
    role: Option<RoleWord>,
}

/// The role of a user.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(rename = "LoginRole")]
pub(crate) enum RoleWord {
    Member,
    Admin,
}

pub(crate) fn issuers(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: Option<&[IssuerFile]>,
) -> Vec<IssuerRule> {
    let raw = raw.unwrap_or_default().iter().enumerate();
    raw.filter_map(|(index, raw)| issuer(check, &path.index(index), raw)).collect()
}

fn issuer(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &IssuerFile) -> Option<IssuerRule> {
    let issuer = address(check, &path.key("issuer"), &raw.issuer)?;
    let audience = check.expand(&path.key("audience"), &raw.audience)?;
    if audience.is_empty() {
        let hint = "Set the audience of its tokens, for example the address of this hikite.";
        return check.fail(&path.key("audience"), "an audience must not be empty".into(), hint);
    }
    let jwks_url = match &raw.jwks_url {
        Some(url) => Some(address(check, &path.key("jwks_url"), url)?),
        None => None,
    };
    let scopes = raw.scopes.as_ref().map_or(Scopes::DEFAULT, |words| {
        words.iter().fold(Scopes::NONE, |scopes, word| {
            scopes.with(match word {
                ScopeWord::Read => Scopes::READ,
                ScopeWord::Call => Scopes::CALL,
                ScopeWord::Admin => Scopes::ADMIN,
            })
        })
    });
    Some(IssuerRule {
        issuer,
        audience,
        jwks_url,
        subject_claim: raw.subject_claim.clone().unwrap_or_else(|| "sub".into()),
        scopes,
        scope_claim: raw.scope_claim.clone(),
        allow: patterns(check, &path.key("allow"), raw.allow.as_deref())?,
        trust_email: raw.trust_email.unwrap_or(false),
        project: raw.project.as_deref().map(Into::into),
    })
}

pub(crate) fn logins(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: Option<&NamedMap<LoginFile>>,
) -> Vec<LoginRule> {
    let raw = raw.into_iter().flat_map(NamedMap::iter);
    raw.filter_map(|(name, raw)| login(check, &path.key(name), name, raw)).collect()
}

fn login(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, name: &str, raw: &LoginFile) -> Option<LoginRule> {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    if name.is_empty() || name.len() > 32 || !name.bytes().all(is_plain) {
        let message = format!("`{name}` is not a valid name for a login");
        return check.fail(path, message, "Use up to 32 lowercase letters, digits and `-`.");
    }
    let secret = match (&raw.client_secret, &raw.client_secret_file) {
        (Some(_), Some(_)) => {
            let message = "both `client_secret` and `client_secret_file` are given".to_owned();
            return check.fail(&path.key("client_secret_file"), message, "Keep one of them.");
        }
        (Some(secret), None) => Some(check.expand(&path.key("client_secret"), secret)?),
        (None, Some(file)) => Some(check.secret_file(&path.key("client_secret_file"), file)?),
        (None, None) => None,
    };
    let mut scopes: Vec<String> =
        raw.scopes.clone().unwrap_or_else(|| ["openid", "email", "profile"].map(Into::into).to_vec());
    if !scopes.iter().any(|scope| scope == "openid") {
        scopes.insert(0, "openid".into());
    }
    Some(LoginRule {
        name: name.to_owned(),
        issuer: address(check, &path.key("issuer"), &raw.issuer)?,
        client_id: check.expand(&path.key("client_id"), &raw.client_id)?,
        client_secret: secret.map(Secret::hidden),
        scopes,
        allow: patterns(check, &path.key("allow"), raw.allow.as_deref())?,
        role: match raw.role {
            Some(RoleWord::Admin) => "admin".into(),
            Some(RoleWord::Member) | None => "member".into(),
        },
    })
}

/// Checks the URL of an issuer. Plain HTTP is allowed only on loopback addresses.
fn address(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, written: &str) -> Option<String> {
    let address = check.expand(path, written)?;
    if let Some((fault, hint)) = url::fault(&address) {
        return check.fail(path, format!("`{}` {fault}", url::without_secrets(&address)), hint);
    }
    let host = address.strip_prefix("http://").map(|rest| rest.split(['/', '?']).next().unwrap_or_default());
    let is_here = |host: &str| {
        host.parse::<std::net::SocketAddr>().is_ok_and(|socket| socket.ip().is_loopback())
            || host.split(':').next().is_some_and(|name| name == "localhost" || name == "127.0.0.1")
    };
    if host.is_some_and(|host| !is_here(host)) {
        return check.fail(path, format!("`{address}` is not https"), "Write `https://…`.");
    }
    Some(address)
}

fn patterns(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: Option<&[String]>) -> Option<Vec<Pattern>> {
    let mut patterns = Vec::new();
    for (index, text) in raw.unwrap_or_default().iter().enumerate() {
        match Pattern::parse(&text.to_lowercase()) {
            Ok(pattern) => patterns.push(pattern),
            Err(bad) => return check.fail(&path.index(index), bad.to_string(), "Write `*@example.com`."),
        }
    }
    Some(patterns)
}

pub(crate) fn show(issuers: &[IssuerRule], logins: &[LoginRule]) -> Map<String, Value> {
    let mut shown = Map::new();
    if !issuers.is_empty() {
        shown.insert("issuers".into(), issuers.iter().map(show_issuer).collect());
    }
    if !logins.is_empty() {
        let logins: Map<String, Value> = logins.iter().map(|rule| (rule.name.clone(), show_login(rule))).collect();
        shown.insert("login".into(), logins.into());
    }
    shown
}

fn show_issuer(rule: &IssuerRule) -> Value {
    let mut shown = json!({
        "issuer": rule.issuer,
        "audience": rule.audience,
        "subject_claim": rule.subject_claim,
        "scopes": rule.scopes.names().collect::<Vec<_>>(),
        "allow": rule.allow.iter().map(Pattern::to_string).collect::<Vec<_>>(),
        "trust_email": rule.trust_email,
    });
    let project = rule.project.as_deref().map(str::to_owned);
    for (key, value) in [("jwks_url", &rule.jwks_url), ("scope_claim", &rule.scope_claim), ("project", &project)] {
        if let Some(value) = value {
            shown[key] = value.as_str().into();
        }
    }
    shown
}

fn show_login(rule: &LoginRule) -> Value {
    let mut shown = json!({
        "issuer": rule.issuer,
        "client_id": rule.client_id,
        "scopes": rule.scopes,
        "allow": rule.allow.iter().map(Pattern::to_string).collect::<Vec<_>>(),
        "role": rule.role,
    });
    if rule.client_secret.is_some() {
        shown["client_secret"] = MASK.into();
    }
    shown
}

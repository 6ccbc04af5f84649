//! The `auth` section: who may connect.

use schemars::JsonSchema;
use serde::Deserialize;

use super::check::Check;
use super::place::Path;
use hikite_core::secret::Secret;

/// Who may connect.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Auth")]
pub(crate) struct AuthFile {
    /// How clients prove who they are.
    #[schemars(extend("default" = "token"))]
    pub(crate) mode: Option<Mode>,
    /// The token. Without `token` and `tokenFile` one is made and kept in the data folder.
    pub(crate) token: Option<String>,
    /// A file that holds the token.
    #[serde(rename = "tokenFile")]
    pub(crate) token_file: Option<String>,
}

/// How clients prove who they are.
#[derive(Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Mode {
    /// A bearer token.
    Token,
    /// Not at all; only on loopback addresses.
    None,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Auth {
    /// The token of the file, else the local one in the data folder.
    Token(Option<Secret>),
    None,
}

/// Shorter tokens can be guessed.
const SHORT: usize = 16;

pub(crate) fn check(check: &mut Check<'_, '_>, path: &Path<'_>, raw: &AuthFile) -> Auth {
    let token = token(check, path, (raw.token.as_deref(), raw.token_file.as_deref()));
    match raw.mode {
        Some(Mode::None) => {
            if raw.token.is_some() || raw.token_file.is_some() {
                check.report.warning(path, "the token is not used: the mode is `none`");
            }
            Auth::None
        }
        Some(Mode::Token) | None => Auth::Token(token),
    }
}

/// A token that is written in the file, or in a file of its own.
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

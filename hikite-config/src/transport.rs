//! Transport of an upstream server: a command to start, or a URL, never both.

use std::path::PathBuf;

use hikite_modules::NamedMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::access::AccessConfig;
use super::checker::ConfigChecker;
use super::position::ConfigPath;
use super::secret;
use super::upstream::UpstreamFile;
use super::url;
use hikite_core::hex::hex;
use hikite_core::secret::Secret;

/// How a server is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum TransportKind {
    /// A program on stdin and stdout.
    Stdio,
    /// Streamable HTTP.
    Http,
    /// Streamable HTTP.
    #[serde(rename = "streamable-http")]
    StreamableHttp,
    /// Streamable HTTP.
    #[serde(rename = "streamableHttp")]
    StreamableHttpToo,
    /// The older HTTP with server-sent events.
    Sse,
}

/// A value, or the file that holds it.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(rename = "Value")]
pub(crate) enum ValueOrFile {
    Text(String),
    Number(serde_json::Number),
    Bool(bool),
    File(SecretFile),
}

/// A file that holds the value.
#[derive(Clone, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SecretFile {
    /// The path; relative ones start at the config file's folder.
    pub(crate) file: String,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TransportConfig {
    Stdio {
        command: String,
        args: Vec<Secret>,
        env: Vec<(String, Secret)>,
        cwd: Option<PathBuf>,
        /// `true` to pass the whole environment, not only `PATH`, `HOME` and the like.
        inherit_env: bool,
    },
    Http {
        url: Secret,
        headers: Vec<(String, Secret)>,
    },
    Sse {
        url: Secret,
        headers: Vec<(String, Secret)>,
    },
}

impl TransportConfig {
    pub(crate) fn hash(&self, access: Option<&AccessConfig>) -> String {
        let pairs = |pairs: &[(String, Secret)]| -> Value {
            pairs.iter().map(|(name, secret)| json!([name, secret.expose()])).collect()
        };
        let identity = match self {
            Self::Stdio { command, args, env, cwd, inherit_env } => {
                let args: Vec<&str> = args.iter().map(Secret::expose).collect();
                json!(["stdio", command, args, pairs(env), cwd, inherit_env])
            }
            Self::Http { url, headers } => json!(["http", url.expose(), pairs(headers)]),
            Self::Sse { url, headers } => json!(["sse", url.expose(), pairs(headers)]),
        };
        let identity = match access {
            Some(access) => json!([identity, access.identity()]),
            None => identity,
        };
        hex(&Sha256::digest(identity.to_string()))
    }
}

pub(crate) fn check(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: &UpstreamFile,
) -> Option<TransportConfig> {
    let kind = raw.kind.or(raw.transport).or(raw.transport_type);
    let url = raw.url.as_deref().map(|url| ("url", url));
    let url = url.or(raw.server_url.as_deref().map(|url| ("serverUrl", url)));
    match (raw.command.as_deref(), url) {
        (Some(_), Some(_)) => {
            let hint = "A server is either a program (`command`) or an address (`url`).";
            check.report.error_in_name(path, "has both `command` and `url`", Some(hint.into()));
            None
        }
        (None, None) => {
            let hint = "Set `command` to the program to start, or `url` to the address.";
            check.report.missing(path, "has neither `command` nor `url`", Some(hint.into()));
            None
        }
        (Some(command), None) => {
            unused(check, path, "headers", raw.headers.is_some(), "a program has no headers");
            if !matches!(kind, None | Some(TransportKind::Stdio)) {
                return mismatch(check, path, "`command`", "url");
            }
            stdio(check, path, raw, command)
        }
        (None, Some((key, url))) => {
            let started = [("args", raw.args.is_some()), ("env", raw.env.is_some()), ("cwd", raw.cwd.is_some())];
            for (key, setting) in started {
                unused(check, path, key, setting, "nothing is started for a `url`");
            }
            if kind == Some(TransportKind::Stdio) {
                return mismatch(check, path, "`url`", "command");
            }
            remote(check, path, raw, kind, (key, url))
        }
    }
}

fn stdio(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: &UpstreamFile,
    command: &str,
) -> Option<TransportConfig> {
    let command_path = path.key("command");
    let command = check.expand(&command_path, command);
    if command.as_deref().is_some_and(|command| command.trim().is_empty()) {
        check.report.error(&command_path, "is empty", Some("Set the program to start.".into()));
    }
    let (list, written) = (path.key("args"), raw.args.clone().unwrap_or_default());
    let args: Vec<Option<String>> =
        written.iter().enumerate().map(|(index, text)| check.expand(&list.index(index), text)).collect();
    let env = values(check, &path.key("env"), raw.env.as_ref(), env_fault);
    let cwd = raw.cwd.as_deref().map(|cwd| check.expand(&path.key("cwd"), cwd));
    let cwd = cwd.flatten().map(|cwd| check.resolve(&cwd));
    let args = secret::arguments(&written, args.into_iter().collect::<Option<_>>()?);
    Some(TransportConfig::Stdio { command: command?, args, env, cwd, inherit_env: raw.inherit_env.unwrap_or(false) })
}

fn remote(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: &UpstreamFile,
    kind: Option<TransportKind>,
    (key, written): (&str, &str),
) -> Option<TransportConfig> {
    let headers = values(check, &path.key("headers"), raw.headers.as_ref(), header_fault);
    let path = path.key(key);
    let expanded = check.expand(&path, written)?;
    if let Some((fault, hint)) = url::fault(&expanded) {
        // The message shows the text before variable expansion, which contains no secret.
        return check.fail(&path, format!("`{}` {fault}", url::without_secrets(written)), hint);
    }
    if kind.is_none() && url::without_query(&expanded).ends_with("/sse") {
        check
            .report
            .warning(&path, "this looks like the older transport: if it does not respond, add `\"type\": \"sse\"`");
    }
    let url = secret::url(written, expanded);
    match kind {
        Some(TransportKind::Sse) => Some(TransportConfig::Sse { url, headers }),
        _ => Some(TransportConfig::Http { url, headers }),
    }
}

fn mismatch<T>(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, has: &str, lacks: &str) -> Option<T> {
    let hint = format!("Leave out `type`, or set `{lacks}` instead.");
    check.report.error_in_name(path, format!("has {has}, which does not match its `type`"), Some(hint));
    None
}

fn unused(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, key: &str, setting: bool, reason: &str) {
    if setting {
        check.report.warning(&path.key(key), format!("ignored: {reason}"));
    }
}

/// Checks environment variables or headers, whose values may be secrets.
pub(crate) fn values(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: Option<&NamedMap<ValueOrFile>>,
    fault: fn(&str, &str) -> Option<&'static str>,
) -> Vec<(String, Secret)> {
    let mut values = Vec::new();
    for (name, setting) in raw.into_iter().flat_map(NamedMap::iter) {
        let path = path.key(name);
        let text = match setting {
            ValueOrFile::Text(text) => check.expand(&path, text),
            ValueOrFile::Number(number) => Some(number.to_string()),
            ValueOrFile::Bool(value) => Some(value.to_string()),
            ValueOrFile::File(setting) => check.secret_file(&path.key("file"), &setting.file),
        };
        let Some(text) = text else { continue };
        match fault(name, &text) {
            Some(fault) => check.report.error_in_name(&path, fault, None),
            None => values.push((name.to_owned(), Secret::hidden(text))),
        }
    }
    values
}

fn env_fault(name: &str, value: &str) -> Option<&'static str> {
    if name.is_empty() || name.contains(['=', '\0']) {
        return Some("is not a valid name of an environment variable");
    }
    value.contains('\0').then_some("contains a NUL character")
}

pub(crate) fn header_fault(name: &str, value: &str) -> Option<&'static str> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(token) {
        return Some("is not a valid header name");
    }
    let sendable = |byte: u8| byte == b'\t' || (b' '..=b'~').contains(&byte);
    (!value.bytes().all(sendable)).then_some("contains a character that is not allowed in a header")
}

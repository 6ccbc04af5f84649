//! The `mcpServers` section: upstream MCP servers. Blocks pasted from other clients load unchanged; keys of those
//! clients are honoured where hikite has a counterpart, and ignored otherwise.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::call_policy::CallPolicy;
use hikite_core::pin::Pinning;
use hikite_core::rate::Rate;
use hikite_core::tool_selection::{Selection, ToolRef};
use hikite_modules::NamedMap;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::access::{self, AccessConfig, AccessFile};
use super::checker::ConfigChecker;
use super::pins::PinsWord;
use super::policy::{self, RetryFile};
use super::position::ConfigPath;
use super::tools::{self, ToolSelectionFile};
use super::transport::{self, TransportConfig, TransportKind, ValueOrFile};
use super::unit::ConfigDuration;

/// An upstream MCP server: either `command` or `url`.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct UpstreamFile {
    /// Purpose of the server in one line. Models read it.
    pub(crate) description: Option<String>,
    /// How it is spoken to. Default: `stdio` with a `command`, `http` with a `url`.
    #[serde(rename = "type")]
    pub(crate) kind: Option<TransportKind>,
    /// The program to start.
    pub(crate) command: Option<String>,
    /// Its arguments.
    pub(crate) args: Option<Vec<String>>,
    /// Its environment, besides what it inherits.
    pub(crate) env: Option<NamedMap<ValueOrFile>>,
    /// The folder it is started in.
    pub(crate) cwd: Option<String>,
    /// The address of a remote server.
    pub(crate) url: Option<String>,
    /// Headers sent to a remote server.
    pub(crate) headers: Option<NamedMap<ValueOrFile>>,
    /// How hikite logs in to a remote server, where that cannot be found out. An `Authorization` in `headers` switches
    /// logging in off.
    pub(crate) auth: Option<AccessFile>,
    /// `false` leaves the server out.
    #[schemars(extend("default" = true))]
    pub(crate) enabled: Option<bool>,
    /// `true` leaves the server out.
    #[schemars(extend("default" = false))]
    pub(crate) disabled: Option<bool>,
    /// Sharing of one connection between clients.
    #[schemars(extend("default" = "auto"))]
    pub(crate) share: Option<ShareMode>,
    /// Passes all of hikite's environment to the program, not only `PATH`, `HOME` and the like.
    #[schemars(extend("default" = false))]
    pub(crate) inherit_env: Option<bool>,
    /// For one call. Default: `limits.call_timeout`. A plain number over 3600 is taken for milliseconds.
    pub(crate) timeout: Option<ConfigDuration>,
    /// Calls that run at once. Default: `limits.module_concurrency`.
    pub(crate) concurrency: Option<usize>,
    /// Calls in a span of time: `10/s`, `600/m`, `5000/h`.
    pub(crate) rate: Option<String>,
    /// Further attempts of calls that fail, where the tool's annotations allow it. Default: none.
    pub(crate) retry: Option<RetryFile>,
    /// How long results of its read-only tools are given again to the same caller. Default: not at all.
    pub(crate) cache: Option<ConfigDuration>,
    /// How long its resources are given again to the same caller. Default: not at all.
    pub(crate) cache_resources: Option<ConfigDuration>,
    /// Handling of its tools whose definition nobody approved. Default: `pins` of the whole file.
    pub(crate) pins: Option<PinsWord>,
    /// Which of its tools are used, wherever they are shown.
    pub(crate) tools: Option<ToolSelectionFile>,

    /// Another client's word for `tools.excludeNames`.
    pub(crate) disabled_tools: Option<Vec<String>>,
    /// Another client's word for `type`.
    pub(crate) transport: Option<TransportKind>,
    /// Another client's word for `type`.
    pub(crate) transport_type: Option<TransportKind>,
    /// Another client's word for `url`.
    pub(crate) server_url: Option<String>,
    /// Of another client; ignored.
    pub(crate) auto_approve: Option<Value>,
    /// Of another client; ignored.
    pub(crate) always_allow: Option<Value>,
    /// Of another client; ignored.
    pub(crate) trust: Option<Value>,
    /// Of another client; ignored. Put the variables into `env`.
    pub(crate) env_file: Option<Value>,
    /// Of another client; ignored.
    pub(crate) gallery: Option<Value>,
    /// For people; ignored.
    #[expect(dead_code, reason = "accepted, of no meaning here")]
    pub(crate) note: Option<Value>,
    /// For people; ignored.
    #[expect(dead_code, reason = "accepted, of no meaning here")]
    pub(crate) icon: Option<Value>,
}

/// Sharing of one connection to a server between clients.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ShareMode {
    /// Shared, unless the server asks its clients questions.
    #[default]
    Auto,
    /// One connection for all.
    Always,
    /// One connection for each.
    Never,
}

/// A checked upstream server.
#[derive(Clone, Debug)]
pub struct ServerConfig {
    pub name: Arc<str>,
    /// Description; empty if the file has none.
    pub description: String,
    pub transport: TransportConfig,
    /// OAuth settings, if a login is possible.
    pub access: Option<AccessConfig>,
    pub share: ShareMode,
    pub call_timeout: Option<Duration>,
    pub concurrency: Option<usize>,
    pub rate: Option<Rate>,
    /// Policy of tool calls; their timeout is `call_timeout`.
    pub policy: CallPolicy,
    /// Policy of resource reads.
    pub resources: CallPolicy,
    pub selection: Selection,
    /// Handling of unapproved tools.
    pub pins: Pinning,
    /// SHA-256 in hex of everything that identifies the server: the transport with variables expanded, and OAuth
    /// settings.
    pub definition_hash: String,
}

/// Returns the enabled servers, and the names of disabled ones, of which only the shape is checked.
pub(crate) fn check(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: &NamedMap<UpstreamFile>,
    pins: PinsWord,
) -> (Vec<ServerConfig>, Vec<Arc<str>>) {
    let mut servers = Vec::new();
    let mut disabled = Vec::new();
    for (name, raw) in raw.iter() {
        let path = path.key(name);
        check_name(check, &path, name);
        if raw.enabled == Some(true) && raw.disabled == Some(true) {
            check.report.error(&path.key("disabled"), "contradicts `enabled`", Some("Keep one of them.".into()));
        }
        if raw.enabled == Some(false) || raw.disabled == Some(true) {
            disabled.push(name.into());
        } else {
            warn(check, &path, raw);
            let checked = server(check, &path, name, raw);
            servers.extend(checked.map(|server| ServerConfig { pins: raw.pins.unwrap_or(pins).into(), ..server }));
        }
    }
    (servers, disabled)
}

fn server(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    name: &str,
    raw: &UpstreamFile,
) -> Option<ServerConfig> {
    let name: Arc<str> = name.into();
    let transport = transport::check(check, path, raw);
    let own = std::slice::from_ref(&name);
    let tools = raw.tools.clone().unwrap_or_default();
    let mut selection = tools::check(check, &path.key("tools"), &tools, own, &[]);
    let disabled_tools = raw.disabled_tools.iter().flatten();
    selection.exclude_names.extend(disabled_tools.map(|tool| ToolRef::parse(tool, own)));
    let call_timeout = policy::timeout(check, &path.key("timeout"), raw.timeout.as_ref());
    let (concurrency, rate) = (concurrency(check, path, raw), rate(check, path, raw));
    let retry = policy::retry(check, &path.key("retry"), raw.retry.as_ref());
    let cache = policy::span(check, &path.key("cache"), raw.cache.as_ref());
    let cache_resources = policy::span(check, &path.key("cacheResources"), raw.cache_resources.as_ref());
    let transport = transport?;
    let access = access::check(check, path, raw.auth.as_ref(), &transport);
    let own_access = access.as_ref().filter(|_| raw.auth.is_some());
    Some(ServerConfig {
        description: raw.description.clone().unwrap_or_default(),
        definition_hash: transport.hash(own_access),
        transport,
        access,
        share: raw.share.unwrap_or_default(),
        call_timeout,
        concurrency,
        rate,
        policy: CallPolicy { timeout: None, retry, cache },
        resources: CallPolicy { timeout: None, retry, cache: cache_resources },
        selection,
        pins: Pinning::default(),
        name,
    })
}

fn concurrency(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &UpstreamFile) -> Option<usize> {
    let hint = "Leave it out for the default.";
    match raw.concurrency? {
        0 => check.fail(&path.key("concurrency"), "must be greater than zero".into(), hint),
        count => Some(count),
    }
}

fn rate(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &UpstreamFile) -> Option<Rate> {
    let text = raw.rate.as_deref()?;
    let hint = "Write `10/s`, `600/m` or `5000/h`.";
    Rate::parse(text).or_else(|| check.fail(&path.key("rate"), format!("`{text}` is not a rate"), hint))
}

/// Checks the name of a server; a colon would make `server:tool` ambiguous.
fn check_name(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, name: &str) {
    let fault = match name {
        _ if name.trim().is_empty() => "the name of a server is empty",
        _ if name.contains(':') => "the name of a server must not contain `:`",
        _ if name.chars().any(char::is_control) => "the name of a server must not contain control characters",
        _ => return,
    };
    check.report.error_in_name(path, fault, Some("Letters, digits, `-` and `_` are always allowed.".into()));
}

fn warn(check: &mut ConfigChecker<'_, '_>, path: &ConfigPath<'_>, raw: &UpstreamFile) {
    let ignored = [
        ("autoApprove", &raw.auto_approve),
        ("alwaysAllow", &raw.always_allow),
        ("trust", &raw.trust),
        ("gallery", &raw.gallery),
    ];
    for (key, value) in ignored {
        if value.as_ref().is_some_and(is_meaningful) {
            check.report.warning(&path.key(key), "ignored: it belongs to another client");
        }
    }
    if raw.env_file.is_some() {
        check.report.warning(&path.key("envFile"), "ignored: put the variables in `env`");
    }
}

pub(crate) fn is_meaningful(value: &Value) -> bool {
    !matches!(value, Value::Null | Value::Bool(false)) && value.as_array().is_none_or(|list| !list.is_empty())
}

//! The `categories` section: named, described selections of tools.

use std::sync::Arc;

use hikite_core::category::CategoryRule;
use hikite_core::origin::ConfigOrigin;
use hikite_core::suggestion;
use hikite_modules::NamedMap;
use schemars::JsonSchema;
use serde::Deserialize;

use super::checker::ConfigChecker;
use super::one_or_many::OneOrMany;
use super::position::ConfigPath;
use super::tools::{self, ToolSelectionFile};

/// A named selection of tools that is opened on demand.
#[derive(Clone, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Category")]
pub(crate) struct CategoryFile {
    /// Purpose of the category in one line: all that the model reads before it opens the category.
    pub(crate) description: Option<String>,
    /// The server, or servers, of `mcpServers` that the tools come from.
    pub(crate) server: Option<OneOrMany<String>>,
    /// Which tools. Default: all of them.
    pub(crate) tools: Option<ToolSelectionFile>,
    /// A note on how to use the category well, returned with its tools.
    pub(crate) skill: Option<String>,
}

/// Names of the file's servers.
pub(crate) struct ServerNames<'a> {
    pub(crate) all: Vec<Arc<str>>,
    pub(crate) disabled: &'a [Arc<str>],
}

pub(crate) fn check(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: &NamedMap<CategoryFile>,
    servers: &ServerNames<'_>,
) -> Vec<Arc<CategoryRule>> {
    raw.iter().map(|(name, raw)| Arc::new(category(check, &path.key(name), name, raw, servers))).collect()
}

fn category(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    name: &str,
    raw: &CategoryFile,
    servers: &ServerNames<'_>,
) -> CategoryRule {
    if name.trim().is_empty() {
        check.report.error_in_name(path, "the name of a category is empty", None);
    }
    let own = own_servers(check, path, raw, servers);
    let others: Vec<Arc<str>> = servers.all.iter().filter(|name| !own.contains(name)).cloned().collect();
    let tools = raw.tools.clone().unwrap_or_default();
    CategoryRule {
        name: name.into(),
        description: raw.description.clone().unwrap_or_default(),
        selection: tools::check(check, &path.key("tools"), &tools, &own, &others),
        servers: own,
        skill: raw.skill.clone(),
        origin: ConfigOrigin::File,
    }
}

/// Maximum number of server names in a hint.
const LISTED_MAX: usize = 50;

fn own_servers(
    check: &mut ConfigChecker<'_, '_>,
    path: &ConfigPath<'_>,
    raw: &CategoryFile,
    servers: &ServerNames<'_>,
) -> Vec<Arc<str>> {
    let mut own: Vec<Arc<str>> = Vec::new();
    let list = path.key("server");
    for (index, name) in raw.server.iter().flat_map(OneOrMany::as_slice).enumerate() {
        let item = list.index(index);
        let path = if matches!(raw.server, Some(OneOrMany::Many(_))) { &item } else { &list };
        match servers.all.iter().find(|server| &***server == name) {
            None => {
                // A hint that is not shown need not be computed.
                let hint = (!check.report.is_full()).then(|| {
                    let known = servers.all.iter().map(|server| &**server);
                    suggestion::did_you_mean(name, known).unwrap_or_else(|| listed(&servers.all))
                });
                check.report.error(path, format!("there is no server `{name}` in `mcpServers`"), hint);
            }
            Some(server) if own.contains(server) => {}
            Some(server) => {
                if servers.disabled.contains(server) {
                    check.report.warning(path, format!("the server `{name}` is disabled"));
                }
                own.push(Arc::clone(server));
            }
        }
    }
    if raw.server.as_ref().is_none_or(|server| server.as_slice().is_empty()) {
        check.report.missing(path, "has no `server`", Some(listed(&servers.all)));
    }
    own
}

fn listed(servers: &[Arc<str>]) -> String {
    if servers.is_empty() {
        return "Define it in `mcpServers` first.".into();
    }
    let names: Vec<String> = servers.iter().take(LISTED_MAX).map(|name| format!("`{name}`")).collect();
    let more = if servers.len() > LISTED_MAX { ", …" } else { "" };
    format!("Available servers: {}{more}.", names.join(", "))
}

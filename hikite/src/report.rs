//! Start-up messages: counts of the config, unresolved names, and client snippets.

use std::sync::Arc;

use hikite_core::source::SourceState;
use hikite_core::view::View;
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::runtime::Runtime;

/// Logs the counts once every server has answered or failed.
pub(crate) fn log_when_listed(runtime: &Arc<Runtime>, stopping: &CancellationToken) {
    let (shared, stopping) = (Arc::clone(runtime), stopping.clone());
    runtime.tasks.spawn(async move {
        let limit = shared.limits.start_timeout;
        if stopping.run_until_cancelled(shared.gateway.lookup().wait_for_lists(limit, |_| true)).await.is_some() {
            catalog(&shared.gateway.catalogs().owner_view());
        }
    });
}

/// Logs the number of categories, tools, disabled and unresolved ones, and a warning for every unresolved name.
fn catalog(view: &View) {
    let tools: usize = view.modules().iter().map(|module| module.tools.len()).sum();
    let enabled = view.enabled_tools().count();
    let mut unresolved = 0;
    for module in view.modules() {
        for name in &module.unresolved {
            unresolved += 1;
            tracing::warn!("`mcpServers.{}.tools` contains `{name}`, which the server does not have", module.name);
        }
    }
    for category in view.categories() {
        for name in &category.unresolved {
            unresolved += 1;
            let servers = category.rule.servers.join(", ");
            tracing::warn!("the category `{}` contains `{name}`, which {servers} does not have", category.rule.name);
        }
        if !category.missing.is_empty() {
            let servers: Vec<&str> = category.missing.iter().map(|missing| &*missing.server).collect();
            let servers = servers.join(", ");
            tracing::warn!("the category `{}` is waiting for the tools of {servers}", category.rule.name);
        }
    }
    let CatalogCounts { modules, usable, unconnected, .. } = CatalogCounts::of(view);
    tracing::info!(
        servers = modules,
        usable,
        unconnected,
        categories = view.categories().len(),
        tools,
        disabled = tools - enabled,
        unresolved,
        "the catalog is built"
    );
}

/// Counts of servers and services for a person.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct CatalogCounts {
    pub(crate) modules: usize,
    /// Those whose tools can be called.
    pub(crate) usable: usize,
    /// Those that need an account first.
    pub(crate) unconnected: usize,
    /// Enabled tools of the usable ones.
    pub(crate) tools: usize,
}

impl CatalogCounts {
    pub(crate) fn of(view: &View) -> Self {
        let mut counts = Self { modules: view.modules().len(), ..Self::default() };
        for module in view.modules() {
            if matches!(module.source.state(), SourceState::NeedsLogin { .. }) {
                counts.unconnected += 1;
            } else if module.listing.is_some() {
                counts.usable += 1;
                counts.tools += module.tools.iter().filter(|tool| tool.is_enabled()).count();
            }
        }
        counts
    }
}

/// Connection snippets for HTTP clients.
#[derive(Debug)]
pub(crate) struct Snippets {
    /// URL at which clients reach hikite.
    pub(crate) url: String,
    pub(crate) token: String,
}

impl Snippets {
    pub(crate) fn text(&self) -> String {
        let url = format!("{}/mcp", self.url);
        let bearer = format!("Bearer {}", self.token);
        let mut entry = json!({ "url": url, "headers": { "Authorization": bearer } });
        let cursor = json!({ "mcpServers": { "hikite": entry } });
        entry["type"] = "http".into();
        let code = json!({ "servers": { "hikite": entry } });
        format!(
            "\nConnect a client:\n\n\
             \x20 Claude Code\n    claude mcp add --transport http hikite {url} --header \"Authorization: {bearer}\"\n\n\
             \x20 Cursor (.cursor/mcp.json)\n    {cursor}\n\n\
             \x20 VS Code (.vscode/mcp.json)\n    {code}\n\n\
             \x20 Codex (~/.codex/config.toml)\n    [mcp_servers.hikite]\n    url = \"{url}\"\n    \
             http_headers = {{ \"Authorization\" = \"{bearer}\" }}\n"
        )
    }
}

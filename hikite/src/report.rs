//! What start-up tells: the counts of the config, names that no server has, and how a client connects.

use std::fmt::Write;
use std::net::SocketAddr;
use std::sync::Arc;

use hikite_core::view::View;
use tokio_util::sync::CancellationToken;

use crate::house::House;

/// Tells the counts once every server has answered or failed.
pub(crate) fn when_known(house: &Arc<House>, stopping: &CancellationToken) {
    let (told, stopping) = (Arc::clone(house), stopping.clone());
    house.tasks.spawn(async move {
        let limit = told.limits.start_timeout;
        if stopping.run_until_cancelled(told.gateway.wait_for_lists(limit, |_| true)).await.is_some() {
            catalog(&told.gateway.view());
        }
    });
}

/// Categories, tools, disabled and unresolved ones; every unresolved name is a warning of its own.
fn catalog(view: &View) {
    let tools: usize = view.modules().iter().map(|module| module.tools.len()).sum();
    let enabled = view.enabled_tools().count();
    let mut unresolved = 0;
    for module in view.modules() {
        for name in &module.unresolved {
            unresolved += 1;
            tracing::warn!(
                "`mcpServers.{}.tools` names `{name}`, which the server does not have",
                module.name
            );
        }
    }
    for category in view.categories() {
        for name in &category.unresolved {
            unresolved += 1;
            let servers = category.rule.servers.join(", ");
            tracing::warn!(
                "the category `{}` names `{name}`, which {servers} does not have",
                category.rule.name
            );
        }
        if !category.missing_servers.is_empty() {
            let servers = category.missing_servers.join(", ");
            tracing::warn!("the category `{}` waits for the tools of {servers}", category.rule.name);
        }
    }
    let categories = view.categories().len();
    let known = view.modules().iter().filter(|module| module.listing.is_some()).count();
    tracing::info!(
        servers = view.modules().len(),
        answering = known,
        categories,
        tools,
        disabled = tools - enabled,
        unresolved,
        "the catalog is built"
    );
}

/// Ready snippets for the usual clients.
pub(crate) fn snippets(address: SocketAddr, token: Option<&str>) -> String {
    let url = format!("http://{address}/mcp");
    let mut text = String::from("\nConnect a client:\n\n");
    let header = token.map(|token| format!("Authorization: Bearer {token}"));
    let flag = header.as_ref().map(|header| format!(" --header \"{header}\"")).unwrap_or_default();
    let _ = writeln!(text, "  Claude Code\n    claude mcp add --transport http hikite {url}{flag}\n");
    let headers = token
        .map(|token| format!(", \"headers\": {{ \"Authorization\": \"Bearer {token}\" }}"))
        .unwrap_or_default();
    let _ = writeln!(
        text,
        "  Cursor (.cursor/mcp.json)\n    {{ \"mcpServers\": {{ \"hikite\": {{ \"url\": \"{url}\"{headers} }} }} }}\n"
    );
    let _ = writeln!(
        text,
        "  VS Code (.vscode/mcp.json)\n    {{ \"servers\": {{ \"hikite\": {{ \"type\": \"http\", \"url\": \"{url}\"{headers} }} }} }}\n"
    );
    let codex = token
        .map(|token| format!("\n    http_headers = {{ \"Authorization\" = \"Bearer {token}\" }}"))
        .unwrap_or_default();
    let _ = writeln!(
        text,
        "  Codex (~/.codex/config.toml)\n    [mcp_servers.hikite]\n    url = \"{url}\"{codex}\n"
    );
    let _ = writeln!(
        text,
        "  Claude Desktop (claude_desktop_config.json)\n    {{ \"mcpServers\": {{ \"hikite\": {{ \"command\": \"hikite\", \"args\": [\"stdio\"] }} }} }}"
    );
    text
}

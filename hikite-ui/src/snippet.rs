//! Instructions to connect well-known clients.

use serde_json::json;

use crate::words::translatable;

#[derive(Clone, Debug)]
pub(crate) struct Snippet {
    pub(crate) client: &'static str,
    /// Instruction in English; translated when shown.
    pub(crate) how: &'static str,
    pub(crate) text: String,
}

/// Returns the instructions for a server at `base`.
pub(crate) fn snippets(base: &str) -> Vec<Snippet> {
    let url = format!("{base}/mcp");
    let pretty = |value: serde_json::Value| serde_json::to_string_pretty(&value).unwrap_or_default();
    vec![
        Snippet {
            client: "Claude Code",
            how: translatable("Run this in a terminal, then run `/mcp` in Claude Code to log in."),
            text: format!("claude mcp add --transport http hikite {url}"),
        },
        Snippet {
            client: "Claude Desktop",
            how: translatable(
                "Add this to claude_desktop_config.json (Settings → Developer → Edit Config), then restart Claude Desktop.",
            ),
            text: pretty(
                json!({ "mcpServers": { "hikite": { "command": "npx", "args": ["-y", "mcp-remote", url] } } }),
            ),
        },
        Snippet {
            client: "Cursor",
            how: translatable("Add this to ~/.cursor/mcp.json. Cursor then asks you to log in."),
            text: pretty(json!({ "mcpServers": { "hikite": { "url": url } } })),
        },
        Snippet {
            client: "VS Code",
            how: translatable("Add this to .vscode/mcp.json, or run “MCP: Add Server”."),
            text: pretty(json!({ "servers": { "hikite": { "type": "http", "url": url } } })),
        },
        Snippet {
            client: "Codex",
            how: translatable("Run both commands in a terminal."),
            text: format!("codex mcp add hikite --url {url}\ncodex mcp login hikite"),
        },
        Snippet {
            client: "ChatGPT",
            how: translatable(
                "Choose Settings → Apps & Connectors → Create, then enter this URL and select OAuth. The server must be reachable over HTTPS.",
            ),
            text: url,
        },
    ]
}

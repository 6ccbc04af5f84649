//! Instructions to connect well-known clients.

use serde_json::json;

#[derive(Clone, Debug)]
pub(crate) struct Snippet {
    pub(crate) client: &'static str,
    /// Instruction in English; translated when shown.
    pub(crate) how: &'static str,
    pub(crate) text: String,
}

/// Marks a text that is translated when shown.
#[expect(non_snake_case, reason = "a mark for the test that looks for texts, not a function")]
const fn W(english: &'static str) -> &'static str {
    english
}

/// Returns the instructions for a server at `base`.
pub(crate) fn snippets(base: &str) -> Vec<Snippet> {
    let url = format!("{base}/mcp");
    let pretty = |value: serde_json::Value| serde_json::to_string_pretty(&value).unwrap_or_default();
    vec![
        Snippet {
            client: "Claude Code",
            how: W("Run this in a terminal, then `/mcp` in Claude Code to log in."),
            text: format!("claude mcp add --transport http hikite {url}"),
        },
        Snippet {
            client: "Claude Desktop",
            how: W("Put this into claude_desktop_config.json (Settings → Developer → Edit Config) and start it anew."),
            text: pretty(
                json!({ "mcpServers": { "hikite": { "command": "npx", "args": ["-y", "mcp-remote", url] } } }),
            ),
        },
        Snippet {
            client: "Cursor",
            how: W("Put this into ~/.cursor/mcp.json; Cursor then offers to log in."),
            text: pretty(json!({ "mcpServers": { "hikite": { "url": url } } })),
        },
        Snippet {
            client: "VS Code",
            how: W("Put this into .vscode/mcp.json, or run “MCP: Add Server”."),
            text: pretty(json!({ "servers": { "hikite": { "type": "http", "url": url } } })),
        },
        Snippet {
            client: "Codex",
            how: W("Run both in a terminal."),
            text: format!("codex mcp add hikite --url {url}\ncodex mcp login hikite"),
        },
        Snippet {
            client: "ChatGPT",
            how: W(
                "Settings → Apps & Connectors → Create, with this address and OAuth. It must be reachable over https.",
            ),
            text: url,
        },
    ]
}

//! The MCP clients that hikite connects and imports from: one table of their files, formats and ways to log in. The
//! sources of each row are in docs/clients.md. Files are found here, but neither read nor written.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::edit::toml;
use super::problem::Problems;
use super::{edit, jsonc};

/// Name of hikite's own entry in the file of a client.
pub const ENTRY: &str = "hikite";

#[derive(Debug)]
pub struct McpClient {
    /// Name on the command line.
    pub name: &'static str,
    pub title: &'static str,
    /// Config files; the first is the user's own, which `connect` writes. The others are only imported.
    files: &'static [FileLocation],
    pub format: ClientFormat,
    /// Path of the object that holds the servers.
    pub servers: &'static [&'static str],
    pub transport: ClientTransport,
    /// The next step for the user after the file is written.
    pub next: &'static str,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientFormat {
    /// JSON, with comments where the client allows them.
    Json,
    Toml,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientTransport {
    Http {
        /// Value of the member `type`, where the client needs one.
        kind: Option<&'static str>,
        /// Names of the members for the URL and for the headers.
        url: &'static str,
        headers: &'static str,
        /// `true` if the client logs in by OAuth; otherwise it needs a token.
        oauth: bool,
    },
    /// The client only starts programs.
    Stdio,
    /// Not a client for one entry, but a file that can be imported.
    ImportOnly,
}

/// Location of a file.
#[derive(Debug)]
enum FileLocation {
    /// In the home folder.
    Home(&'static str),
    /// In the folder that the variable names, or else in this folder of the home folder.
    Variable(&'static str, &'static str, &'static str),
    /// In the folder for the settings of desktop programs.
    Settings(&'static str),
    /// In `~/.config`, on macOS too.
    Config(&'static str),
    /// In the working directory.
    Folder(&'static str),
}

use ClientFormat::{Json, Toml};
use ClientTransport::{Http, ImportOnly, Stdio};
use FileLocation::{Config, Folder, Home, Settings, Variable};

const MCP_SERVERS: &[&str] = &["mcpServers"];

pub const CLIENTS: &[McpClient] = &[
    McpClient {
        name: "claude-code",
        title: "Claude Code",
        files: &[Variable("CLAUDE_CONFIG_DIR", "", ".claude.json"), Folder(".mcp.json")],
        format: Json,
        servers: MCP_SERVERS,
        transport: Http { kind: Some("http"), url: "url", headers: "headers", oauth: true },
        next: "Log in with `claude mcp login hikite`, or with `/mcp` in a session.",
    },
    McpClient {
        name: "claude-desktop",
        title: "Claude Desktop",
        files: &[Settings("Claude/claude_desktop_config.json")],
        format: Json,
        servers: MCP_SERVERS,
        transport: Stdio,
        next: "Quit Claude Desktop and start it again.",
    },
    McpClient {
        name: "cursor",
        title: "Cursor",
        files: &[Home(".cursor/mcp.json"), Folder(".cursor/mcp.json")],
        format: Json,
        servers: MCP_SERVERS,
        transport: Http { kind: None, url: "url", headers: "headers", oauth: true },
        next: "Restart Cursor and log in where its settings list the MCP server.",
    },
    McpClient {
        name: "vscode",
        title: "VS Code",
        files: &[Settings("Code/User/mcp.json"), Settings("Code/User/settings.json"), Folder(".vscode/mcp.json")],
        format: Json,
        servers: &["servers"],
        transport: Http { kind: Some("http"), url: "url", headers: "headers", oauth: true },
        next: "Run `MCP: List Servers` in VS Code, start `hikite` and log in.",
    },
    McpClient {
        name: "codex",
        title: "Codex",
        files: &[Variable("CODEX_HOME", ".codex", "config.toml"), Folder(".codex/config.toml")],
        format: Toml,
        servers: &["mcp_servers"],
        transport: Http { kind: None, url: "url", headers: "http_headers", oauth: true },
        next: "Log in with `codex mcp login hikite`.",
    },
    McpClient {
        name: "windsurf",
        title: "Windsurf",
        files: &[Home(".codeium/windsurf/mcp_config.json")],
        format: Json,
        servers: MCP_SERVERS,
        transport: Http { kind: None, url: "serverUrl", headers: "headers", oauth: false },
        next: "Refresh the list of MCP servers in Windsurf.",
    },
    McpClient {
        name: "zed",
        title: "Zed",
        files: &[Config("zed/settings.json"), Folder(".zed/settings.json")],
        format: Json,
        servers: &["context_servers"],
        transport: Http { kind: None, url: "url", headers: "headers", oauth: true },
        next: "Zed reads the file at once and asks you to log in.",
    },
    McpClient {
        name: "gemini-cli",
        title: "Gemini CLI",
        files: &[Home(".gemini/settings.json"), Folder(".gemini/settings.json")],
        format: Json,
        servers: MCP_SERVERS,
        transport: Http { kind: None, url: "httpUrl", headers: "headers", oauth: true },
        next: "Log in with `/mcp auth hikite` in a session.",
    },
    McpClient {
        name: "modular-mcp",
        title: "modular-mcp",
        files: &[Folder("modular-mcp.json")],
        format: Json,
        servers: MCP_SERVERS,
        transport: ImportOnly,
        next: "",
    },
];

impl PartialEq for McpClient {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl McpClient {
    pub fn named(name: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.name == name)
    }

    pub fn can_connect(&self) -> bool {
        self.transport != ImportOnly
    }

    /// Returns the config files, the user's own first; they need not exist. `os` is `std::env::consts::OS`. `None` if
    /// there is no home folder.
    pub fn files(&self, env: &dyn Fn(&str) -> Option<String>, os: &str) -> Option<Vec<PathBuf>> {
        let home = PathBuf::from(env("HOME")?);
        let folder = |variable: &str| env(variable).map(PathBuf::from).filter(|folder| folder.is_absolute());
        let config = || folder("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let path = |file: &FileLocation| match *file {
            Home(path) => home.join(path),
            Variable(variable, below_home, path) => {
                folder(variable).unwrap_or_else(|| home.join(below_home)).join(path)
            }
            Settings(path) if os == "macos" => home.join("Library/Application Support").join(path),
            Config(path) if os == "macos" => home.join(".config").join(path),
            Settings(path) | Config(path) => config().join(path),
            Folder(path) => path.into(),
        };
        Some(self.files.iter().map(path).collect())
    }

    /// Returns the path of an entry in the client's file.
    pub fn entry_path<'a>(&'a self, name: &'a str) -> Vec<&'a str> {
        self.servers.iter().copied().chain([name]).collect()
    }

    /// Returns the entry for a URL, with an `Authorization` header if there is a token. `None` for a client that only
    /// starts programs.
    pub fn url_entry(&self, address: &str, token: Option<&str>) -> Option<Value> {
        let Http { kind, url, headers, .. } = self.transport else { return None };
        let mut entry = json!({});
        if let Some(kind) = kind {
            entry["type"] = kind.into();
        }
        entry[url] = address.into();
        if let Some(token) = token {
            entry[headers] = json!({ "Authorization": format!("Bearer {token}") });
        }
        Some(entry)
    }

    /// Returns the bearer token of an entry.
    pub fn token_of<'a>(&self, entry: &'a Value) -> Option<&'a str> {
        let Http { headers, .. } = self.transport else { return None };
        entry.get(headers)?.get("Authorization")?.as_str()?.strip_prefix("Bearer ")
    }
}

impl ClientFormat {
    /// Returns the format of a file whose client is not known.
    pub fn of(file: &Path) -> Self {
        if file.extension().is_some_and(|extension| extension == "toml") { Toml } else { Json }
    }

    /// Parses a text into plain JSON; a blank one is an empty object. `file` names it in messages.
    pub fn parse(self, file: &str, text: &str) -> Result<Value, Problems> {
        if text.trim_start_matches('\u{feff}').trim().is_empty() {
            return Ok(json!({}));
        }
        match self {
            Json => jsonc::parse(text).map(|tree| tree.json()),
            Toml => toml::parse(text),
        }
        .map_err(|error| Problems::syntax(file, text, &error))
    }

    /// Returns the text with the member at `path` set; everything else stays.
    pub fn set(self, file: &str, text: &str, path: &[&str], value: &Value) -> Result<String, Problems> {
        match self {
            Json => edit::set(text, path, value),
            Toml => toml::set(text, path, value),
        }
        .map_err(|error| Problems::syntax(file, text, &error))
    }

    /// Returns the text without the member at `path`; everything else stays.
    pub fn remove(self, file: &str, text: &str, path: &[&str]) -> Result<String, Problems> {
        match self {
            Json => edit::remove(text, path),
            Toml => toml::remove(text, path),
        }
        .map_err(|error| Problems::syntax(file, text, &error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, os: &str, variables: &[(&str, &str)], expected: &str) {
        let env = |name: &str| {
            let found = variables.iter().chain(&[("HOME", "/h")]).find(|(variable, _)| *variable == name);
            found.map(|(_, value)| (*value).to_owned())
        };
        let files = McpClient::named(name).expect(name).files(&env, os).expect("a home");
        assert_eq!(files[0], Path::new(expected));
    }

    #[test]
    fn each_system_has_its_own_folders() {
        check("claude-desktop", "linux", &[], "/h/.config/Claude/claude_desktop_config.json");
        check("claude-desktop", "macos", &[], "/h/Library/Application Support/Claude/claude_desktop_config.json");
        check("vscode", "linux", &[("XDG_CONFIG_HOME", "/c")], "/c/Code/User/mcp.json");
        check("zed", "linux", &[("XDG_CONFIG_HOME", "/c")], "/c/zed/settings.json");
        check("zed", "macos", &[], "/h/.config/zed/settings.json");
        check("claude-code", "linux", &[], "/h/.claude.json");
        check("claude-code", "linux", &[("CLAUDE_CONFIG_DIR", "/c")], "/c/.claude.json");
        check("codex", "macos", &[], "/h/.codex/config.toml");
        check("codex", "linux", &[("CODEX_HOME", "/c")], "/c/config.toml");
    }

    #[test]
    fn the_token_of_an_entry_can_be_read_back() {
        for client in CLIENTS {
            let Some(entry) = client.url_entry("http://x/mcp", Some("secret")) else { continue };
            assert_eq!(client.token_of(&entry), Some("secret"), "{entry}");
            assert_eq!(client.token_of(&client.url_entry("http://x/mcp", None).expect("an entry")), None);
        }
    }
}

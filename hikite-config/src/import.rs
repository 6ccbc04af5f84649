//! Imports the servers of other clients: finds them in the client's file, converts them, and notes what has no
//! counterpart. It reads and writes nothing but the given text.

use serde_json::{Map, Value};

use super::problem::Problems;
use super::upstream::is_meaningful;
use super::{file, jsonc, variable};

/// The client that a file belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientKind {
    ClaudeDesktop,
    ClaudeCode,
    Cursor,
    VsCode,
    Windsurf,
    ModularMcp,
}

#[derive(Clone, Debug, PartialEq)]
pub struct ImportedServers {
    pub kind: ClientKind,
    /// Servers as entries of `mcpServers`.
    pub servers: Map<String, Value>,
    /// Notes on what was changed, renamed or left out.
    pub notes: Vec<String>,
}

const NAMES: &[(ClientKind, &str, &str)] = &[
    (ClientKind::ClaudeDesktop, "claude-desktop", "Claude Desktop"),
    (ClientKind::ClaudeCode, "claude-code", "Claude Code"),
    (ClientKind::Cursor, "cursor", "Cursor"),
    (ClientKind::VsCode, "vscode", "VS Code"),
    (ClientKind::Windsurf, "windsurf", "Windsurf"),
    (ClientKind::ModularMcp, "modular-mcp", "modular-mcp"),
];

impl ClientKind {
    pub fn all() -> impl Iterator<Item = Self> {
        NAMES.iter().map(|(kind, ..)| *kind)
    }

    /// Returns the client's name on the command line.
    pub fn word(self) -> &'static str {
        NAMES.iter().find(|(kind, ..)| *kind == self).map_or("", |(_, word, _)| word)
    }

    pub fn title(self) -> &'static str {
        NAMES.iter().find(|(kind, ..)| *kind == self).map_or("", |(.., title)| title)
    }

    pub fn parse(word: &str) -> Option<Self> {
        NAMES.iter().find(|(_, name, _)| *name == word).map(|(kind, ..)| *kind)
    }
}

/// Imports the servers of a text. `file` names it in messages; without a kind, the client is detected.
pub fn import(kind: Option<ClientKind>, file: &str, text: &str) -> Result<ImportedServers, Problems> {
    let tree = jsonc::parse(text).map_err(|error| Problems::syntax(file, text, &error))?;
    let root = tree.json();
    let blocks = blocks(&root);
    if blocks.is_empty() {
        let hint = "Servers are in `mcpServers`, or in `servers` for VS Code.";
        return Err(Problems::whole(file, "the file contains no MCP servers", Some(hint)));
    }
    let kind = kind.unwrap_or_else(|| detect(&root, &blocks));
    let mut imported = ImportedServers { kind, servers: Map::new(), notes: Vec::new() };
    for block in blocks {
        for (name, raw) in block.servers {
            imported.take(&root, block.folder, name, raw);
        }
    }
    Ok(imported)
}

/// A group of servers in a client's file.
#[derive(Clone, Copy)]
struct ServerBlock<'a> {
    /// Project folder of the group, in Claude Code.
    folder: Option<&'a str>,
    servers: &'a Map<String, Value>,
}

fn blocks(root: &Value) -> Vec<ServerBlock<'_>> {
    let places = ["/mcpServers", "/servers", "/mcp/servers", "/mcp.servers", "/context_servers", "/mcp_servers"];
    let direct = places.into_iter().map(|place| (None, root.pointer(place)));
    let projects = root.get("projects").and_then(Value::as_object).into_iter().flatten();
    let projects = projects.map(|(folder, project)| (Some(folder.as_str()), project.get("mcpServers")));
    direct
        .chain(projects)
        .filter_map(|(folder, servers)| Some(ServerBlock { folder, servers: servers?.as_object()? }))
        .filter(|block| !block.servers.is_empty())
        .collect()
}

fn detect(root: &Value, blocks: &[ServerBlock<'_>]) -> ClientKind {
    let any = |key: &str| blocks.iter().flat_map(|block| block.servers.values()).any(|s| s.get(key).is_some());
    let signs = [
        (ClientKind::ClaudeCode, root.get("projects").is_some()),
        (ClientKind::VsCode, root.get("mcpServers").is_none()),
        (ClientKind::Windsurf, any("serverUrl")),
        (ClientKind::Cursor, any("envFile")),
        (ClientKind::ModularMcp, any("description")),
        (ClientKind::ClaudeCode, any("type")),
    ];
    signs.into_iter().find(|(_, seen)| *seen).map_or(ClientKind::ClaudeDesktop, |(kind, _)| kind)
}

impl ImportedServers {
    fn take(&mut self, root: &Value, folder: Option<&str>, written: &str, raw: &Value) {
        let Some(raw) = raw.as_object() else {
            return self.notes.push(format!("{written}: skipped, it is not an object"));
        };
        let Some(server) = translate(root, written, raw, &mut self.notes) else { return };
        let mut name = written.replace(':', "-");
        if self.servers.get(&name).is_some_and(|other| *other != server) {
            // Two projects of Claude Code may each have a server of this name.
            let folder = folder.and_then(|folder| folder.rsplit(['/', '\\']).find(|part| !part.is_empty()));
            name = free_name(&self.servers, &format!("{name}-{}", folder.unwrap_or("2")));
        }
        if name != written {
            self.notes.push(format!("{written}: imported as `{name}`"));
        }
        self.servers.insert(name, server);
    }
}

fn free_name(taken: &Map<String, Value>, wanted: &str) -> String {
    let numbered = (2..).map(|number| format!("{wanted}-{number}"));
    std::iter::once(wanted.to_owned()).chain(numbered).find(|name| !taken.contains_key(name)).unwrap_or_default()
}

/// Converts one server; `None` if its transport is not supported.
fn translate(root: &Value, name: &str, raw: &Map<String, Value>, notes: &mut Vec<String>) -> Option<Value> {
    let schema = file::schema();
    let known = schema.pointer("/$defs/UpstreamFile/properties").and_then(Value::as_object);
    let mut server = Map::new();
    let mut tools = Map::new();
    for (key, value) in raw.iter().filter(|(_, value)| !value.is_null()) {
        match key.as_str() {
            "type" | "transport" | "transportType" => match value.as_str() {
                Some("sse") => _ = server.insert("type".into(), "sse".into()),
                Some("stdio" | "local" | "http" | "streamable-http" | "streamableHttp") => {}
                _ => {
                    notes.push(format!("{name}: skipped, its {key} {value} is not supported"));
                    return None;
                }
            },
            "url" | "serverUrl" | "httpUrl" => _ = server.insert("url".into(), value.clone()),
            "disabledTools" | "excludeTools" => _ = tools.insert("excludeNames".into(), value.clone()),
            "includeTools" => _ = tools.insert("includeNames".into(), value.clone()),
            "envFile" => {
                notes.push(format!("{name}: `envFile` {value} is not read; put its variables in `env`"));
            }
            "autoApprove" | "alwaysAllow" | "trust" | "gallery" | "note" | "icon" => {
                let said = is_meaningful(value).then(|| format!("{name}: `{key}` was left out"));
                notes.extend(said);
            }
            _ if known.is_some_and(|known| known.contains_key(key)) => {
                server.insert(key.clone(), value.clone());
            }
            _ => notes.push(format!("{name}: `{key}` was left out, it has no meaning here")),
        }
    }
    if !tools.is_empty() && !server.contains_key("tools") {
        server.insert("tools".into(), tools.into());
    }
    let mut server = Value::Object(server);
    variable::rewrite(&mut server, &mut |note: String| notes.push(format!("{name}: {note}")), root);
    Some(server)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, kind: ClientKind, servers: &Value, notes: &[&str]) {
        let imported = import(None, "theirs.json", text).expect(text);
        assert_eq!(imported.kind, kind);
        assert_eq!(Value::Object(imported.servers), *servers);
        assert_eq!(imported.notes, notes);
    }

    #[test]
    fn claude_desktop_is_taken_as_it_is() {
        check(
            r#"{"globalShortcut": "", "mcpServers": {"fs": {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}}}}"#,
            ClientKind::ClaudeDesktop,
            &json!({"fs": {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}}}),
            &[],
        );
    }

    #[test]
    fn claude_code_has_servers_of_its_own_and_of_projects() {
        check(
            r#"{"mcpServers": {"a": {"type": "stdio", "command": "a"}}, "projects": {
                "/p/one": {"mcpServers": {"a": {"type": "http", "url": "https://${HOST:-x}/"}, "w": {"type": "ws", "url": "wss://x"}}},
                "/p/two": {"mcpServers": {"a": {"command": "a"}}, "history": []}}}"#,
            ClientKind::ClaudeCode,
            &json!({"a": {"command": "a"}, "a-one": {"url": "https://${HOST:-x}/"}}),
            &["a: imported as `a-one`", "w: skipped, its type \"ws\" is not supported"],
        );
    }

    #[test]
    fn cursor_names_variables_in_its_own_way() {
        check(
            r#"{"mcpServers": {"s:x": {"command": "${userHome}/s", "args": ["${workspaceFolder}", "${env:A}"], "envFile": ".env"}}}"#,
            ClientKind::Cursor,
            &json!({"s-x": {"command": "${HOME}/s", "args": ["${WORKSPACE_FOLDER}", "${A}"]}}),
            &[
                "s:x: `envFile` \".env\" is not read; put its variables in `env`",
                "s:x: `${workspaceFolder}` is now `${WORKSPACE_FOLDER}`; set it in the environment",
                "s:x: imported as `s-x`",
            ],
        );
    }

    #[test]
    fn inputs_of_vs_code_become_variables() {
        let block = r#"{"servers": {"gh": {"type": "http", "url": "https://x/mcp", "headers": {"Authorization": "Bearer ${input:gh-token}"}, "dev": {}}},
            "inputs": [{"id": "gh-token", "description": "GitHub token", "type": "promptString"}]}"#;
        let servers = json!({"gh": {"url": "https://x/mcp", "headers": {"Authorization": "Bearer ${GH_TOKEN}"}}});
        let left_out = "gh: `dev` was left out, it has no meaning here";
        let renamed = "gh: `${input:gh-token}` (GitHub token) is now `${GH_TOKEN}`; set it in the environment";
        check(block, ClientKind::VsCode, &servers, &[left_out, renamed]);
        check(&format!("{{\"editor.x\": 1, \"mcp\": {block}}}"), ClientKind::VsCode, &servers, &[left_out, renamed]);
    }

    #[test]
    fn windsurf_says_server_url_and_names_disabled_tools() {
        check(
            r#"{"mcpServers": {"w": {"serverUrl": "https://x/sse", "type": "sse", "disabledTools": ["t"], "disabled": true, "alwaysAllow": ["t"], "autoApprove": []}}}"#,
            ClientKind::Windsurf,
            &json!({"w": {"url": "https://x/sse", "type": "sse", "disabled": true, "tools": {"excludeNames": ["t"]}}}),
            &["w: `alwaysAllow` was left out"],
        );
    }

    #[test]
    fn modular_mcp_has_descriptions() {
        check(
            r#"{"mcpServers": {"m": {"description": "d", "type": "sse", "url": "https://x"}}}"#,
            ClientKind::ModularMcp,
            &json!({"m": {"description": "d", "type": "sse", "url": "https://x"}}),
            &[],
        );
    }

    #[test]
    fn a_file_without_servers_is_refused_with_a_hint() {
        let problems = import(None, "theirs.json", "{}").expect_err("empty").to_string();
        assert_eq!(
            problems,
            "error: theirs.json: the file contains no MCP servers\nhint: Servers are in `mcpServers`, or in `servers` for VS Code."
        );
        assert!(import(None, "theirs.json", "{").is_err());
    }
}

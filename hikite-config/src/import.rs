//! Imports the servers of other clients: finds them in the client's file, converts them, and notes what has no
//! counterpart. It reads and writes nothing but the given text.

use std::path::Path;

use serde_json::{Map, Value};

use super::client::{CLIENTS, ClientFormat, ENTRY, McpClient};
use super::problem::Problems;
use super::upstream::is_meaningful;
use super::{expand, file, variable};

#[derive(Clone, Debug, PartialEq)]
pub struct ImportedServers {
    pub client: &'static McpClient,
    /// Servers as entries of `mcpServers`.
    pub servers: Map<String, Value>,
    /// Paths of the imported servers in the client's file.
    pub taken: Vec<Vec<String>>,
    /// Notes on what was changed, renamed or left out.
    pub notes: Vec<String>,
}

/// Imports the servers of a text. `file` names it in messages; without a client, it is detected.
pub fn import(client: Option<&'static McpClient>, file: &str, text: &str) -> Result<ImportedServers, Problems> {
    let format = client.map_or_else(|| ClientFormat::of(Path::new(file)), |client| client.format);
    let root = format.parse(file, text)?;
    let blocks = blocks(&root);
    if blocks.is_empty() {
        let hint = "Servers are in `mcpServers`, or in `servers` for VS Code.";
        return Err(Problems::whole(file, "the file contains no MCP servers", Some(hint)));
    }
    let client = client.unwrap_or_else(|| detect(&root, &blocks));
    let mut imported = ImportedServers { client, servers: Map::new(), taken: Vec::new(), notes: Vec::new() };
    for block in blocks {
        for (name, raw) in block.servers {
            imported.take(&root, &block, name, raw);
        }
    }
    Ok(imported)
}

/// Returns the variables of a server that are not set, one for each text.
pub fn unset_variables(server: &Value, env: &dyn Fn(&str) -> Option<String>) -> Vec<String> {
    match server {
        Value::Array(items) => items.iter().flat_map(|item| unset_variables(item, env)).collect(),
        Value::Object(members) => members.values().flat_map(|member| unset_variables(member, env)).collect(),
        Value::String(text) => match expand::expand(text, env) {
            Err(expand::ExpandError::Unset(name)) => vec![name],
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// A group of servers in a client's file.
struct ServerBlock<'a> {
    path: Vec<&'a str>,
    /// Project folder of the group, in Claude Code.
    folder: Option<&'a str>,
    servers: &'a Map<String, Value>,
}

const PLACES: &[&[&str]] =
    &[&["mcpServers"], &["servers"], &["mcp", "servers"], &["mcp.servers"], &["context_servers"], &["mcp_servers"]];

fn blocks(root: &Value) -> Vec<ServerBlock<'_>> {
    let projects = root.get("projects").and_then(Value::as_object).into_iter().flatten();
    let projects = projects.map(|(folder, _)| (Some(folder.as_str()), vec!["projects", folder, "mcpServers"]));
    let direct = PLACES.iter().map(|path| (None, path.to_vec()));
    direct
        .chain(projects)
        .filter_map(|(folder, path)| {
            let servers = path.iter().try_fold(root, |value, name| value.get(name))?.as_object()?;
            Some(ServerBlock { path, folder, servers })
        })
        .filter(|block| !block.servers.is_empty())
        .collect()
}

fn detect(root: &Value, blocks: &[ServerBlock<'_>]) -> &'static McpClient {
    let any = |key: &str| blocks.iter().flat_map(|block| block.servers.values()).any(|s| s.get(key).is_some());
    let signs = [
        ("claude-code", root.get("projects").is_some()),
        ("codex", root.get("mcp_servers").is_some()),
        ("zed", root.get("context_servers").is_some()),
        ("vscode", root.get("mcpServers").is_none()),
        ("windsurf", any("serverUrl")),
        ("gemini-cli", any("httpUrl")),
        ("cursor", any("envFile")),
        ("modular-mcp", any("description")),
        ("claude-code", any("type")),
    ];
    let name = signs.into_iter().find(|(_, seen)| *seen).map_or("claude-desktop", |(name, _)| name);
    McpClient::named(name).unwrap_or(&CLIENTS[0])
}

impl ImportedServers {
    fn take(&mut self, root: &Value, block: &ServerBlock<'_>, written: &str, raw: &Value) {
        let Some(raw) = raw.as_object() else {
            return self.notes.push(format!("{written}: skipped, it is not an object"));
        };
        if written == ENTRY {
            return self.notes.push(format!("{written}: skipped, it is hikite itself"));
        }
        let Some(server) = translate(self.client, root, written, raw, &mut self.notes) else { return };
        let mut name = written.replace(':', "-");
        if self.servers.get(&name).is_some_and(|other| *other != server) {
            // Two projects of Claude Code may each have a server of this name.
            let folder = block.folder.and_then(|folder| folder.rsplit(['/', '\\']).find(|part| !part.is_empty()));
            name = free_name(&self.servers, &format!("{name}-{}", folder.unwrap_or("2")));
        }
        if name != written {
            self.notes.push(format!("{written}: imported as `{name}`"));
        }
        self.taken.push(block.path.iter().copied().chain([written]).map(str::to_owned).collect());
        self.servers.insert(name, server);
    }
}

fn free_name(taken: &Map<String, Value>, wanted: &str) -> String {
    let numbered = (2..).map(|number| format!("{wanted}-{number}"));
    std::iter::once(wanted.to_owned()).chain(numbered).find(|name| !taken.contains_key(name)).unwrap_or_default()
}

/// Converts one server; `None` if it cannot be one of ours.
fn translate(
    client: &McpClient,
    root: &Value,
    name: &str,
    raw: &Map<String, Value>,
    notes: &mut Vec<String>,
) -> Option<Value> {
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
            "disabledTools" | "excludeTools" | "disabled_tools" => {
                tools.insert("excludeNames".into(), value.clone());
            }
            "includeTools" | "enabled_tools" => _ = tools.insert("includeNames".into(), value.clone()),
            "enabled" => {
                if value == false {
                    server.insert("disabled".into(), true.into());
                }
            }
            // Codex
            "http_headers" | "env_http_headers" | "bearer_token_env_var" => add_headers(&mut server, key, value),
            // Zed's older form: `{"path": …, "args": […], "env": {…}}`.
            "command" if value.is_object() => {
                let parts = [("path", "command"), ("args", "args"), ("env", "env")];
                server.extend(parts.iter().filter_map(|(from, to)| Some(((*to).to_owned(), value.get(from)?.clone()))));
            }
            "envFile" => {
                notes.push(format!("{name}: `envFile` {value} is not read; put its variables in `env`"));
            }
            "source" if value == "custom" => {}
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
    if client.name == "zed" && !server.contains_key("command") && !server.contains_key("url") {
        notes.push(format!("{name}: skipped, an extension of Zed starts it"));
        return None;
    }
    if !tools.is_empty() && !server.contains_key("tools") {
        server.insert("tools".into(), tools.into());
    }
    let mut server = Value::Object(server);
    if client.name == "gemini-cli" {
        brace_variables(&mut server);
    }
    variable::rewrite(&mut server, &mut |note: String| notes.push(format!("{name}: {note}")), root);
    Some(server)
}

/// Adds the headers that Codex writes as values, as names of variables, or as the variable of a bearer token.
fn add_headers(server: &mut Map<String, Value>, key: &str, value: &Value) {
    let variable = |value: &Value| format!("${{{}}}", value.as_str().unwrap_or_default());
    let new: Map<String, Value> = match value {
        Value::Object(headers) if key == "http_headers" => headers.clone(),
        Value::Object(headers) => headers.iter().map(|(name, value)| (name.clone(), variable(value).into())).collect(),
        _ => Map::from_iter([("Authorization".to_owned(), format!("Bearer {}", variable(value)).into())]),
    };
    if let Value::Object(headers) = server.entry("headers").or_insert_with(|| Map::new().into()) {
        headers.extend(new);
    }
}

/// Rewrites the `$NAME` of Gemini CLI as `${NAME}`.
fn brace_variables(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(brace_variables),
        Value::Object(members) => members.values_mut().for_each(brace_variables),
        Value::String(text) => {
            let is_name = |name: &&str| {
                name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
            };
            if let Some(name) = text.strip_prefix('$').filter(is_name) {
                *text = format!("${{{name}}}");
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[track_caller]
    fn check(text: &str, client: &str, servers: &Value, notes: &[&str]) {
        let file = if client == "codex" { "config.toml" } else { "theirs.json" };
        let imported = import(None, file, text).expect(text);
        assert_eq!(imported.client.name, client);
        assert_eq!(Value::Object(imported.servers), *servers);
        assert_eq!(imported.notes, notes);
    }

    #[test]
    fn claude_desktop_is_taken_as_it_is() {
        check(
            r#"{"globalShortcut": "", "mcpServers": {"fs": {"command": "npx", "args": ["-y", "x"], "env": {"A": "b"}}}}"#,
            "claude-desktop",
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
            "claude-code",
            &json!({"a": {"command": "a"}, "a-one": {"url": "https://${HOST:-x}/"}}),
            &["a: imported as `a-one`", "w: skipped, its type \"ws\" is not supported"],
        );
    }

    #[test]
    fn cursor_names_variables_in_its_own_way() {
        check(
            r#"{"mcpServers": {"s:x": {"command": "${userHome}/s", "args": ["${workspaceFolder}", "${env:A}"], "envFile": ".env"}}}"#,
            "cursor",
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
        check(block, "vscode", &servers, &[left_out, renamed]);
        check(&format!("{{\"editor.x\": 1, \"mcp\": {block}}}"), "vscode", &servers, &[left_out, renamed]);
    }

    #[test]
    fn windsurf_says_server_url_and_names_disabled_tools() {
        check(
            r#"{"mcpServers": {"w": {"serverUrl": "https://x/sse", "type": "sse", "disabledTools": ["t"], "disabled": true, "alwaysAllow": ["t"], "autoApprove": []}}}"#,
            "windsurf",
            &json!({"w": {"url": "https://x/sse", "type": "sse", "disabled": true, "tools": {"excludeNames": ["t"]}}}),
            &["w: `alwaysAllow` was left out"],
        );
    }

    #[test]
    fn modular_mcp_has_descriptions() {
        check(
            r#"{"mcpServers": {"m": {"description": "d", "type": "sse", "url": "https://x"}}}"#,
            "modular-mcp",
            &json!({"m": {"description": "d", "type": "sse", "url": "https://x"}}),
            &[],
        );
    }

    #[test]
    fn codex_writes_toml_and_has_names_of_its_own() {
        check(
            "[mcp_servers.a]\ncommand = \"a\"\nargs = [\"-x\"]\nenabled = false\nstartup_timeout_sec = 5\n\n\
             [mcp_servers.b]\nurl = \"https://x\"\nbearer_token_env_var = \"T\"\nenabled_tools = [\"t\"]\n\
             http_headers = { A = \"b\" }\nenv_http_headers = { C = \"D\" }\n",
            "codex",
            &json!({
                "a": {"command": "a", "args": ["-x"], "disabled": true},
                "b": {
                    "url": "https://x",
                    "headers": {"Authorization": "Bearer ${T}", "A": "b", "C": "${D}"},
                    "tools": {"includeNames": ["t"]}
                }
            }),
            &["a: `startup_timeout_sec` was left out, it has no meaning here"],
        );
    }

    #[test]
    fn zed_has_programs_in_two_forms_and_extensions() {
        check(
            r#"{"context_servers": {"new": {"source": "custom", "command": "n", "args": ["1"]},
                "old": {"command": {"path": "o", "args": [], "env": {"A": "b"}}},
                "ext": {"settings": {"key": "k"}}, "hikite": {"url": "http://x"}}} // mine"#,
            "zed",
            &json!({"new": {"command": "n", "args": ["1"]}, "old": {"command": "o", "args": [], "env": {"A": "b"}}}),
            &[
                "ext: `settings` was left out, it has no meaning here",
                "ext: skipped, an extension of Zed starts it",
                "hikite: skipped, it is hikite itself",
            ],
        );
    }

    #[test]
    fn gemini_cli_writes_variables_without_braces() {
        check(
            r#"{"mcpServers": {"g": {"httpUrl": "https://x", "headers": {"X": "$KEY", "Y": "$5"}, "trust": true}}}"#,
            "gemini-cli",
            &json!({"g": {"url": "https://x", "headers": {"X": "${KEY}", "Y": "$5"}}}),
            &["g: `trust` was left out"],
        );
    }

    #[test]
    fn the_places_of_what_was_taken_are_known() {
        let text = r#"{"mcpServers": {"a": {"command": "a"}, "w": {"type": "ws"}}, "projects": {"/p": {"mcpServers": {"b": {"command": "b"}}}}}"#;
        let imported = import(None, "theirs.json", text).expect("imports");
        assert_eq!(imported.taken, [vec!["mcpServers", "a"], vec!["projects", "/p", "mcpServers", "b"]]);
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

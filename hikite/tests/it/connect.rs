//! `hikite connect`, `disconnect` and `import` with the config files of clients in a home folder, in the formats that
//! docs/clients.md cites.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use hikite_testkit::gateway::CommandOutput;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::PROGRAMS;

const URL: &str = "http://127.0.0.1:7421/mcp";

/// Name, file, its text before, and the part of the text that holds hikite afterwards.
struct ClientCase {
    name: &'static str,
    file: &'static str,
    before: &'static str,
    after: &'static str,
}

const CASES: &[ClientCase] = &[
    ClientCase {
        name: "claude-code",
        file: ".claude.json",
        before: "{\n  \"numStartups\": 3,\n  \"projects\": {\n    \"/p\": {\n      \"history\": []\n    }\n  }\n}",
        after: "\"mcpServers\": {\n    \"hikite\": {\n      \"type\": \"http\",\n      \"url\": \"http://127.0.0.1:7421/mcp\"\n    }\n  }\n}",
    },
    ClientCase {
        name: "cursor",
        file: ".cursor/mcp.json",
        before: "{\n\t\"mcpServers\": {\n\t\t\"fs\": { \"command\": \"npx\" }\n\t}\n}\n",
        after: "{ \"command\": \"npx\" },\n\t\t\"hikite\": {\n\t\t\t\"url\": \"http://127.0.0.1:7421/mcp\"\n\t\t}\n\t}\n}\n",
    },
    ClientCase {
        name: "vscode",
        file: ".config/Code/User/mcp.json",
        before: "{\r\n    // mine\r\n    \"servers\": {},\r\n    \"inputs\": [],\r\n}\r\n",
        after: "\"servers\": {\r\n        \"hikite\": {\r\n            \"type\": \"http\",\r\n            \"url\": \"http://127.0.0.1:7421/mcp\"\r\n        }\r\n    },\r\n",
    },
    ClientCase {
        name: "codex",
        file: ".codex/config.toml",
        before: "model = \"o3\" # mine\n\n[mcp_servers.a]\ncommand = \"x\"\n",
        after: "command = \"x\"\n\n[mcp_servers.hikite]\nurl = \"http://127.0.0.1:7421/mcp\"\n",
    },
    ClientCase {
        name: "zed",
        file: ".config/zed/settings.json",
        before: "// Zed settings\n{\n  \"theme\": \"One\", // dark\n}\n",
        after: "\"theme\": \"One\", // dark\n  \"context_servers\": {\n    \"hikite\": {\n      \"url\": \"http://127.0.0.1:7421/mcp\"\n    }\n  },\n}\n",
    },
    ClientCase {
        name: "gemini-cli",
        file: ".gemini/settings.json",
        before: "{\"theme\": \"GitHub\"}",
        after: "{\"theme\": \"GitHub\", \"mcpServers\": {\"hikite\":{\"httpUrl\":\"http://127.0.0.1:7421/mcp\"}}}",
    },
    ClientCase {
        name: "windsurf",
        file: ".codeium/windsurf/mcp_config.json",
        before: "{\n  \"mcpServers\": {}\n}\n",
        after: "\"serverUrl\": \"http://127.0.0.1:7421/mcp\",\n      \"headers\": {\n        \"Authorization\": \"Bearer ",
    },
    ClientCase {
        name: "claude-desktop",
        file: ".config/Claude/claude_desktop_config.json",
        before: "{}",
        after: "\"args\": [\n        \"stdio\",\n        \"--config\",\n        \"/",
    },
];

struct Home(TempDir);

impl Home {
    fn new() -> Self {
        let home = Self(tempfile::tempdir().expect("a folder"));
        let config = json!({ "server": { "listen": "127.0.0.1:7421" }, "modules": { "builtin": false } });
        home.put("hikite.json", &config.to_string());
        home
    }

    fn path(&self, file: &str) -> PathBuf {
        self.0.path().join(file)
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.path(file);
        fs::create_dir_all(path.parent().expect("a parent")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    fn text(&self, file: &str) -> String {
        fs::read_to_string(self.path(file)).expect(file)
    }

    fn mode(&self, file: &str) -> u32 {
        fs::metadata(self.path(file)).expect(file).permissions().mode() & 0o777
    }

    async fn run(&self, arguments: &[&str]) -> CommandOutput {
        PROGRAMS.run(self.0.path(), arguments).await
    }

    async fn done(&self, arguments: &[&str]) -> CommandOutput {
        let run = self.run(arguments).await;
        assert_eq!(run.code, Some(0), "{arguments:?}: {}", run.stderr);
        run
    }

    async fn tokens(&self) -> Vec<String> {
        let run = self.done(&["token", "list", "--json"]).await;
        let tokens: Value = serde_json::from_str(&run.stdout).expect("JSON");
        let names = tokens.as_array().expect("an array").iter().map(|token| token["name"].as_str().expect("a name"));
        names.map(str::to_owned).collect()
    }
}

/// Returns the files in the folder of a file.
fn beside(path: &Path) -> Vec<String> {
    let entries = fs::read_dir(path.parent().expect("a parent")).expect("a folder");
    let names = entries.map(|entry| entry.expect("an entry").file_name().into_string().expect("text"));
    let mut names: Vec<String> = names.filter(|name| name.contains("hikite-")).collect();
    names.sort();
    names
}

#[tokio::test]
async fn each_client_gets_an_entry_and_undo_restores_its_bytes() {
    for case in CASES {
        let home = Home::new();
        home.put(case.file, case.before);
        fs::set_permissions(home.path(case.file), fs::Permissions::from_mode(0o644)).expect("a mode");
        let run = home.done(&["connect", case.name, "--yes"]).await;
        let after = home.text(case.file);
        assert!(after.contains(case.after), "{}: {after}", case.name);
        assert!(run.stdout.starts_with("--- ") && run.stdout.contains("\n+"), "a diff: {}", run.stdout);
        assert_eq!(home.text(&format!("{}.hikite-backup", case.file)), case.before, "{}", case.name);
        let is_token = case.name == "windsurf";
        assert_eq!(home.mode(case.file), if is_token { 0o600 } else { 0o644 }, "{}", case.name);
        assert_eq!(home.tokens().await.len(), usize::from(is_token), "{}", case.name);
        let again = home.done(&["connect", case.name, "--yes"]).await;
        assert!(again.stderr.contains("is connected already") && again.stdout.is_empty(), "{}", again.stderr);
        assert_eq!(home.text(case.file), after, "connecting twice changes nothing");
        home.done(&["connect", case.name, "--undo", "--yes"]).await;
        assert_eq!(home.text(case.file), case.before, "{}", case.name);
        assert_eq!((home.mode(case.file), beside(&home.path(case.file))), (0o644, Vec::new()), "{}", case.name);
        assert!(home.tokens().await.is_empty(), "the token is revoked");
    }
}

#[tokio::test]
async fn a_missing_file_is_made_and_undo_removes_it() {
    for case in CASES {
        let home = Home::new();
        home.done(&["connect", case.name, "--yes"]).await;
        assert!(home.path(case.file).exists(), "{}", case.name);
        home.done(&["connect", case.name, "--undo", "--yes"]).await;
        assert!(!home.path(case.file).exists(), "{}", case.name);
        assert_eq!(beside(&home.path(case.file)), Vec::<String>::new(), "{}", case.name);
    }
}

#[tokio::test]
async fn disconnect_removes_the_entry_and_revokes_the_token() {
    let home = Home::new();
    let file = ".codeium/windsurf/mcp_config.json";
    home.put(file, "{\n  \"mcpServers\": {\n    \"a\": {}\n  }\n}\n");
    let run = home.done(&["connect", "windsurf", "--yes"]).await;
    let entry: Value = serde_json::from_str(&home.text(file)).expect("JSON");
    let secret = entry["mcpServers"]["hikite"]["headers"]["Authorization"].as_str().expect("a header");
    let secret = secret.strip_prefix("Bearer ").expect("a bearer token");
    assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret), "the secret is not shown");
    assert_eq!(home.tokens().await, ["windsurf"]);
    let run = home.done(&["connect", "windsurf", "--undo", "--dry-run"]).await;
    assert!(run.stdout.contains("Bearer ***") && !run.stdout.contains(secret), "{}", run.stdout);
    // The client changes its file in the meantime.
    home.put(file, &home.text(file).replace("\"a\": {}", "\"a\": {\"disabled\": true}"));
    let run = home.done(&["disconnect", "windsurf", "--yes"]).await;
    assert!(!run.stdout.contains(secret), "the secret is not shown");
    assert_eq!(home.text(file), "{\n  \"mcpServers\": {\n    \"a\": {\"disabled\": true}\n  }\n}\n");
    assert!(home.tokens().await.is_empty());
    let run = home.done(&["disconnect", "windsurf", "--yes"]).await;
    assert!(run.stderr.contains("is not connected"), "{}", run.stderr);
}

#[tokio::test]
async fn undo_keeps_what_the_client_wrote_since() {
    let home = Home::new();
    home.put(".claude.json", "{\n  \"numStartups\": 1\n}");
    home.done(&["connect", "claude-code", "--yes"]).await;
    home.put(".claude.json", &home.text(".claude.json").replace("\"numStartups\": 1", "\"numStartups\": 2"));
    let run = home.done(&["connect", "claude-code", "--undo", "--yes"]).await;
    assert!(run.stderr.contains("has changed since"), "{}", run.stderr);
    assert_eq!(home.text(".claude.json"), "{\n  \"numStartups\": 2,\n  \"mcpServers\": {\n  }\n}");
}

#[tokio::test]
async fn nothing_is_written_without_a_yes() {
    let home = Home::new();
    home.put(".cursor/mcp.json", "{}");
    let run = home.done(&["connect", "cursor", "--dry-run"]).await;
    assert!(run.stdout.contains(&format!("+      \"url\": \"{URL}\"")), "{}", run.stdout);
    let run = home.run(&["connect", "cursor"]).await;
    assert_eq!(run.code, Some(1));
    assert!(run.stderr.contains("hint: Use `--yes`"), "{}", run.stderr);
    assert_eq!((home.text(".cursor/mcp.json").as_str(), beside(&home.path(".cursor/mcp.json"))), ("{}", Vec::new()));
}

#[tokio::test]
async fn a_file_with_a_fault_is_refused_with_its_place() {
    let home = Home::new();
    home.put(".cursor/mcp.json", "{\n  \"mcpServers\": [\n}");
    let run = home.run(&["connect", "cursor", "--yes"]).await;
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("mcp.json:3:1: expected a value"), "{}", run.stderr);
    assert_eq!(home.text(".cursor/mcp.json"), "{\n  \"mcpServers\": [\n}");
}

#[tokio::test]
async fn a_client_can_be_given_a_token_or_the_program() {
    let home = Home::new();
    home.done(&["connect", "codex", "--token", "--yes"]).await;
    assert!(home.text(".codex/config.toml").contains("http_headers = { Authorization = \"Bearer "));
    assert_eq!((home.mode(".codex/config.toml"), home.tokens().await), (0o600, vec!["codex".to_owned()]));
    home.done(&["connect", "codex", "--stdio", "--yes"]).await;
    assert!(home.tokens().await.is_empty(), "the token that no file holds is revoked");
    let text = home.text(".codex/config.toml");
    let config = fs::canonicalize(home.path("hikite.json")).expect("a path");
    assert!(text.contains(&format!("\"--config\", \"{}\", \"--data\", \"/", config.display())), "{text}");
}

#[tokio::test]
async fn servers_of_all_clients_are_imported_and_one_fault_stops_nothing() {
    let home = Home::new();
    home.put(
        ".codex/config.toml",
        "[mcp_servers.toml]\nurl = \"https://t.example\"\nbearer_token_env_var = \"NOT_SET\"\n",
    );
    home.put(".gemini/settings.json", r#"{"mcpServers": {"gem": {"httpUrl": "https://g.example"}}}"#);
    home.put(".config/zed/settings.json", r#"{"context_servers": {"z": {"command": "z", "args": []}}} // mine"#);
    home.put(".claude.json", r#"{"mcpServers": {"gem": {"type": "http", "url": "https://other.example"}}}"#);
    home.put(".codeium/windsurf/mcp_config.json", "{");
    home.put(".config/Claude/claude_desktop_config.json", "{}");
    let run = home.done(&["import", "--write"]).await;
    for line in ["`${NOT_SET}` is not set", "mcp_config.json:1:2: the file ends", "imported as `gem-gemini-cli`"] {
        assert!(run.stderr.contains(line), "{line}: {}", run.stderr);
    }
    let config: Value = serde_json::from_str(&home.text("hikite.json")).expect("JSON");
    let names: Vec<&String> = config["mcpServers"].as_object().expect("servers").keys().collect();
    assert_eq!(names, ["gem", "toml", "z", "gem-gemini-cli"]);
    assert_eq!(config["mcpServers"]["toml"]["headers"]["Authorization"], "Bearer ${NOT_SET}");
    let one = home.done(&["import", "zed"]).await;
    assert!(one.stderr.contains("`z` is already in"), "{}", one.stderr);
}

#[tokio::test]
async fn hikite_takes_the_place_of_imported_servers_until_it_is_undone() {
    let home = Home::new();
    let before = "{\n  \"mcpServers\": {\n    \"a\": { \"command\": \"a\" },\n    \"w\": { \"type\": \"ws\", \"url\": \"ws://x\" }\n  },\n  \"projects\": { \"/p\": { \"mcpServers\": { \"b\": { \"command\": \"b\" } } } }\n}\n";
    home.put(".claude.json", before);
    home.done(&["import", "claude-code", "--replace", "--yes"]).await;
    let config: Value = serde_json::from_str(&home.text("hikite.json")).expect("JSON");
    assert_eq!(config["mcpServers"], json!({ "a": { "command": "a" }, "b": { "command": "b" } }));
    let theirs: Value = serde_json::from_str(&home.text(".claude.json")).expect("JSON");
    let hikite = json!({ "type": "http", "url": URL });
    assert_eq!(theirs["mcpServers"], json!({ "w": { "type": "ws", "url": "ws://x" }, "hikite": hikite }));
    assert_eq!(theirs["projects"], json!({ "/p": { "mcpServers": {} } }));
    home.done(&["import", "claude-code", "--undo", "--yes"]).await;
    assert_eq!(home.text(".claude.json"), before);
}

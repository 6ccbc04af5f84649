//! An invalid config is rejected as a whole, with the position and a fix for every problem.

use hikite_testkit::gateway::CommandOutput;
use serde_json::{Value, json};

use crate::{PROGRAMS, configured, http_fixture};

/// Runs a command on a config with this text. Messages show the folder as `DIR`.
async fn run(text: &str, arguments: &[&str]) -> CommandOutput {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("hikite.json"), text).expect("a file");
    let mut run = PROGRAMS.run(folder.path(), arguments).await;
    let path = folder.path().display().to_string();
    (run.stdout, run.stderr) = (run.stdout.replace(&path, "DIR"), run.stderr.replace(&path, "DIR"));
    run
}

/// Asserts that every command that needs the config rejects it with the same text and code.
async fn refused(text: &str, expected: &str) {
    for arguments in [&["config", "check"][..], &["serve"], &["stdio"], &["tools", "list"], &["config", "show"]] {
        let run = run(text, arguments).await;
        assert_eq!((run.code, run.stderr.as_str(), run.stdout.as_str()), (Some(2), expected, ""), "{arguments:?}");
    }
}

#[tokio::test]
async fn an_unknown_key_is_named_with_the_nearest_right_one() {
    let text = "{\n  \"mcpServers\": { \"a\": { \"description\": \"d\", \"comand\": \"x\", \"command\": \"y\" } },\n  \"categorys\": {}\n}";
    let expected = "error: DIR/hikite.json:2:46: mcpServers.a.comand: unknown key\nhint: Did you mean `command`?\n\
                    error: DIR/hikite.json:3:3: categorys: unknown key\nhint: Did you mean `categories`?\n";
    refused(text, expected).await;
}

#[tokio::test]
async fn a_category_of_an_unknown_server_is_refused() {
    let text = r#"{ "mcpServers": { "serena": { "description": "d", "command": "x" } },
  "categories": { "fs": { "description": "d", "server": "serna" }, "all": { "description": "d", "server": ["serena", "zzz"] } } }"#;
    let expected = "error: DIR/hikite.json:2:57: categories.fs.server: there is no server `serna` in `mcpServers`\nhint: Did you mean `serena`?\nerror: DIR/hikite.json:2:118: categories.all.server[1]: there is no server `zzz` in `mcpServers`\nhint: Available servers: `serena`.\n";
    refused(text, expected).await;
}

#[tokio::test]
async fn a_name_included_twice_is_refused() {
    let text = r#"{ "mcpServers": { "a": { "description": "d", "command": "x" } },
  "categories": { "c": { "description": "d", "server": "a", "tools": { "includeNames": ["t", "u", "t"] } } } }"#;
    let expected = "error: DIR/hikite.json:2:99: categories.c.tools.includeNames[2]: `t` is already includeNames[0]\nhint: Remove one of them.\n";
    refused(text, expected).await;
}

#[tokio::test]
async fn broken_json_is_told_with_its_place() {
    let text = "{ \"mcpServers\": {\n    \"a\": { \"command\": \"x\" }\n    \"b\": {} } }";
    refused(
        text,
        "error: DIR/hikite.json:3:5: expected `,` or `}`, found `\"`\nhint: A comma is missing before this.\n",
    )
    .await;
}

#[tokio::test]
async fn a_file_that_is_not_there_is_told_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = PROGRAMS.run(folder.path(), &["serve"]).await;
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("hikite.json: cannot be read: No such file or directory"), "{}", run.stderr);
    assert!(run.stderr.ends_with("hint: Check `--config` and `HIKITE_CONFIG`.\n"), "{}", run.stderr);
}

#[tokio::test]
async fn a_good_file_is_called_good_and_its_doubts_are_told() {
    let text = r#"{ "mcpServers": { "a": { "command": "x" } } }"#;
    let run = run(text, &["config", "check"]).await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(0), "ok: DIR/hikite.json: 1 servers, 0 categories\n"));
    assert_eq!(run.stderr, "note: no `description` for `a`: one line each helps a model to choose\n");
}

#[tokio::test]
async fn secrets_are_shown_to_nobody() {
    let config = json!({
        "mcpServers": {
            "p": { "description": "d", "command": "x", "args": ["--key", "${PATH}"], "env": { "LITERAL": "s3cret-literal", "K": { "file": "key.txt" } } },
            "w": { "description": "d", "url": "http://127.0.0.1:9/mcp?key=${PATH}", "headers": { "Authorization": "Bearer s3cret-header" } },
        },
        "auth": { "token": "s3cret-token-of-some-length" },
    });
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("key.txt"), "s3cret-file\n").expect("a file");
    std::fs::write(folder.path().join("hikite.json"), config.to_string()).expect("a file");
    let run = PROGRAMS.run(folder.path(), &["config", "show"]).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    let shown: Value = serde_json::from_str(&run.stdout).expect("JSON");
    assert_eq!(shown["mcpServers"]["p"]["env"], json!({ "LITERAL": "***", "K": "***" }));
    assert_eq!(shown["mcpServers"]["w"]["headers"], json!({ "Authorization": "***" }));
    assert_eq!(shown["auth"]["token"], "***");
    let path = std::env::var("PATH").expect("a path");
    for secret in ["s3cret", path.as_str()] {
        assert!(!run.stdout.contains(secret) && !run.stderr.contains(secret), "{}", run.stdout);
    }
}

#[tokio::test]
async fn the_committed_schema_is_the_programs_own() {
    let run = run("{}", &["config", "schema"]).await;
    let committed = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../config.schema.json"));
    let value = |text: &str| serde_json::from_str::<Value>(text).expect("JSON");
    assert_eq!(value(&run.stdout), value(committed));
}

#[tokio::test]
async fn without_any_config_it_serves_at_once() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("hikite.json"), "{}").expect("a file");
    let gateway = configured(json!({})).await;
    let reply = gateway.send(hikite_testkit::gateway::HttpRequest::new("POST", "/mcp").json("{}")).await;
    assert_eq!(reply.status, 401);
    let shown = gateway.client("").await.names("tools/list").await;
    assert_eq!(shown, ["get_module_schema", "call", "batch", "tool_discovery"]);
    assert!(gateway.client("direct").await.names("tools/list").await.is_empty());
}

#[tokio::test]
async fn start_up_tells_the_counts_the_doubts_and_how_to_connect() {
    let (_fixture, server) = http_fixture().await;
    let down = json!({ "description": "d", "type": "http", "url": "http://127.0.0.1:9/mcp" });
    let tools = json!({ "includeNames": ["echo", "no_such_tool"], "overrides": { "who": { "enabled": false }, "neither": { "enabled": false } } });
    let config = json!({ "mcpServers": { "up": server, "down": down },
        "categories": { "c": { "description": "d", "server": "up", "tools": tools }, "d": { "description": "d", "server": "down" } } });
    let gateway = configured(config).await;
    gateway
        .wait_for_stderr(
            "the catalog is built servers=2 usable=1 unconnected=0 categories=2 tools=33 disabled=1 unresolved=2",
        )
        .await;
    gateway.wait_for_stderr("the category `c` contains `no_such_tool`, which up does not have").await;
    gateway.wait_for_stderr("the category `c` contains `neither`, which up does not have").await;
    gateway.wait_for_stderr("the category `d` is waiting for the tools of down").await;
    gateway.wait_for_stderr("lists received module=\"up\" tools=33").await;
    gateway.wait_for_stderr("`down` cannot be reached; http://127.0.0.1:9").await;
    let url = format!("http://{}", gateway.address());
    for next in [
        format!("Pages    {url}/ui"),
        format!("Set up   {url}/setup?token="),
        format!("--config {} --data ", gateway.config_file().display()),
        "connect claude-code\n".to_owned(),
        format!("Any client: {url}/mcp"),
        "token show` prints it".to_owned(),
    ] {
        gateway.wait_for_stderr(&next).await;
    }
    assert!(!gateway.stderr().contains("hk_local_"), "the token is in no log");
    gateway.client("").await.call_in("c", "echo", json!({ "text": "not in any log" })).await;
    gateway.wait_for_stderr("module=\"up\" call=\"c/echo\" outcome=\"ok\" ms=").await;
    assert!(!gateway.stderr().contains("not in any log"));
}

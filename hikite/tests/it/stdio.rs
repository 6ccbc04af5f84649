//! `hikite stdio`: the gateway for clients that start it themselves.

use std::process::Stdio;
use std::sync::Arc;

use hikite_testkit::gateway::{ClientOptions, LIMIT, SessionClient, eventually, kill, marked};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdout};

use crate::{PROGRAMS, begin_sleep, error_of, http_fixture, stdio};

fn folder(config: &Value) -> Arc<TempDir> {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("hikite.json"), config.to_string()).expect("a file");
    Arc::new(folder)
}

async fn client(folder: &TempDir, arguments: &[&str], hello: ClientOptions) -> SessionClient {
    SessionClient::over_stdio(&PROGRAMS, folder.path(), arguments, hello).await
}

async fn nothing_left(folder: &TempDir) -> bool {
    eventually(|| marked(folder.path()).is_empty()).await
}

#[tokio::test]
async fn a_whole_conversation_runs_over_lines() {
    let (_fixture, web) = http_fixture().await;
    let config = json!({ "mcpServers": { "web": web, "program": stdio(&[]) },
        "categories": { "c": { "description": "d", "server": "web" } } });
    let folder = folder(&config);
    let client =
        client(&folder, &["--surface", "direct", "--surface", "categories"], ClientOptions::answering("line")).await;
    assert_eq!(client.names("tools/list").await.len(), 2 + 66);
    assert_eq!(client.call_in("c", "echo", json!({ "text": "over lines" })).await["content"][0]["text"], "over lines");
    assert!(client.text("web__ask", json!({ "kind": "sampling", "marker": "m" })).await.contains("line:m"));
    let params =
        json!({ "name": "program__test_tool_with_progress", "arguments": {}, "_meta": { "progressToken": "t" } });
    client.request("tools/call", params).await.expect("a result");
    assert_eq!(client.notifications("notifications/progress").len(), 3);
    assert!(client.close().await.success());
    assert!(nothing_left(&folder).await, "{:?}", marked(folder.path()));
    assert!(!folder.path().join("data/token").exists(), "nobody can connect, so nobody needs a token");
}

#[tokio::test]
async fn the_surface_is_that_of_the_config_unless_said_otherwise() {
    let (_fixture, web) = http_fixture().await;
    let folder = folder(
        &json!({ "mcpServers": { "web": web }, "categories": { "c": { "description": "d", "server": "web" } } }),
    );
    let own = client(&folder, &[], ClientOptions::default()).await;
    assert_eq!(own.names("tools/list").await, ["get-category-tools", "call-category-tool"]);
    let run = PROGRAMS.run(folder.path(), &["stdio", "--surface", "module"]).await;
    assert_eq!(run.code, Some(2));
    assert!(run.stderr.contains("not one of: categories, direct, modules, search"), "{}", run.stderr);
}

#[tokio::test]
async fn without_categories_four_tools_are_shown() {
    let (_fixture, web) = http_fixture().await;
    let folder = folder(&json!({ "mcpServers": { "web": web } }));
    let client = client(&folder, &[], ClientOptions::default()).await;
    assert_eq!(client.names("tools/list").await, ["get_module_schema", "call", "batch", "tool_discovery"]);
    let echo = json!({ "module": "web", "tool": "echo", "params": { "text": "引手" } });
    assert_eq!(client.call("call", echo).await["content"][0]["text"], "引手");
}

#[tokio::test]
async fn lines_that_are_no_messages_are_answered_and_harm_nothing() {
    let folder = folder(&json!({ "limits": { "body_bytes": "2KiB" } }));
    let client = client(&folder, &[], ClientOptions::default()).await;
    for line in ["not JSON", "{}", "", "   ", &format!("\"{}\"", "x".repeat(5000))] {
        client.send_line(line);
    }
    assert_eq!(client.request("ping", json!({})).await, Ok(json!({})));
    let codes: Vec<i64> =
        client.notifications("(answer)").iter().filter_map(|answer| answer["error"]["code"].as_i64()).collect();
    assert_eq!(codes, [-32700, -32600, -32700, -32600]);
}

#[tokio::test]
async fn running_calls_finish_when_the_input_ends() {
    let folder = folder(&json!({ "mcpServers": { "a": stdio(&[]) } }));
    let client = client(&folder, &["--surface", "direct"], ClientOptions::default()).await;
    client.text("echo", json!({ "text": "up" })).await;
    let call = begin_sleep(&client, "sleep", 1000).await;
    let status = client.close().await;
    assert_eq!(call.answer().await.expect("a result")["content"][0]["text"], "slept 1000 ms");
    assert!(status.success());
    assert!(nothing_left(&folder).await, "{:?}", marked(folder.path()));
}

#[tokio::test]
async fn a_client_that_kills_it_leaves_nothing_behind() {
    let folder = folder(&json!({ "mcpServers": { "a": stdio(&[]), "b": stdio(&[]) } }));
    let client = client(&folder, &["--surface", "direct"], ClientOptions::default()).await;
    client.call("a__spawn_grandchild", json!({})).await;
    client.text("b__echo", json!({ "text": "up" })).await;
    assert!(marked(folder.path()).len() >= 7, "{:?}", marked(folder.path()));
    kill(client.pid());
    assert!(nothing_left(&folder).await, "{:?}", marked(folder.path()));
}

/// A raw line client, for messages that the test client would not send.
struct RawStdio {
    child: Child,
    output: tokio::io::Lines<BufReader<ChildStdout>>,
}

impl RawStdio {
    fn open(folder: &TempDir) -> Self {
        let mut command = tokio::process::Command::from(PROGRAMS.hikite(folder.path()));
        command.arg("stdio").stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        let mut child = command.spawn().expect("hikite");
        let output = BufReader::new(child.stdout.take().expect("piped")).lines();
        Self { child, output }
    }

    async fn send(&mut self, message: &Value) {
        let line = format!("{message}\n");
        self.child.stdin.as_mut().expect("piped").write_all(line.as_bytes()).await.expect("sent");
    }

    async fn next(&mut self) -> Value {
        let line = tokio::time::timeout(LIMIT, self.output.next_line()).await.expect("in time").expect("open");
        serde_json::from_str(&line.expect("a line")).expect("JSON")
    }
}

#[tokio::test]
async fn a_request_before_initialize_is_refused() {
    let folder = folder(&json!({}));
    let mut lines = RawStdio::open(&folder);
    lines.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/list" })).await;
    let refused = lines.next().await;
    assert_eq!((&refused["id"], &refused["error"]["message"]), (&json!(1), &json!("Start with `initialize`.")));
    lines.send(&json!({ "jsonrpc": "2.0", "id": 2, "method": "ping" })).await;
    assert_eq!(lines.next().await["result"], json!({}));
}

#[tokio::test]
async fn several_messages_in_one_line_belong_to_one_revision() {
    let folder = folder(&json!({}));
    for revision in ["2025-03-26", "2025-11-25"] {
        let mut lines = RawStdio::open(&folder);
        let hello =
            json!({ "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
        lines.send(&json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello })).await;
        assert_eq!(lines.next().await["result"]["protocolVersion"], revision);
        let ping = |id: u64| json!({ "jsonrpc": "2.0", "id": id, "method": "ping" });
        lines.send(&json!([ping(1), ping(2)])).await;
        let answer = lines.next().await;
        if revision == "2025-03-26" {
            assert_eq!(answer.as_array().map(Vec::len), Some(2), "a batch is answered with a batch: {answer}");
        } else {
            assert_eq!((&answer["id"], &answer["error"]["code"]), (&Value::Null, &json!(-32600)), "{answer}");
        }
    }
}

#[tokio::test]
async fn an_upstream_that_is_down_is_told_over_lines_too() {
    let down = json!({ "description": "d", "command": "/no/such/program" });
    let config = json!({ "mcpServers": { "a": down }, "categories": { "c": { "description": "d", "server": "a", "tools": { "includeNames": ["t"] } } } });
    let folder = folder(&config);
    let client = client(&folder, &[], ClientOptions::default()).await;
    let error = error_of(&client.call_in("c", "t", json!({})).await);
    assert_eq!(error["code"], "UPSTREAM_UNAVAILABLE");
    let text = error.to_string();
    assert!(!text.contains("/no/such/program"), "paths are for the log: {text}");
    assert!(text.contains("mcpServers.a"), "it says where to look: {text}");
}

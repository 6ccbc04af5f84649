//! A server process that is stopped during a call first receives the cancellation, whether the client left, hikite
//! stops, or the call timed out.

use std::path::Path;

use hikite_testkit::fixture::{FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{ClientOptions, StatelessEnvelope, TestGateway, eventually};
use serde_json::{Value, json};

use crate::{configured, fixture, with};

/// Enough calls to catch a message that is lost only sometimes.
const CALLS: usize = 6;

/// A program that answers no call and records what it receives. It runs until its stdin ends.
const DEAF: &str = r#"
import json, os, sys
def note(what):
    with open(sys.argv[1], "a") as seen:
        seen.write(f"{os.getpid()} {what}\n")
for line in sys.stdin:
    message = json.loads(line)
    method = message["method"]
    answer = {"jsonrpc": "2.0", "id": message.get("id")}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        answer["result"] = {"tools": [{"name": "hang", "inputSchema": {"type": "object"}}]}
    elif method in ("tools/call", "notifications/cancelled"):
        note(f"{method} {message.get('id', message['params'].get('requestId'))}")
        continue
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    if "id" in message:
        print(json.dumps(answer), flush=True)
note("end")
"#;

fn program(seen: &Path) -> Value {
    json!({ "description": "d", "command": "python3", "args": ["-c", DEAF, seen], "share": "never" })
}

fn seen(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).unwrap_or_default().lines().map(ToOwned::to_owned).collect()
}

async fn called(file: &Path, calls: usize) {
    let count = || seen(file).iter().filter(|line| line.contains("tools/call")).count();
    assert!(eventually(|| count() == calls).await, "{:?}", seen(file));
}

/// Waits until every called process has received the cancellation of exactly its call.
async fn all_heard(file: &Path) {
    let unheard = || {
        let seen = seen(file);
        let calls = seen.iter().filter(|line| line.contains("tools/call"));
        calls.filter(|line| !seen.contains(&line.replace("tools/call", "notifications/cancelled"))).count()
    };
    assert!(eventually(|| unheard() == 0).await, "{:#?}", seen(file));
}

async fn scene(more: &Value) -> (TestGateway, tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("seen");
    let mut config = json!({ "mcpServers": { "a": program(&file) }, "server": { "surface": "direct" } });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    (configured(config).await, folder, file)
}

#[tokio::test]
async fn a_program_of_one_session_hears_it_when_the_session_ends() {
    let (gateway, _folder, file) = scene(&json!({})).await;
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        let client = gateway.client("direct").await;
        calls.push((client.begin_call("hang", json!({})), client));
    }
    called(&file, CALLS).await;
    for (_call, client) in &calls {
        client.delete().await;
    }
    all_heard(&file).await;
    // They end because they are idle, and not before they received it.
    let ended = || seen(&file).iter().filter(|line| line.ends_with(" end")).count();
    assert!(eventually(|| ended() >= CALLS).await, "{:?}", seen(&file));
}

#[tokio::test]
async fn programs_hear_it_when_hikite_stops() {
    let (mut gateway, _folder, file) = scene(&json!({ "limits": { "drain": "100ms" } })).await;
    let mut calls = Vec::new();
    for _ in 0..CALLS {
        let client = gateway.client("direct").await;
        calls.push((client.begin_call("hang", json!({})), client));
    }
    called(&file, CALLS).await;
    gateway.stop().await;
    all_heard(&file).await;
}

#[tokio::test]
async fn a_program_hears_it_when_a_client_without_a_session_hangs_up() {
    let (gateway, _folder, file) = scene(&json!({})).await;
    let calls: Vec<_> = (0..CALLS)
        .map(|_| gateway.stateless("direct", StatelessEnvelope::default()).begin_call("hang", json!({})))
        .collect();
    called(&file, CALLS).await;
    drop(calls);
    all_heard(&file).await;
}

#[tokio::test]
async fn a_program_hears_it_when_the_time_of_a_call_is_over() {
    let (gateway, _folder, file) = scene(&json!({ "limits": { "call_timeout": "1s" } })).await;
    let client = gateway.client("direct").await;
    let late = client.call("hang", json!({})).await;
    assert_eq!(late["structuredContent"]["error"]["code"], "TIMEOUT", "{late}");
    client.delete().await;
    all_heard(&file).await;
}

#[tokio::test]
async fn a_server_on_the_network_hears_it_when_the_session_ends() {
    for transport in [FixtureTransport::Http, FixtureTransport::Sse] {
        let (fixture, server) = fixture(transport, FixtureOptions::default()).await;
        let server = with(server, "share", "never");
        let config = json!({ "mcpServers": { "a": server }, "server": { "surface": "direct" } });
        let gateway = configured(config).await;
        let mut calls = Vec::new();
        for number in 0..CALLS {
            let client = gateway.client_with("direct", ClientOptions::answering(&number.to_string())).await;
            calls.push((client.begin_call("hang", json!({})), client));
        }
        assert!(eventually(|| usize::try_from(fixture.calls()) == Ok(CALLS)).await);
        for (_call, client) in &calls {
            client.delete().await;
        }
        assert!(eventually(|| fixture.cancelled().len() == CALLS).await, "{:?}", fixture.cancelled());
    }
}

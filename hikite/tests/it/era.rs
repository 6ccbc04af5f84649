//! Which kind of revision a server speaks is found out, remembered, and doubted when it changes.

use hikite_testkit::fault::FaultProxy;
use hikite_testkit::fixture::{Era, Fixture, Options, Transport};
use hikite_testkit::gateway::{Envelope, TestGateway, eventually};
use serde_json::{Value, json};

use crate::{fixture, gateway, stdio};

async fn of(era: Era) -> (Fixture, Value) {
    fixture(Transport::Http, Options { era, ..Options::default() }).await
}

async fn echoes(gateway: &TestGateway) {
    let client = gateway.stateless("direct", Envelope::default());
    assert_eq!(client.text("echo", json!({ "text": "hi" })).await, "hi");
}

#[tokio::test]
async fn a_server_of_both_eras_is_spoken_to_without_sessions() {
    let (fixture, server) = of(Era::Both).await;
    let gateway = gateway(json!({ "a": server })).await;
    echoes(&gateway).await;
    let seen: Vec<String> = fixture.received().into_iter().map(|message| message.method).collect();
    assert_eq!(seen[0], "server/discover");
    assert!(!seen.contains(&"initialize".to_owned()), "{seen:?}");
    assert_eq!(fixture.sessions(), 0);
}

#[tokio::test]
async fn a_server_with_sessions_is_asked_once_what_it_is() {
    let script = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method = message["method"]
    with open(sys.argv[1], "a") as seen:
        seen.write(method + "\n")
    answer = {"jsonrpc": "2.0", "id": message.get("id")}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        answer["result"] = {"tools": [{"name": "known", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": "spoken"}]}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    if "id" in message:
        print(json.dumps(answer), flush=True)
"#;
    let folder = tempfile::tempdir().expect("a folder");
    let seen = folder.path().join("seen");
    let server = json!({ "description": "d", "command": "python3", "args": ["-c", script, seen] });
    let config = json!({ "mcpServers": { "a": server } });
    let gateway = crate::configured(config.clone()).await;
    assert_eq!(gateway.client("direct").await.text("known", json!({})).await, "spoken");
    let gateway = gateway.restart(config).await;
    assert_eq!(gateway.client("direct").await.text("known", json!({})).await, "spoken");
    let seen = std::fs::read_to_string(seen).expect("called");
    let times = |method: &str| seen.lines().filter(|line| *line == method).count();
    assert_eq!((times("server/discover"), times("tools/call")), (1, 2), "{seen}");
    assert!(times("initialize") >= 2, "{seen}");
}

/// A port whose server is replaced by one of another era.
async fn replaced(before: Era, after: Era) {
    let (first, _) = of(before).await;
    let proxy = FaultProxy::start(first.address()).await.expect("a port");
    let url = format!("http://{}/mcp", proxy.address());
    let gateway = gateway(json!({ "a": { "description": "d", "type": "http", "url": url } })).await;
    echoes(&gateway).await;
    let (second, _) = of(after).await;
    proxy.lead_to(second.address());
    first.stop().await;
    // What ran nowhere may run anew; nobody notices.
    echoes(&gateway).await;
    echoes(&gateway).await;
    assert_eq!(second.calls(), 2);
}

#[tokio::test]
async fn a_server_that_changes_its_era_is_greeted_anew() {
    replaced(Era::Legacy, Era::Modern).await;
    replaced(Era::Modern, Era::Legacy).await;
}

#[tokio::test]
async fn a_program_that_never_answers_what_it_does_not_know_is_still_reached() {
    // It reads lines, and answers `initialize` and lists alone.
    let script = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "quiet", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        result = {"content": [{"type": "text", "text": "spoken"}]}
    else:
        continue
    print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
"#;
    let server = json!({ "description": "d", "command": "python3", "args": ["-c", script] });
    let gateway = gateway(json!({ "a": server, "b": stdio(&[]) })).await;
    let client = gateway.client("direct").await;
    assert_eq!(client.text("a__quiet", json!({})).await, "spoken");
    assert!(eventually(|| gateway.stderr().contains("lists are known")).await);
}

#[tokio::test]
async fn a_program_that_ends_at_an_unknown_message_is_still_reached() {
    let script = r#"
import json, sys
first = json.loads(sys.stdin.readline())
if first["method"] != "initialize":
    sys.exit("expected initialize")
print(json.dumps({"jsonrpc": "2.0", "id": first["id"], "result": {"protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    if "id" in message:
        result = {"tools": [{"name": "strict", "inputSchema": {"type": "object"}}]} if message["method"] == "tools/list" \
            else {"content": [{"type": "text", "text": "spoken"}]}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"#;
    let server = json!({ "description": "d", "command": "python3", "args": ["-c", script] });
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    assert_eq!(client.text("strict", json!({})).await, "spoken");
}

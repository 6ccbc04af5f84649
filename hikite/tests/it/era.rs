//! The kind of revision that a server supports is detected, cached, and invalidated when it changes.

use hikite_testkit::fault::FaultProxy;
use hikite_testkit::fixture::{Era, Fixture, FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{ClientOptions, SETTLE_TIME, StatelessEnvelope, TestGateway, eventually, within};
use serde_json::{Value, json};

use crate::{fixture, gateway, stdio};

async fn of(era: Era) -> (Fixture, Value) {
    fixture(FixtureTransport::Http, FixtureOptions { era, ..FixtureOptions::default() }).await
}

async fn echoes(gateway: &TestGateway) {
    let client = gateway.stateless("direct", StatelessEnvelope::default());
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

/// Replaces the server at a port by one of another kind of revision.
async fn replaced(before: Era, after: Era) {
    let (first, _) = of(before).await;
    let proxy = FaultProxy::start(first.address()).await.expect("a port");
    let url = format!("http://{}/mcp", proxy.address());
    let gateway = gateway(json!({ "a": { "description": "d", "type": "http", "url": url } })).await;
    echoes(&gateway).await;
    let (second, _) = of(after).await;
    proxy.redirect(second.address());
    first.stop().await;
    // A call that did not run anywhere may be repeated unnoticed.
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
    // It reads lines, and answers `initialize` and lists only.
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
    assert!(eventually(|| gateway.stderr().contains("lists received")).await);
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

/// A server with sessions that fails as told, and records its calls.
const FAILING: &str = r#"
import json, sys, threading, time
def answer(id, **body):
    print(json.dumps({"jsonrpc": "2.0", "id": id, **body}), flush=True)
def call(id, name, arguments):
    if name == "fail":
        return answer(id, error=arguments)
    time.sleep(1)
    answer(id, result={"content": [{"type": "text", "text": "done"}]})
for line in sys.stdin:
    message = json.loads(line)
    method, id = message["method"], message.get("id")
    if method == "initialize":
        answer(id, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}})
    elif method == "tools/list":
        answer(id, result={"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("fail", "slow")]})
    elif method == "tools/call":
        params = message["params"]
        with open(sys.argv[1], "a") as seen:
            seen.write(params["name"] + "\n")
        threading.Thread(target=call, args=(id, params["name"], params["arguments"])).start()
    elif id is not None:
        answer(id, error={"code": -32601, "message": "no such method"})
"#;

#[tokio::test]
async fn an_error_of_one_call_is_nobody_elses_and_is_not_tried_twice() {
    let folder = tempfile::tempdir().expect("a folder");
    let seen = folder.path().join("seen");
    let server = json!({ "description": "d", "command": "python3", "args": ["-c", FAILING, seen] });
    let gateway = gateway(json!({ "a": server })).await;
    let ada = gateway.client_with("direct", ClientOptions::answering("ada")).await;
    let bob = gateway.client("direct").await;
    let slow = bob.begin_call("slow", json!({}));
    let times = |name: &str| {
        let seen = std::fs::read_to_string(&seen).unwrap_or_default();
        seen.lines().filter(|line| *line == name).count()
    };
    assert!(eventually(|| times("slow") == 1).await);
    let errors = [
        json!({ "code": -32602, "message": "invalid value, received 'Mcp-Method'" }),
        json!({ "code": -32022, "message": "this document has another revision" }),
        json!({ "code": -32021, "message": "insufficient funds" }),
        json!({ "code": -32021, "message": "no funds", "data": { "requiredCapabilities": { "funds": {} } } }),
    ];
    for error in &errors {
        let params = json!({ "name": "fail", "arguments": error });
        assert_eq!(&ada.request("tools/call", params).await.expect_err("told to fail"), error);
    }
    assert_eq!(times("fail"), errors.len());
    assert_eq!(slow.answer().await.expect("untouched")["content"][0]["text"], "done");
}

/// A web server whose path selects its response to unknown requests.
const WEB: &str = r#"
import json, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Web(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def log_message(self, *_): pass
    def say(self, status, body, **headers):
        body = json.dumps(body).encode() if isinstance(body, dict) else body
        self.send_response(status)
        self.send_header("content-type", "application/json" if body[:1] == b"{" else "text/html")
        self.send_header("content-length", str(len(body)))
        for name, value in headers.items(): self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(body)
    def do_GET(self): self.say(405, b"no")
    def do_DELETE(self): self.say(200, b"ok")
    def do_POST(self):
        message = json.loads(self.rfile.read(int(self.headers["content-length"])))
        method, id, kind = message.get("method"), message.get("id"), self.path[1:]
        result = lambda **body: {"jsonrpc": "2.0", "id": id, "result": {"resultType": "complete", **body}}
        arguments = message.get("params", {}).get("arguments", {})
        if method == "server/discover" and kind == "stateless":
            self.say(200, result(supportedVersions=["2026-07-28"], capabilities={"tools": {}}))
        elif method == "server/discover" and kind == "drop":
            self.close_connection = True
        elif method == "server/discover" or kind == "closed":
            self.say(401 if kind == "closed" else int(kind), b"<h1>no</h1>")
        elif method == "initialize":
            self.say(200, result(protocolVersion="2025-06-18", capabilities={"tools": {}},
                serverInfo={"name": "s", "version": "1"}), Mcp_Session_Id="abc")
        elif id is None:
            self.say(202, b"")
        elif method == "tools/list":
            self.say(200, result(tools=[{"name": "go", "inputSchema": {"type": "object"}}]))
        elif arguments.get("bad"):
            self.say(400, b"<h1>400 Request Header Or Cookie Too Large</h1>")
        else:
            time.sleep(arguments.get("seconds", 0))
            self.say(200, result(content=[{"type": "text", "text": "gone"}]))
server = ThreadingHTTPServer(("127.0.0.1", 0), Web)
print(server.server_address[1], flush=True)
server.serve_forever()
"#;

/// Starts the web server; returns its process, which ends on drop, and its URL.
async fn web() -> (tokio::process::Child, String) {
    use tokio::io::{AsyncBufReadExt, BufReader};
    let mut command = tokio::process::Command::new("python3");
    command.args(["-c", WEB]).stdout(std::process::Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("python");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let port = lines.next_line().await.expect("a line").expect("a port");
    (child, format!("http://127.0.0.1:{port}"))
}

#[tokio::test]
async fn a_refusal_of_one_call_over_http_leaves_the_others_alone() {
    let (_child, address) = web().await;
    let server = json!({ "description": "d", "type": "http", "url": format!("{address}/stateless") });
    let gateway = gateway(json!({ "a": server })).await;
    let (ada, bob) = (gateway.client("direct").await, gateway.client("direct").await);
    assert_eq!(ada.text("go", json!({})).await, "gone");
    let slow = bob.begin_call("go", json!({ "seconds": 1 }));
    tokio::time::sleep(SETTLE_TIME).await;
    assert_eq!(ada.call("go", json!({ "bad": true })).await["isError"], true);
    assert_eq!(ada.text("go", json!({})).await, "gone");
    assert_eq!(slow.answer().await.expect("untouched")["content"][0]["text"], "gone");
}

#[tokio::test]
async fn whatever_stands_before_a_server_with_sessions_it_is_reached() {
    const KINDS: [&str; 9] = ["500", "403", "401", "302", "400", "404", "422", "501", "drop"];
    let (_child, address) = web().await;
    let server = |kind: &str| json!({ "description": "d", "type": "http", "url": format!("{address}/{kind}") });
    let mut servers: serde_json::Map<String, Value> =
        KINDS.iter().map(|kind| (format!("m{kind}"), server(kind))).collect();
    servers.insert("closed".into(), server("closed"));
    let gateway = gateway(Value::Object(servers)).await;
    let client = gateway.client("direct").await;
    for kind in KINDS {
        assert_eq!(client.text(&format!("m{kind}__go"), json!({})).await, "gone", "{kind}");
    }
    gateway.wait_for_stderr("check the credentials in `mcpServers.closed.headers`.").await;
}

#[tokio::test]
async fn a_program_that_chokes_on_an_unknown_message_is_started_anew() {
    let script = r#"
import json, sys, time
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "server/discover":
        time.sleep(3600)
    if method == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        result = {"tools": [{"name": "choosy", "inputSchema": {"type": "object"}}]}
    else:
        result = {"content": [{"type": "text", "text": "spoken"}]}
    if id is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": id, "result": result}), flush=True)
"#;
    let server = json!({ "description": "d", "command": "python3", "args": ["-c", script] });
    let config = json!({ "mcpServers": { "a": server }, "limits": { "start_timeout": "10s" } });
    let gateway = crate::configured(config).await;
    let limit = std::time::Duration::from_secs(60);
    assert!(within(limit, || gateway.stderr().contains("lists received")).await, "{}", gateway.stderr());
    assert_eq!(gateway.client("direct").await.text("choosy", json!({})).await, "spoken");
    assert!(eventually(|| gateway.descendants().len() <= 2).await, "the first is still there");
}

#[tokio::test]
async fn a_program_that_is_late_and_takes_both_greetings_is_asked_once_more() {
    // It uses the last `initialize`, like servers on the TypeScript SDK.
    let script = r#"
import json, os, sys, time
if not os.path.exists(sys.argv[1]):
    open(sys.argv[1], "w").close()
    time.sleep(4)
speaks_with_session = False
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "server/discover":
        body = {"result": {"resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}}
    elif method == "initialize":
        speaks_with_session = True
        body = {"result": {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}}}
    elif speaks_with_session:
        body = {"error": {"code": -32601, "message": "not with a session"}}
    elif method == "tools/list":
        body = {"result": {"resultType": "complete", "tools": [{"name": "late", "inputSchema": {"type": "object"}}]}}
    else:
        body = {"result": {"resultType": "complete", "content": [{"type": "text", "text": "spoken"}]}}
    if id is not None:
        print(json.dumps({"jsonrpc": "2.0", "id": id, **body}), flush=True)
"#;
    let folder = tempfile::tempdir().expect("a folder");
    let started = folder.path().join("started");
    let server = json!({ "description": "d", "command": "python3", "args": ["-c", script, started] });
    let gateway = gateway(json!({ "a": server })).await;
    let limit = std::time::Duration::from_secs(60);
    assert!(within(limit, || gateway.stderr().contains("lists received")).await, "{}", gateway.stderr());
    assert_eq!(gateway.client("direct").await.text("late", json!({})).await, "spoken");
}

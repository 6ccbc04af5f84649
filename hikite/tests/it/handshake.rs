//! The handshake with a server with sessions: no request precedes its end, and a response with another request's id is
//! ignored.

mod upstream;

use std::time::{Duration, Instant};

use hikite_testkit::gateway::{ClientOptions, TestGateway, eventually};
use serde_json::json;

use self::upstream::{CallResponse, GetStream, ScriptedUpstream};
use crate::{error_of, gateway};

/// Number of sessions; each client that declares capabilities has its own.
const SESSIONS: usize = 5;

async fn call_in_sessions(gateway: &TestGateway, count: usize) {
    for number in 0..count {
        let client = gateway.client_with("direct", ClientOptions::answering(&format!("client{number}"))).await;
        assert_eq!(client.text("t", json!({})).await, "done");
    }
}

/// Asserts the order of messages up to the first call in each session. One may be out of order, because a machine that
/// stalls for a second ends the wait for the stream.
#[track_caller]
fn in_order(upstream: &ScriptedUpstream, order: &[&str]) {
    let sessions = upstream.sessions_with_calls();
    let right = sessions.iter().filter(|seen| seen.iter().zip(order).all(|(seen, wanted)| seen == wanted));
    let right = right.count();
    assert!(sessions.len() >= SESSIONS && right + 1 >= sessions.len(), "{right} of {sessions:#?}");
}

#[tokio::test]
async fn the_first_call_waits_for_the_receipt_and_for_the_stream() {
    let upstream = ScriptedUpstream::start(GetStream::Slow).await;
    let gateway = gateway(json!({ "a": upstream.definition() })).await;
    call_in_sessions(&gateway, SESSIONS).await;
    in_order(&upstream, &["initialize", "notifications/initialized", "stream", "tools/call"]);
}

#[tokio::test]
async fn a_server_without_a_stream_is_called_after_its_refusal() {
    let upstream = ScriptedUpstream::start(GetStream::Refused).await;
    let gateway = gateway(json!({ "a": upstream.definition() })).await;
    call_in_sessions(&gateway, SESSIONS).await;
    in_order(&upstream, &["initialize", "notifications/initialized", "refusal", "tools/call"]);
}

#[tokio::test]
async fn over_the_old_transport_the_first_call_waits_for_the_receipt() {
    let upstream = ScriptedUpstream::start(GetStream::Legacy).await;
    let gateway = gateway(json!({ "a": upstream.definition() })).await;
    call_in_sessions(&gateway, SESSIONS).await;
    in_order(&upstream, &["initialize", "notifications/initialized", "tools/call"]);
}

#[tokio::test]
async fn the_first_call_comes_after_the_log_level_of_its_session() {
    for stream in [GetStream::Refused, GetStream::Legacy] {
        let upstream = ScriptedUpstream::start(stream).await;
        let gateway = gateway(json!({ "a": upstream.definition() })).await;
        for number in 0..SESSIONS {
            let client = gateway.client_with("direct", ClientOptions::answering(&format!("client{number}"))).await;
            client.request("logging/setLevel", json!({ "level": "debug" })).await.expect("set");
            assert_eq!(client.text("t", json!({})).await, "done");
        }
        let place = |seen: &[String], method: &str| seen.iter().position(|what| what == method);
        let sessions = upstream.sessions_with_calls();
        let told = |seen: &&Vec<String>| {
            place(seen, "logging/setLevel").is_some_and(|told| Some(told) < place(seen, "tools/call"))
        };
        let right = sessions.iter().filter(told).count();
        assert!(sessions.len() >= SESSIONS && right + 1 >= sessions.len(), "{stream:?}: {right} of {sessions:#?}");
    }
}

#[tokio::test]
async fn a_server_that_withholds_the_headers_of_its_stream_is_waited_for_once() {
    let upstream = ScriptedUpstream::start(GetStream::Withheld).await;
    let gateway = gateway(json!({ "a": upstream.definition() })).await;
    call_in_sessions(&gateway, 1).await;
    let begin = Instant::now();
    call_in_sessions(&gateway, 10).await;
    // A second for each would be ten, and the acknowledgements two more: a slow machine makes it longer, never shorter.
    assert!(begin.elapsed() < Duration::from_secs(12), "{:?}", begin.elapsed());
    // A session that ends at once may be gone before its stream is requested.
    let streams = || upstream.sessions_with_calls().iter().flatten().filter(|what| *what == "stream").count();
    assert!(eventually(|| streams() > 1).await, "it is still asked for");
}

#[tokio::test]
async fn a_program_has_heard_that_it_is_initialized_before_anything_is_asked() {
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
        answer["result"] = {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        answer["result"] = {"content": [{"type": "text", "text": "done"}]}
    else:
        answer["error"] = {"code": -32601, "message": "no such method"}
    if "id" in message:
        print(json.dumps(answer), flush=True)
"#;
    let folder = tempfile::tempdir().expect("a folder");
    let seen = folder.path().join("seen");
    let server = json!({ "description": "d", "command": "python3", "args": ["-c", script, seen] });
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    let calls: Vec<_> = (0..20).map(|_| client.begin_call("t", json!({}))).collect();
    for call in calls {
        call.answer().await.expect("a result");
    }
    let seen = std::fs::read_to_string(seen).expect("called");
    let methods: Vec<&str> = seen.lines().collect();
    for (at, method) in methods.iter().enumerate().filter(|(_, method)| **method == "initialize") {
        assert_eq!(methods.get(at + 1), Some(&"notifications/initialized"), "after {method}: {seen}");
    }
}

#[tokio::test]
async fn an_answer_with_the_id_of_another_request_is_nobodys() {
    let upstream = ScriptedUpstream::start(GetStream::Refused).await;
    let gateway = gateway(json!({ "a": upstream.definition() })).await;
    let client = gateway.client("direct").await;
    assert_eq!(client.text("t", json!({})).await, "done");
    for foreign in [CallResponse::Foreign, CallResponse::ForeignOnly, CallResponse::ForeignRefusal] {
        upstream.answers(foreign);
        let answer = client.request("tools/call", json!({ "name": "t", "arguments": {} })).await;
        let text = format!("{answer:?}");
        assert!(!text.contains("for somebody else"), "{foreign:?}: {text}");
        let error = error_of(&answer.expect("a result"));
        assert_eq!(error["code"], "UPSTREAM_UNAVAILABLE", "{foreign:?}: {error}");
    }
    for own in [CallResponse::ForeignFirst, CallResponse::Together, CallResponse::Own] {
        upstream.answers(own);
        assert_eq!(client.text("t", json!({})).await, "done", "{own:?}");
    }
}

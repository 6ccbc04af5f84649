//! Broken streams that are resumed, and session ids that are stale, forged or another client's.

use std::time::Duration;

use hikite_testkit::gateway::{LIMIT, SessionClient, SseEvents, TestGateway, eventually};
use serde_json::{Value, json};

use crate::{configured, gateway, http_fixture};

/// Returns a call of this duration that reports progress.
fn slow(ms: u64) -> String {
    json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "sleep", "arguments": { "ms": ms }, "_meta": { "progressToken": "p" } } })
    .to_string()
}

async fn open(gateway: &TestGateway, client: &SessionClient, body: String) -> SseEvents {
    let request = gateway.request("POST", "/mcp").json(body).header("mcp-session-id", &client.session());
    request.open(gateway.address()).await.events()
}

async fn take_up(gateway: &TestGateway, session: &str, event: &str) -> hikite_testkit::gateway::StreamingReply {
    let request = gateway.request("GET", "/mcp").header("mcp-session-id", session);
    request.header("accept", "text/event-stream").header("last-event-id", event).open(gateway.address()).await
}

async fn next(stream: &mut SseEvents) -> Value {
    let (_, data) = tokio::time::timeout(LIMIT, stream.next()).await.expect("in time").expect("an event");
    serde_json::from_str(&data).expect("JSON")
}

#[tokio::test]
async fn a_broken_stream_is_taken_up_where_it_broke() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    let mut stream = open(&gateway, &client, slow(1500)).await;
    let seen = next(&mut stream).await["params"]["progress"].as_f64().expect("progress");
    let event = stream.last_event.clone().expect("an id");
    drop(stream);
    let mut again = take_up(&gateway, &client.session(), &event).await.events();
    let mut last = seen;
    let answer = loop {
        let message = next(&mut again).await;
        if message.get("method").is_none() {
            break message;
        }
        let progress = message["params"]["progress"].as_f64().expect("progress");
        assert!(progress > last, "{progress} after {last}");
        last = progress;
    };
    assert_eq!(answer["id"], 7);
    assert!(answer["result"]["content"].is_array(), "{answer}");
    assert!(again.next().await.is_none(), "the answer ends it");
    assert!(fixture.cancelled().is_empty());
    // Earlier events can be replayed, within limits.
    let mut whole = take_up(&gateway, &client.session(), &event).await.events();
    assert!(whole.next().await.is_some());
}

#[tokio::test]
async fn a_stream_nobody_takes_up_ends_its_request() {
    let (fixture, server) = http_fixture().await;
    let gateway = configured(json!({ "mcpServers": { "a": server }, "limits": { "resume": "2s" } })).await;
    let client = gateway.client("direct").await;
    let mut stream = open(&gateway, &client, slow(60_000)).await;
    next(&mut stream).await;
    let event = stream.last_event.clone().expect("an id");
    drop(stream);
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(fixture.cancelled().is_empty(), "it may still come back");
    assert!(eventually(|| fixture.cancelled().len() == 1).await);
    let late = take_up(&gateway, &client.session(), &event).await;
    assert_eq!(late.status, 400);
}

#[tokio::test]
async fn without_time_to_resume_a_broken_stream_ends_its_request_at_once() {
    let (fixture, server) = http_fixture().await;
    let gateway = configured(json!({ "mcpServers": { "a": server }, "limits": { "resume": "0s" } })).await;
    let client = gateway.client("direct").await;
    let mut stream = open(&gateway, &client, slow(60_000)).await;
    next(&mut stream).await;
    assert_eq!(stream.last_event, None);
    drop(stream);
    assert!(eventually(|| fixture.cancelled().len() == 1).await);
}

#[tokio::test]
async fn a_cancelled_call_ends_although_its_stream_could_be_taken_up() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    let mut stream = open(&gateway, &client, slow(60_000)).await;
    next(&mut stream).await;
    drop(stream);
    client.cancel(7).await;
    assert!(eventually(|| fixture.cancelled().len() == 1).await);
}

#[tokio::test]
async fn events_of_another_session_do_not_exist() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let (ada, bob) = (gateway.client("direct").await, gateway.client("direct").await);
    let mut stream = open(&gateway, &ada, slow(1000)).await;
    next(&mut stream).await;
    let event = stream.last_event.clone().expect("an id");
    for unknown in [event.as_str(), "99-1", "1", "", "-", "1-x"] {
        assert_eq!(take_up(&gateway, &bob.session(), unknown).await.status, 400, "{unknown}");
    }
    assert_eq!(take_up(&gateway, &ada.session(), &event).await.status, 200);
}

#[tokio::test]
async fn the_sessions_own_stream_goes_on_after_what_was_seen() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    client.text("echo", json!({ "text": "up" })).await;
    let request = gateway.request("GET", "/mcp").header("mcp-session-id", &client.session());
    let mut stream = request.header("accept", "text/event-stream").open(gateway.address()).await.events();
    fixture.add_tool("first");
    while next(&mut stream).await["method"] != "notifications/tools/list_changed" {}
    let event = stream.last_event.clone().expect("an id");
    drop(stream);
    fixture.add_tool("second");
    let mut again = take_up(&gateway, &client.session(), &event).await.events();
    while next(&mut again).await["method"] != "notifications/tools/list_changed" {}
    assert_ne!(again.last_event, Some(event));
}

#[tokio::test]
async fn a_stale_id_is_unknown_and_does_not_hinder_a_new_beginning() {
    let gateway = gateway(json!({})).await;
    let session = gateway.client("direct").await.session();
    let (payload, seal) = session.split_once('.').expect("a seal");
    let swapped = format!("{payload}.{}", seal.chars().rev().collect::<String>());
    for unknown in [swapped.as_str(), payload, "", "no-such-session", &session[1..]] {
        let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
        let request = gateway.request("POST", "/mcp").json(ping).header("mcp-session-id", unknown);
        assert_eq!(gateway.send(request).await.status, 404, "{unknown}");
    }
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let request = gateway.request("POST", "/mcp").json(hello.to_string());
    let reply = gateway.send(request.header("mcp-session-id", "stale")).await;
    assert_eq!(reply.status, 200);
    assert!(reply.headers.contains_key("mcp-session-id"));
}

#[tokio::test]
async fn a_streamed_call_may_finish_while_we_stop() {
    let (_fixture, server) = http_fixture().await;
    let mut gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    let mut stream = open(&gateway, &client, slow(1000)).await;
    next(&mut stream).await;
    gateway.terminate();
    let answer = loop {
        let message = next(&mut stream).await;
        if message.get("method").is_none() {
            break message;
        }
    };
    assert!(answer["result"]["content"].is_array(), "{answer}");
    assert!(gateway.exit().await.success());
}

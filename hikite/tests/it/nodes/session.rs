//! Client sessions, which belong to one node and are served by all.

use hikite_testkit::gateway::{HttpRequest, LIMIT, SseEvents, eventually};
use serde_json::{Value, json};

use super::*;
use crate::http_fixture;

async fn next(stream: &mut SseEvents) -> Value {
    let (_, data) = tokio::time::timeout(LIMIT, stream.next()).await.expect("in time").expect("an event");
    serde_json::from_str(&data).expect("JSON")
}

fn slow(session: &str, ms: u64) -> HttpRequest {
    let body = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {
        "name": "sleep", "arguments": { "ms": ms }, "_meta": { "progressToken": "p" } } });
    post(&body).header("mcp-session-id", session)
}

fn stream_of(session: &str) -> HttpRequest {
    let request = HttpRequest::new("GET", "/mcp").header("authorization", &format!("Bearer {TOKEN}"));
    request.header("accept", "text/event-stream").header("mcp-session-id", session)
}

#[tokio::test]
async fn a_session_of_one_node_is_served_by_all_with_all_that_belongs_to_it() {
    let cluster = Cluster::start(3, json!({})).await;
    let session = cluster.client(0).await.session();
    let server = cluster.server_of(0, &session).await;
    for node in [1, 2, 0] {
        assert_eq!(cluster.server_of(node, &session).await, server, "one process of the server, at {node}");
    }
    let other = cluster.client(1).await.session();
    assert_ne!(cluster.server_of(2, &other).await, server, "another session has another");

    // Progress arrives while the call runs.
    let mut stream = slow(&session, 600).open(cluster.address(1)).await.events();
    let first = next(&mut stream).await;
    assert_eq!(first["method"], "notifications/progress", "{first}");
    let mut last = first;
    while last.get("method").is_some() {
        last = next(&mut stream).await;
    }
    assert_eq!(last["id"], 7);

    // Unsolicited messages arrive wherever the stream is open.
    let mut own = stream_of(&session).open(cluster.address(2)).await.events();
    let off = cluster.send(1, HttpRequest::new("POST", "/v1/tools/a:echo/disable")).await;
    assert_eq!(off.status, 200, "{}", off.text());
    assert_eq!(next(&mut own).await["method"], "notifications/tools/list_changed");

    let end = HttpRequest::new("DELETE", "/mcp").header("mcp-session-id", &session);
    assert_eq!(cluster.send(2, end.clone()).await.status, 204);
    for node in 0..3 {
        assert_eq!(cluster.send(node, end.clone()).await.status, 404);
        let gone = cluster.send(node, in_session(&session, "who", &json!({}))).await;
        assert_eq!(gone.status, 404, "{}", gone.text());
    }
}

#[tokio::test]
async fn a_broken_stream_is_taken_up_at_another_node() {
    let cluster = Cluster::start(3, json!({})).await;
    let session = cluster.client(0).await.session();
    let mut stream = slow(&session, 1500).open(cluster.address(1)).await.events();
    next(&mut stream).await;
    let event = stream.last_event.clone().expect("an id");
    drop(stream);
    let again = stream_of(&session).header("last-event-id", &event);
    let mut stream = again.open(cluster.address(2)).await.events();
    let mut last = next(&mut stream).await;
    while last.get("method").is_some() {
        last = next(&mut stream).await;
    }
    assert_eq!(last["id"], 7, "{last}");
}

#[tokio::test]
async fn a_question_is_answered_through_another_node() {
    let cluster = Cluster::start(2, json!({})).await;
    let hello = ClientOptions::silent();
    let client = SessionClient::over_http(cluster.address(0), "/mcp", Some(TOKEN), hello).await;
    let session = client.session();
    let asks = in_session(&session, "ask", &json!({ "kind": "elicitation", "marker": "m" }));
    let mut stream = asks.open(cluster.address(1)).await.events();
    let question = next(&mut stream).await;
    assert_eq!(question["method"], "elicitation/create", "{question}");
    let answer = json!({ "jsonrpc": "2.0", "id": question["id"],
        "result": { "action": "accept", "content": { "answer": "from elsewhere" } } });
    let told = cluster.send(1, post(&answer).header("mcp-session-id", &session)).await;
    assert_eq!(told.status, 202);
    let done = next(&mut stream).await;
    assert!(done.to_string().contains("from elsewhere"), "{done}");
}

#[tokio::test]
async fn a_client_that_hangs_up_at_one_node_has_hung_up_at_the_other() {
    let (fixture, server) = http_fixture().await;
    let more = json!({ "mcpServers": { "a": server }, "limits": { "resume": "0s" } });
    let cluster = Cluster::start(2, more).await;
    let session = cluster.client(0).await.session();
    let mut stream = slow(&session, 60_000).open(cluster.address(1)).await.events();
    next(&mut stream).await;
    assert!(fixture.cancelled().is_empty());
    drop(stream);
    assert!(eventually(|| !fixture.cancelled().is_empty()).await, "the server was told");
}

#[tokio::test]
async fn the_stream_of_old_clients_is_spoken_to_through_any_node() {
    let cluster = Cluster::start(2, json!({})).await;
    let open = HttpRequest::new("GET", "/sse").header("authorization", &format!("Bearer {TOKEN}"));
    let open = open.header("accept", "text/event-stream");
    let mut stream = open.open(cluster.address(0)).await.events();
    let (_, endpoint) = tokio::time::timeout(LIMIT, stream.next()).await.expect("in time").expect("an event");
    let hello = json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": { "name": "old", "version": "1" } } });
    let request = HttpRequest::new("POST", &endpoint).json(hello.to_string());
    assert_eq!(cluster.send(1, request.clone()).await.status, 202);
    assert_eq!(next(&mut stream).await["result"]["protocolVersion"], "2024-11-05");
    let forged = HttpRequest::new("POST", "/messages?sessionId=x.y").json(hello.to_string());
    assert_eq!(cluster.send(1, forged).await.status, 404);
}

#[tokio::test]
async fn an_id_is_worth_nothing_to_another_caller_at_any_node() {
    let cluster = Cluster::start(2, json!({})).await;
    let session = cluster.client(0).await.session();
    let made = HttpRequest::new("POST", "/v1/tokens").json(json!({ "name": "other" }).to_string());
    let made = cluster.send(0, made).await;
    let secret = made.value()["secret"].as_str().expect("a secret").to_owned();
    for node in 0..2 {
        let bearer = format!("Bearer {secret}");
        let known = || HttpRequest::new("GET", "/v1/me").header("authorization", &bearer);
        while known().send(cluster.address(node)).await.status != 200 {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let request = in_session(&session, "who", &json!({})).header("authorization", &bearer);
        let reply = request.send(cluster.address(node)).await;
        assert_eq!(reply.status, 404, "{}", reply.text());
        let tampered = in_session(&format!("{session}x"), "who", &json!({}));
        assert_eq!(cluster.send(node, tampered).await.status, 404);
    }
}

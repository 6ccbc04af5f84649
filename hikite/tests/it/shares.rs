//! Fair shares: a caller with a narrow token, or with nothing but an address, takes all it can get, and the owner is
//! still served, over MCP with and without sessions, over REST and from another address.

mod anonymous;
mod upstream;

use std::net::SocketAddr;
use std::time::Duration;

use hikite_testkit::fixture::{Fixture, FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{
    ClientOptions, HttpReply, SessionClient, StatelessClient, StatelessEnvelope, StreamingReply, TestGateway,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};

use crate::identity::{IssuedToken, as_bearer, client, token};
use crate::rest::{get, post};
use crate::{configured, fixture, http_fixture};

const ASKS: &str = "test_input_required_result_elicitation";
/// A jq program that does not terminate.
const ENDLESS: &str = "def f: f; f";

/// Starts a gateway with these limits, and creates a token with read and call scopes.
async fn crowded(limits: Value) -> (Fixture, TestGateway, IssuedToken) {
    crowded_by(FixtureOptions::default(), limits).await
}

async fn crowded_by(options: FixtureOptions, limits: Value) -> (Fixture, TestGateway, IssuedToken) {
    let (fixture, web) = fixture(FixtureTransport::Http, options).await;
    let config = json!({ "mcpServers": { "web": web }, "server": { "surface": "direct" }, "limits": limits });
    let gateway = configured(config).await;
    let narrow = token(&gateway, json!({ "name": "narrow", "scopes": ["read", "call"] })).await;
    (fixture, gateway, narrow)
}

async fn initialize(gateway: &TestGateway, secret: &str) -> HttpReply {
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    gateway.send(as_bearer(secret, "POST", "/mcp").json(hello.to_string())).await
}

async fn ping(gateway: &TestGateway, secret: &str, session: &str) -> u16 {
    let ping = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" });
    let request = as_bearer(secret, "POST", "/mcp").header("mcp-session-id", session);
    gateway.send(request.json(ping.to_string())).await.status
}

/// Returns the value of one metric series.
async fn metric(gateway: &TestGateway, series: &str) -> Option<f64> {
    let text = get(gateway, "/metrics").await.text().to_owned();
    text.lines().find_map(|line| line.strip_prefix(series)?.trim().parse().ok())
}

fn series(name: &str, resource: &str, narrow: &IssuedToken) -> String {
    format!("hikite_share_{name}{{resource=\"{resource}\",caller=\"token:{}\"}}", narrow.id)
}

#[track_caller]
fn is_refused_for_its_share(reply: &HttpReply) {
    assert_eq!(reply.status, 429, "{}", reply.text());
    assert!(reply.headers.contains_key("retry-after"), "{:?}", reply.headers);
    let body = reply.value();
    assert_eq!(body["code"], "RATE_LIMIT_EXCEEDED", "{body}");
    assert!(body["hint"].as_str().is_some_and(|hint| hint.contains("limits.caller_share")), "{body}");
}

#[tokio::test]
async fn a_flood_of_sessions_ends_its_own_oldest_and_the_owner_gets_in() {
    let (_fixture, gateway, _) = crowded(json!({ "sessions": 16 })).await;
    let narrow = token(&gateway, json!({ "name": "narrowest", "scopes": ["read"] })).await;
    let mut sessions = Vec::new();
    for _ in 0..40 {
        let begun = initialize(&gateway, &narrow.secret).await;
        assert_eq!(begun.status, 200, "{}", begun.text());
        sessions.push(begun.headers["mcp-session-id"].to_str().expect("text").to_owned());
        // The first one is used all the time, so it is never the longest idle.
        assert_eq!(ping(&gateway, &narrow.secret, &sessions[0]).await, 200);
    }
    assert_eq!(ping(&gateway, &narrow.secret, &sessions[1]).await, 404, "it gave way");
    assert_eq!(ping(&gateway, &narrow.secret, &sessions[39]).await, 200);
    assert_eq!(metric(&gateway, &series("held", "sessions", &narrow)).await, Some(8.0));
    assert_eq!(metric(&gateway, &series("evicted_total", "sessions", &narrow)).await, Some(32.0));
    let owner = gateway.client("direct").await;
    assert_eq!(owner.text("echo", json!({ "text": "in" })).await, "in");
    let stateless = gateway.stateless("direct", StatelessEnvelope::default());
    assert_eq!(stateless.text("echo", json!({ "text": "in" })).await, "in");
    assert_eq!(get(&gateway, "/v1/tools").await.status, 200);
}

#[tokio::test]
async fn many_tokens_of_one_subject_are_one_caller() {
    let (_fixture, gateway, _) = crowded(json!({ "sessions": 16 })).await;
    for number in 0..20 {
        let form = json!({ "name": format!("t{number}"), "subject": "mallory", "scopes": ["read"] });
        let made = token(&gateway, form).await;
        assert_eq!(initialize(&gateway, &made.secret).await.status, 200);
    }
    let held = "hikite_share_held{resource=\"sessions\",caller=\"mallory\"}";
    assert_eq!(metric(&gateway, held).await, Some(8.0));
}

#[tokio::test]
async fn requests_without_a_session_share_alike() {
    let (_fixture, gateway, narrow) = crowded(json!({ "sessions": 16 })).await;
    for number in 0..40 {
        let capabilities = json!({ "sampling": { "context": { "number": number } } });
        let envelope = StatelessEnvelope::default().capabilities(capabilities).unvalidated();
        let client =
            StatelessClient::over_http(gateway.address(), "/mcp?surface=direct", Some(&narrow.secret), envelope);
        assert_eq!(client.text("echo", json!({ "text": "hi" })).await, "hi");
    }
    let held = metric(&gateway, &series("held", "stateless_sessions", &narrow)).await;
    assert!(held.is_some_and(|held| held <= 8.0), "{held:?}");
    let owner = gateway.stateless("direct", StatelessEnvelope::default());
    assert_eq!(owner.text("echo", json!({ "text": "in" })).await, "in");
}

async fn open_stream(gateway: &TestGateway, client: &SessionClient, secret: &str) -> StreamingReply {
    let request = as_bearer(secret, "GET", "/mcp").header("mcp-session-id", &client.session());
    request.header("accept", "text/event-stream").open(gateway.address()).await
}

#[tokio::test]
async fn open_streams_have_a_share_and_the_owner_listens_over_every_transport() {
    let (_fixture, gateway, narrow) = crowded(json!({ "streams": 8 })).await;
    let (mut sessions, mut streams) = (Vec::new(), Vec::new());
    for _ in 0..4 {
        let session = client(&gateway, "/mcp?surface=direct", &narrow.secret).await;
        let stream = open_stream(&gateway, &session, &narrow.secret).await;
        assert!(stream.is_stream(), "{}", stream.status);
        streams.push(stream);
        sessions.push(session);
    }
    let session = client(&gateway, "/mcp?surface=direct", &narrow.secret).await;
    is_refused_for_its_share(&open_stream(&gateway, &session, &narrow.secret).await.read().await);
    is_refused_for_its_share(&gateway.send(as_bearer(&narrow.secret, "GET", "/sse")).await);
    assert_eq!(metric(&gateway, &series("refused_total", "streams", &narrow)).await, Some(2.0));
    let owner = gateway.client("direct").await;
    assert!(open_stream(&gateway, &owner, gateway.token()).await.is_stream());
    let listening =
        gateway.stateless("direct", StatelessEnvelope::default()).listen(json!({ "toolsListChanged": true })).await;
    assert_eq!(listening.acknowledged["toolsListChanged"], true);
    assert!(gateway.request("GET", "/sse").open(gateway.address()).await.is_stream());
    // A closed stream frees its slot.
    drop(streams.pop());
    let mut opened = false;
    for _ in 0..200 {
        opened = open_stream(&gateway, &session, &narrow.secret).await.is_stream();
        if opened {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert!(opened, "the place of a closed stream is free again");
}

#[tokio::test]
async fn when_all_streams_are_taken_the_oldest_of_whoever_has_most_ends() {
    let (_fixture, gateway, narrow) = crowded(json!({ "streams": 3 })).await;
    // Two of the slots are usable, one by each caller; the third is reserved.
    let others = [narrow, token(&gateway, json!({ "name": "other" })).await];
    let mut streams = Vec::new();
    for made in &others {
        let stream = as_bearer(&made.secret, "GET", "/sse").open(gateway.address()).await;
        assert!(stream.is_stream());
        streams.push(stream.events());
    }
    let third = token(&gateway, json!({ "name": "third" })).await;
    assert!(as_bearer(&third.secret, "GET", "/sse").open(gateway.address()).await.is_stream());
    let first = streams.first_mut().expect("a stream");
    let to_its_end = async { while first.next().await.is_some() {} };
    tokio::time::timeout(Duration::from_secs(60), to_its_end).await.expect("it gave way");
}

#[tokio::test]
async fn suspended_calls_have_a_share_and_the_owner_is_still_asked() {
    let options = FixtureOptions { extended: true, ..FixtureOptions::default() };
    let (_fixture, gateway, narrow) = crowded_by(options, json!({ "suspended_calls": 4 })).await;
    let path = "/mcp?surface=direct";
    let greedy =
        StatelessClient::over_http(gateway.address(), path, Some(&narrow.secret), StatelessEnvelope::capable());
    for _ in 0..2 {
        assert_eq!(greedy.call(ASKS, json!({})).await.result()["resultType"], "input_required");
    }
    let refused = greedy.call(ASKS, json!({})).await.error();
    assert_eq!(refused["data"]["code"], "RATE_LIMIT_EXCEEDED", "{refused}");
    let owner = gateway.stateless("direct", StatelessEnvelope::capable());
    for _ in 0..2 {
        assert_eq!(owner.call(ASKS, json!({})).await.result()["resultType"], "input_required");
    }
    assert_eq!(metric(&gateway, &series("held", "suspended_calls", &narrow)).await, Some(2.0));
}

fn batch_of(tool: &str, arguments: &Value) -> Value {
    json!({ "commands": [{ "id": "t", "module": "web", "tool": tool, "params": arguments }] })
}

#[tokio::test]
async fn batches_have_a_share_and_the_owner_runs_one() {
    let (fixture, gateway, narrow) = crowded(json!({ "batches": 4 })).await;
    let begin = |body: Value| as_bearer(&narrow.secret, "POST", "/v1/batch").json(body.to_string());
    let address = gateway.address();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let request = begin(batch_of("hang", &json!({})));
        running.spawn(async move { request.attempt(address, Duration::from_secs(60)).await.is_ok() });
    }
    assert!(hikite_testkit::gateway::eventually(|| fixture.calls() >= 2).await);
    is_refused_for_its_share(&gateway.send(begin(batch_of("echo", &json!({ "text": "x" })))).await);
    let done = post(&gateway, "/v1/batch", &batch_of("echo", &json!({ "text": "x" }))).await;
    assert_eq!(done.value()["result"]["summary"]["ok"], 1, "{}", done.text());
    running.shutdown().await;
    // An abandoned batch does not count.
    let mut last = 0;
    for _ in 0..200 {
        last = gateway.send(begin(batch_of("echo", &json!({ "text": "x" })))).await.status;
        if last == 200 {
            break;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(last, 200);
}

#[tokio::test]
async fn one_caller_leaves_places_of_a_module_to_others() {
    let limits = json!({ "module_concurrency": 4, "module_queue": 0 });
    let (fixture, gateway, narrow) = crowded(limits).await;
    let call = |tool: &str| json!({ "name": format!("web:{tool}"), "parameters": { "text": "x" } }).to_string();
    let begin = |tool: &str| as_bearer(&narrow.secret, "POST", "/v1/tools/call").json(call(tool));
    let address = gateway.address();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..2 {
        let request = begin("hang");
        running.spawn(async move { request.attempt(address, Duration::from_secs(60)).await.is_ok() });
    }
    assert!(hikite_testkit::gateway::eventually(|| fixture.calls() >= 2).await);
    let refused = gateway.send(begin("echo")).await;
    assert_eq!(refused.value()["code"], "OVERLOADED", "{}", refused.text());
    for secret in [gateway.token(), &token(&gateway, json!({ "name": "another" })).await.secret] {
        let request = as_bearer(secret, "POST", "/v1/tools/call").json(call("echo"));
        let reply = gateway.send(request).await;
        assert_eq!(reply.value()["success"], true, "{}", reply.text());
    }
    running.shutdown().await;
}

#[tokio::test]
async fn a_call_that_asks_its_client_leaves_its_callers_other_calls_alone() {
    let (_fixture, web) = http_fixture().await;
    let web = crate::with(web, "concurrency", 1);
    let gateway = configured(json!({ "mcpServers": { "web": web }, "server": { "surface": "direct" } })).await;
    let narrow = token(&gateway, json!({ "name": "narrow", "scopes": ["read", "call"] })).await;
    let path = "/mcp";
    let client = SessionClient::over_http(gateway.address(), path, Some(&narrow.secret), ClientOptions::silent()).await;
    let asking = client.begin_call("test_elicitation", json!({ "message": "?" }));
    let question = client.asked().await;
    assert_eq!(client.text("echo", json!({ "text": "meanwhile" })).await, "meanwhile");
    client.answer(&question, json!({ "action": "decline" })).await;
    asking.answer().await.expect("it ends");
}

#[tokio::test]
async fn programs_in_jq_have_a_share_and_the_owner_runs_one() {
    let (_fixture, gateway, narrow) = crowded(json!({ "jq_processes": 4, "jq_timeout": "5s" })).await;
    let call = |select: &str| json!({ "name": "web:echo", "parameters": { "text": "{\"a\":1}" }, "options": { "select": select } });
    let address = gateway.address();
    let mut running = tokio::task::JoinSet::new();
    for _ in 0..24 {
        let request = as_bearer(&narrow.secret, "POST", "/v1/tools/call").json(call(ENDLESS).to_string());
        running
            .spawn(async move { request.attempt(address, Duration::from_secs(120)).await.map(|reply| reply.status) });
    }
    let held = series("held", "jq", &narrow);
    for _ in 0..400 {
        if metric(&gateway, &held).await == Some(2.0) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    assert_eq!(metric(&gateway, &held).await, Some(2.0), "half of them");
    let done = post(&gateway, "/v1/tools/call", &call("[.a] | map(. + 1)")).await;
    assert_eq!((done.status, &done.value()["result"]), (200, &json!([2])), "{}", done.text());
    let mut statuses = Vec::new();
    while let Some(status) = running.join_next().await {
        statuses.extend(status.expect("a task").ok());
    }
    assert!(statuses.contains(&429), "who waits too long for its own share is told so: {statuses:?}");
}

/// Connects from another address of this machine.
async fn connect_from(source: &str, address: SocketAddr) -> TcpStream {
    let socket = TcpSocket::new_v4().expect("a socket");
    socket.bind(format!("{source}:0").parse().expect("an address")).expect("bound");
    socket.connect(address).await.expect("a connection")
}

/// Requests `/health` on an open connection and returns the first line of the response, if any.
async fn health(stream: &mut TcpStream, host: SocketAddr) -> Option<String> {
    let ask = format!("GET /health HTTP/1.1\r\nhost: {host}\r\n\r\n");
    stream.write_all(ask.as_bytes()).await.ok()?;
    let mut buffer = [0; 4096];
    let read = tokio::time::timeout(Duration::from_secs(60), stream.read(&mut buffer)).await.ok()?.ok()?;
    let text = String::from_utf8_lossy(&buffer[..read]).into_owned();
    text.lines().next().map(str::to_owned).filter(|line| !line.is_empty())
}

#[tokio::test]
async fn idle_connections_of_one_address_give_way() {
    let (_fixture, gateway, _) = crowded(json!({ "connections": 16, "idle_timeout": "10m" })).await;
    let address = gateway.address();
    let mut held = Vec::new();
    for number in 0..48 {
        let mut stream = connect_from("127.0.0.9", address).await;
        // Half of them have never sent a request.
        if number % 2 == 0 {
            let line = health(&mut stream, address).await;
            assert_eq!(line.as_deref(), Some("HTTP/1.1 200 OK"), "connection {number}");
        }
        held.push(stream);
    }
    let mut other = connect_from("127.0.0.10", address).await;
    assert_eq!(health(&mut other, address).await.as_deref(), Some("HTTP/1.1 200 OK"), "another address");
    assert_eq!(get(&gateway, "/v1/tools").await.status, 200, "the owner");
    let taken = metric(&gateway, "hikite_share_held{resource=\"connections\",caller=\"127.0.0.9\"}").await;
    assert_eq!(taken, Some(8.0));
    let mut first = held.remove(0);
    assert_eq!(health(&mut first, address).await, None, "the longest idle one was closed");
    let mut last = held.pop().expect("a connection");
    assert_eq!(health(&mut last, address).await.as_deref(), Some("HTTP/1.1 200 OK"));
}

#[tokio::test]
async fn strangers_who_send_slowly_give_way() {
    let (_fixture, gateway, _) = crowded(json!({ "connections": 12 })).await;
    let address = gateway.address();
    let mut held = Vec::new();
    for number in 0..12 {
        let from = if number % 2 == 0 { "127.0.0.9" } else { "127.0.0.10" };
        let mut stream = connect_from(from, address).await;
        let begin = format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"
        );
        stream.write_all(begin.as_bytes()).await.expect("written");
        held.push(stream);
    }
    for _ in 0..4 {
        assert_eq!(get(&gateway, "/v1/tools").await.status, 200, "the owner gets in at once");
    }
}

#[tokio::test]
async fn a_trusted_proxy_is_not_one_client() {
    let (_fixture, web) = http_fixture().await;
    let server = json!({ "surface": "direct", "trusted_proxies": ["127.0.0.9"] });
    let limits = json!({ "connections": 16, "idle_timeout": "10m" });
    let gateway = configured(json!({ "mcpServers": { "web": web }, "server": server, "limits": limits })).await;
    let address = gateway.address();
    let mut held = Vec::new();
    for _ in 0..14 {
        let mut stream = connect_from("127.0.0.9", address).await;
        assert_eq!(health(&mut stream, address).await.as_deref(), Some("HTTP/1.1 200 OK"));
        held.push(stream);
    }
    for stream in &mut held {
        assert_eq!(health(stream, address).await.as_deref(), Some("HTTP/1.1 200 OK"), "none was closed");
    }
    assert_eq!(get(&gateway, "/v1/tools").await.status, 200);
}

#[tokio::test]
async fn what_a_session_keeps_of_its_client_is_bounded() {
    let (_fixture, gateway, narrow) = crowded(json!({})).await;
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {},
        "clientInfo": { "name": "x".repeat(1_000_000), "version": "1" } } });
    let reply = gateway.send(as_bearer(&narrow.secret, "POST", "/mcp").json(hello.to_string())).await;
    assert_eq!(reply.value()["error"]["code"], -32602, "{}", reply.status);
    let large = json!({ "sampling": { "x": "x".repeat(1_000_000) } });
    let envelope = StatelessEnvelope::default().capabilities(large).unvalidated();
    let client = StatelessClient::over_http(gateway.address(), "/mcp?surface=direct", Some(&narrow.secret), envelope);
    assert_eq!(client.call("echo", json!({ "text": "x" })).await.code(), -32602);
    let fine = SessionClient::over_http(
        gateway.address(),
        "/mcp?surface=direct",
        Some(&narrow.secret),
        ClientOptions::default(),
    );
    assert_eq!(fine.await.text("echo", json!({ "text": "hi" })).await, "hi");
}

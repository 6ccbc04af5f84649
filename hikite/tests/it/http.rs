//! The rules of the HTTP transports, each with a negative test.

use std::time::{Duration, Instant};

use hikite_testkit::gateway::{ClientOptions, HttpReply, HttpRequest, SETTLE_TIME, TestGateway, eventually};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::{configured, gateway, http_fixture};

const PING: &str = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;

fn initialize(revision: &str) -> String {
    json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": revision, "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } })
    .to_string()
}

async fn empty() -> TestGateway {
    gateway(json!({})).await
}

#[track_caller]
fn refused(reply: &HttpReply, status: u16, message: &str) {
    let body = reply.value();
    assert_eq!(
        (reply.status, &body["error"]["code"], &body["error"]["message"]),
        (status, &json!(-32600), &json!(message))
    );
    assert_eq!(body["id"], Value::Null);
}

#[tokio::test]
async fn what_the_client_accepts_and_sends_must_fit() {
    let gateway = empty().await;
    let session = gateway.client("").await.session();
    let post = || gateway.request("POST", "/mcp").json(PING).header("mcp-session-id", &session);
    assert_eq!(gateway.send(post()).await.status, 200);
    let both = "The client must accept both application/json and text/event-stream.";
    for accept in ["application/json", "text/event-stream", "text/html"] {
        refused(&gateway.send(post().header("accept", accept)).await, 406, both);
    }
    refused(&gateway.send(post().without("accept")).await, 406, both);
    for accept in ["*/*", "application/*, text/*", "text/event-stream;q=0.5, application/json"] {
        assert_eq!(gateway.send(post().header("accept", accept)).await.status, 200, "{accept}");
    }
    let kind = "The body must be application/json.";
    for sent in ["text/plain", "application/json-patch+json", "multipart/form-data"] {
        refused(&gateway.send(post().header("content-type", sent)).await, 415, kind);
    }
    refused(&gateway.send(post().without("content-type")).await, 415, kind);
    assert_eq!(gateway.send(post().header("content-type", "application/json; charset=utf-8")).await.status, 200);
    let stream = gateway.request("GET", "/mcp").header("mcp-session-id", &session).header("accept", "application/json");
    refused(&gateway.send(stream).await, 406, "The client must accept text/event-stream.");
    let unknown = post().header("mcp-protocol-version", "1999-01-01");
    refused(&gateway.send(unknown).await, 400, "The `MCP-Protocol-Version` header has an unknown revision.");
}

#[tokio::test]
async fn a_body_that_is_no_message_is_told_so() {
    let gateway = empty().await;
    let session = gateway.client("").await.session();
    for (body, code) in [
        ("{", -32700),
        ("", -32700),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"} trailing", -32700),
        ("\u{feff}nonsense", -32700),
        ("42", -32600),
        ("{}", -32600),
        ("\"ping\"", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1}", -32600),
    ] {
        let reply = gateway.send(gateway.request("POST", "/mcp").json(body).header("mcp-session-id", &session)).await;
        assert_eq!((reply.status, &reply.value()["error"]["code"]), (400, &json!(code)), "{body:?}");
    }
    let not_utf8: &[u8] = b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\"}";
    let reply = gateway.send(gateway.request("POST", "/mcp").json(not_utf8).header("mcp-session-id", &session)).await;
    assert_eq!((reply.status, &reply.value()["error"]["code"]), (400, &json!(-32700)));
}

#[tokio::test]
async fn a_session_is_needed_known_and_ends() {
    let gateway = empty().await;
    let missing = "The `Mcp-Session-Id` header is missing. Start with `initialize`.";
    let unknown = "There is no such session. Start again with `initialize`.";
    let client = gateway.client("").await;
    for method in ["POST", "GET", "DELETE"] {
        let request = || {
            let request = gateway.request(method, "/mcp").header("accept", "text/event-stream");
            if method == "POST" { request.json(PING) } else { request }
        };
        refused(&gateway.send(request()).await, 400, missing);
        refused(
            &gateway.send(request().header("mcp-session-id", "0123456789abcdef0123456789abcdef")).await,
            404,
            unknown,
        );
    }
    assert_eq!(client.delete().await, 204);
    assert_eq!(client.delete().await, 404);
    let after = gateway.request("POST", "/mcp").json(PING).header("mcp-session-id", &client.session());
    refused(&gateway.send(after).await, 404, unknown);
    let stale =
        gateway.request("POST", "/mcp").json(initialize("2025-11-25")).header("mcp-session-id", &client.session());
    let reply = gateway.send(stale).await;
    assert_eq!(reply.status, 200);
    assert_ne!(reply.headers["mcp-session-id"], client.session());
}

#[tokio::test]
async fn ending_a_session_ends_its_stream_and_a_second_stream_ends_the_first() {
    let gateway = empty().await;
    let client = gateway.client("").await;
    let stream = || {
        gateway.request("GET", "/mcp").header("accept", "text/event-stream").header("mcp-session-id", &client.session())
    };
    let ends = async |mut events: hikite_testkit::gateway::SseEvents| {
        tokio::time::timeout(Duration::from_secs(5), events.next()).await.expect("the stream ends")
    };
    let first = stream().open(gateway.address()).await;
    assert_eq!((first.status, first.is_stream()), (200, true));
    let second = stream().open(gateway.address()).await;
    assert_eq!(ends(first.events()).await, None);
    client.delete().await;
    assert_eq!(ends(second.events()).await, None);
}

#[tokio::test]
async fn an_unused_session_is_forgotten() {
    let gateway = configured(json!({ "limits": { "session_idle": "2s" } })).await;
    let client = gateway.client("").await;
    let ping = || gateway.request("POST", "/mcp").json(PING).header("mcp-session-id", &client.session());
    assert_eq!(gateway.send(ping()).await.status, 200);
    tokio::time::sleep(Duration::from_secs(4)).await;
    assert_eq!(gateway.send(ping()).await.status, 404);
}

#[tokio::test]
async fn a_session_with_an_open_stream_is_not_forgotten() {
    let gateway = configured(json!({ "limits": { "session_idle": "300ms" } })).await;
    let client = gateway.client("").await;
    client.listen().await;
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(client.request("ping", json!({})).await, Ok(json!({})));
}

#[tokio::test]
async fn the_number_of_sessions_has_a_limit() {
    let gateway = configured(json!({ "limits": { "sessions": 2 } })).await;
    let (first, second) = (gateway.client("").await, gateway.client("").await);
    // Sessions with an open stream are in use and are not evicted.
    first.listen().await;
    second.listen().await;
    let third = || gateway.request("POST", "/mcp").json(initialize("2025-11-25"));
    let reply = gateway.send(third()).await;
    assert_eq!((reply.status, &reply.value()["code"]), (503, &json!("OVERLOADED")));
    assert!(reply.headers.contains_key("retry-after"));
    first.delete().await;
    assert_eq!(gateway.send(third()).await.status, 200);
    assert_eq!(gateway.send(third()).await.status, 200, "the one before it is idle");
    assert_eq!(second.request("ping", json!({})).await, Ok(json!({})));
}

#[tokio::test]
async fn every_revision_is_negotiated() {
    let gateway = empty().await;
    for (asked, agreed) in [
        ("2024-11-05", "2024-11-05"),
        ("2025-03-26", "2025-03-26"),
        ("2025-06-18", "2025-06-18"),
        ("2025-11-25", "2025-11-25"),
        ("1999-01-01", "2025-11-25"),
    ] {
        let reply = gateway.send(gateway.request("POST", "/mcp").json(initialize(asked))).await;
        let result = &reply.value()["result"];
        assert_eq!((&result["protocolVersion"], &result["serverInfo"]["name"]), (&json!(agreed), &json!("hikite")));
        let capabilities: Vec<&String> = result["capabilities"].as_object().expect("capabilities").keys().collect();
        let expected: &[&str] = if asked == "2024-11-05" {
            &["tools", "resources", "prompts", "logging"]
        } else {
            &["tools", "resources", "prompts", "logging", "completions"]
        };
        assert_eq!(capabilities, expected, "{asked}");
    }
    let bad = json!({ "jsonrpc": "2.0", "id": 5, "method": "initialize", "params": {} }).to_string();
    let reply = gateway.send(gateway.request("POST", "/mcp").json(bad)).await;
    assert_eq!((reply.status, &reply.value()["error"]["code"], &reply.value()["id"]), (200, &json!(-32602), &json!(5)));
}

#[tokio::test]
async fn several_messages_at_once_belong_to_one_revision() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let batch = json!([
        { "jsonrpc": "2.0", "id": 1, "method": "ping" },
        { "jsonrpc": "2.0", "method": "notifications/roots/list_changed" },
        { "jsonrpc": "2.0", "id": "two", "method": "tools/call", "params": { "name": "echo", "arguments": { "text": "batched" } } },
        { "jsonrpc": "2.0", "id": 3, "method": "nonsense" },
        7,
    ])
    .to_string();
    for revision in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let client = gateway.client_with("direct", ClientOptions { revision, ..ClientOptions::default() }).await;
        let send = async |body: &str| {
            gateway
                .send(gateway.request("POST", "/mcp").json(body.to_owned()).header("mcp-session-id", &client.session()))
                .await
        };
        let reply = send(&batch).await;
        if revision != "2025-03-26" {
            let message =
                "not a JSON-RPC 2.0 message: the negotiated revision does not allow several messages in one body";
            refused(&reply, 400, message);
            continue;
        }
        let answers = reply.value();
        let by_id = |id: Value| {
            answers.as_array().expect("answers").iter().find(|answer| answer["id"] == id).expect("answered")
        };
        assert_eq!(answers.as_array().map(Vec::len), Some(4));
        assert_eq!(by_id(json!(1))["result"], json!({}));
        assert_eq!(by_id(json!("two"))["result"]["content"][0]["text"], "batched");
        assert_eq!(by_id(json!(3))["error"]["code"], -32601);
        assert_eq!(by_id(Value::Null)["error"]["code"], -32600);
        assert_eq!(send(r#"[{"jsonrpc":"2.0","method":"notifications/initialized"}]"#).await.status, 202);
        assert_eq!(send("[]").await.status, 400);
    }
}

#[tokio::test]
async fn a_body_over_the_limit_is_refused_and_the_connection_closed() {
    let gateway = configured(json!({ "limits": { "body_bytes": "4KiB" } })).await;
    let session = gateway.client("").await.session();
    let ping = |padding: usize| format!("{PING}{}", " ".repeat(padding));
    let post = |body: String| gateway.request("POST", "/mcp").json(body).header("mcp-session-id", &session);
    assert_eq!(gateway.send(post(ping(4096 - PING.len()))).await.status, 200);
    let reply = gateway.send(post(ping(4097 - PING.len()))).await;
    assert_eq!((reply.status, &reply.value()["code"]), (413, &json!("PAYLOAD_TOO_LARGE")));
    assert_eq!(reply.value()["hint"], "Send less, or raise `limits.body_bytes`.");
    assert_eq!(reply.headers["connection"], "close");
    // Also without a content length.
    let mut socket = TcpStream::connect(gateway.address()).await.expect("a connection");
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\nmcp-session-id: {session}\r\naccept: */*\r\ncontent-type: application/json\r\ntransfer-encoding: chunked\r\n\r\n",
        gateway.token()
    );
    socket.write_all(head.as_bytes()).await.expect("sent");
    let chunk = format!("800\r\n{}\r\n", " ".repeat(0x800));
    for _ in 0..4 {
        // It may have been rejected and closed by now.
        let _ = socket.write_all(chunk.as_bytes()).await;
    }
    assert!(read_to_end(&mut socket).await.starts_with("HTTP/1.1 413"));
}

/// Reads until the peer closes, which it must.
async fn read_to_end(socket: &mut TcpStream) -> String {
    let mut all = Vec::new();
    let reading = async {
        let mut part = [0; 4096];
        while let Ok(count @ 1..) = socket.read(&mut part).await {
            all.extend_from_slice(&part[..count]);
        }
    };
    tokio::time::timeout(Duration::from_secs(5), reading).await.expect("the connection is closed");
    String::from_utf8_lossy(&all).into_owned()
}

#[tokio::test]
async fn slow_and_silent_connections_are_cut() {
    let limits = json!({ "header_timeout": "300ms", "body_timeout": "300ms", "idle_timeout": "600ms" });
    let gateway = configured(json!({ "limits": limits })).await;
    let connect = async || TcpStream::connect(gateway.address()).await.expect("a connection");
    let begin = Instant::now();

    let mut headers = connect().await;
    headers.write_all(b"POST /mcp HTTP/1.1\r\nhost: local").await.expect("sent");
    assert!(!read_to_end(&mut headers).await.contains("200 OK"));

    let mut trickling = connect().await;
    let started = Instant::now();
    while trickling.write_all(b"GET").await.is_ok() {
        assert!(started.elapsed() < Duration::from_secs(8), "headers may come for ever");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }

    let mut body = connect().await;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer {}\r\naccept: */*\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n{{",
        gateway.token()
    );
    body.write_all(head.as_bytes()).await.expect("sent");
    let answer = read_to_end(&mut body).await;
    assert!(answer.starts_with("HTTP/1.1 408") && answer.contains("The body did not arrive in time."), "{answer}");

    let mut silent = connect().await;
    assert_eq!(read_to_end(&mut silent).await, "");

    let mut idle = connect().await;
    idle.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("sent");
    assert!(read_to_end(&mut idle).await.starts_with("HTTP/1.1 200"));
    assert!(begin.elapsed() < Duration::from_secs(30));
}

#[tokio::test]
async fn a_running_call_does_not_count_as_a_silent_connection() {
    let (_fixture, server) = http_fixture().await;
    let limits = json!({ "header_timeout": "200ms", "body_timeout": "200ms", "idle_timeout": "300ms" });
    let gateway = configured(json!({ "mcpServers": { "a": server }, "limits": limits })).await;
    let client = gateway.client("direct").await;
    client.listen().await;
    assert_eq!(client.text("sleep", json!({ "ms": 1000 })).await, "slept 1000 ms");
    let told = client.notifications("notifications/tools/list_changed").len();
    client.text("add_tool", json!({ "name": "late" })).await;
    client.told("notifications/tools/list_changed", told + 1).await;
}

#[tokio::test]
async fn the_number_of_connections_has_a_limit_and_who_finds_no_place_is_told() {
    let gateway = configured(json!({ "limits": { "connections": 2, "caller_share": 100 } })).await;
    assert!(eventually_open(&gateway).await);
    tokio::time::sleep(SETTLE_TIME).await;
    // Both are in use: an idle connection would be closed instead.
    let stream = || gateway.request("GET", "/sse").open(gateway.address());
    let held = [stream().await, stream().await];
    assert!(held.iter().all(hikite_testkit::gateway::StreamingReply::is_stream));
    let mut third = TcpStream::connect(gateway.address()).await.expect("a connection");
    let told = read_to_end(&mut third).await;
    assert!(told.starts_with("HTTP/1.1 503 ") && told.contains("\r\nretry-after: 1\r\n"), "{told}");
    drop(held);
    assert!(eventually_open(&gateway).await);
}

async fn eventually_open(gateway: &TestGateway) -> bool {
    for _ in 0..100 {
        let answer = HttpRequest::new("GET", "/health").try_open(gateway.address()).await;
        if answer.is_ok_and(|answer| answer.status == 200) {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    false
}

#[tokio::test]
async fn an_answer_is_json_unless_something_comes_before_it() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    let call = |tool: &str, meta: Value| {
        let params = json!({ "name": tool, "arguments": { "text": "x" }, "_meta": meta });
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }).to_string();
        gateway.request("POST", "/mcp").json(body).header("mcp-session-id", &client.session())
    };
    let plain = gateway.send(call("echo", json!({}))).await;
    assert_eq!(plain.headers["content-type"], "application/json");
    let mut stream = call("test_tool_with_progress", json!({ "progressToken": 1 })).open(gateway.address()).await;
    assert!(stream.is_stream());
    assert_eq!(stream.headers.remove("cache-control").expect("said"), "no-cache, no-transform");
    let mut events = stream.events();
    let mut kinds = Vec::new();
    while let Some((name, data)) = events.next().await {
        let message: Value = serde_json::from_str(&data).expect("JSON");
        kinds.push((name, message["method"].as_str().unwrap_or("answer").to_owned()));
    }
    let progress = ("message".to_owned(), "notifications/progress".to_owned());
    assert_eq!(kinds, [progress.clone(), progress.clone(), progress, ("message".to_owned(), "answer".to_owned())]);
}

#[tokio::test]
async fn an_unknown_surface_is_refused() {
    let gateway = empty().await;
    let reply = gateway.send(gateway.request("POST", "/mcp?surface=rooms").json(initialize("2025-11-25"))).await;
    assert_eq!((reply.status, &reply.value()["error"]), (400, &json!("Unknown surface in `surface=rooms`.")));
    assert_eq!(reply.value()["hint"], "Use one or more of: categories, direct, modules, search.");
}

#[tokio::test]
async fn the_old_transport_carries_a_whole_conversation() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let stream = gateway
        .request("GET", "/sse?surface=direct")
        .header("accept", "text/event-stream")
        .open(gateway.address())
        .await;
    assert_eq!((stream.status, stream.is_stream()), (200, true));
    let mut events = stream.events();
    let (name, endpoint) = events.next().await.expect("an endpoint");
    assert_eq!(name, "endpoint");
    assert!(endpoint.starts_with("/messages?sessionId="), "{endpoint}");
    let post =
        async |message: Value| gateway.send(gateway.request("POST", &endpoint).json(message.to_string())).await.status;
    let capabilities = json!({ "elicitation": {} });
    let hello = json!({ "protocolVersion": "2024-11-05", "capabilities": capabilities, "clientInfo": { "name": "old", "version": "1" } });
    assert_eq!(post(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello })).await, 202);
    let mut next = async || {
        let (name, data) =
            tokio::time::timeout(Duration::from_secs(5), events.next()).await.expect("in time").expect("an event");
        assert_eq!(name, "message");
        serde_json::from_str::<Value>(&data).expect("JSON")
    };
    assert_eq!(next().await["result"]["protocolVersion"], "2024-11-05");
    assert_eq!(post(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" })).await, 202);
    assert_eq!(post(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/list" })).await, 202);
    let listed = loop {
        let message = next().await;
        if message["id"] == 2 {
            break message;
        }
    };
    assert_eq!(listed["result"]["tools"].as_array().map(Vec::len), Some(33));
    let ask = json!({ "name": "ask", "arguments": { "kind": "elicitation", "marker": "old" }, "_meta": { "progressToken": 9 } });
    assert_eq!(post(json!({ "jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": ask })).await, 202);
    let question = loop {
        let message = next().await;
        if message["method"] == "elicitation/create" {
            break message;
        }
    };
    assert_eq!(question["params"]["message"], "old");
    assert_eq!(post(json!({ "jsonrpc": "2.0", "id": question["id"], "result": { "action": "cancel" } })).await, 202);
    assert_eq!(next().await["result"]["content"][0]["text"], r#"{"action":"cancel"}"#);
    assert_eq!(gateway.send(gateway.request("POST", "/messages?sessionId=other").json(PING)).await.status, 404);
    drop(events);
    let gone = async || gateway.send(gateway.request("POST", &endpoint).json(PING)).await.status == 404;
    let begin = Instant::now();
    while !gone().await {
        assert!(begin.elapsed() < Duration::from_secs(60), "the channel outlives its stream");
    }
}

#[tokio::test]
async fn leaving_the_old_transport_cancels_what_runs() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let mut events = gateway.request("GET", "/sse?surface=direct").open(gateway.address()).await.events();
    let (_, endpoint) = events.next().await.expect("an endpoint");
    let post =
        async |message: &str| gateway.send(gateway.request("POST", &endpoint).json(message.to_owned())).await.status;
    post(&initialize("2024-11-05")).await;
    post(r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"hang","arguments":{}}}"#).await;
    assert!(eventually(|| fixture.calls() == 1).await);
    drop(events);
    assert!(eventually(|| fixture.cancelled().len() == 1).await);
}

#[tokio::test]
async fn a_connection_may_rest_between_requests_for_longer_than_headers_may_take() {
    let limits = json!({ "header_timeout": "300ms", "idle_timeout": "5s" });
    let gateway = configured(json!({ "limits": limits })).await;
    let mut socket = TcpStream::connect(gateway.address()).await.expect("a connection");
    for round in 0..3 {
        socket.write_all(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await.expect("sent");
        let mut part = [0; 4096];
        let count = tokio::time::timeout(Duration::from_secs(5), socket.read(&mut part))
            .await
            .expect("in time")
            .expect("an open connection");
        assert!(part[..count].starts_with(b"HTTP/1.1 200"), "round {round}: {count} bytes");
        tokio::time::sleep(Duration::from_millis(700)).await;
    }
}

#[tokio::test]
async fn ending_sessions_ends_the_connections_that_were_theirs() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    gateway.client("direct").await.call("echo", json!({ "text": "x" })).await;
    let before = fixture.sessions();
    let mut clients = Vec::new();
    for number in 0..10 {
        let hello = ClientOptions { capabilities: json!({ "elicitation": {} }), ..ClientOptions::answering("x") };
        let client = gateway.client_with("direct", hello).await;
        client.listen().await;
        client.call("echo", json!({ "text": "x" })).await;
        // Every other client disconnects during a call.
        let running = (number % 2 == 1).then(|| client.begin_call("hang", json!({})));
        clients.push((client, running));
    }
    assert!(eventually(|| fixture.calls() == 16).await);
    assert_eq!(fixture.sessions(), before + 10);
    for (client, running) in clients {
        drop(running);
        assert_eq!(client.delete().await, 204);
    }
    let released = eventually(|| fixture.sessions() <= before).await;
    assert!(released, "{} sessions are still open, {before} were before", fixture.sessions());
}

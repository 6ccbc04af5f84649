//! Clients of 2026-07-28: the rules of that revision, each with a negative test, whatever the upstream.

use std::time::Duration;

use hikite_testkit::fixture::{Era, Fixture};
use hikite_testkit::gateway::{
    ClientOptions, LIMIT, REVISION, SessionClient, StatelessClient, StatelessEnvelope, TestGateway, eventually,
};
use serde_json::{Value, json};

use crate::bridge::upstream;
use crate::{configured, gateway, http_fixture, stdio};

async fn with_fixture() -> (Fixture, TestGateway) {
    let (fixture, server) = upstream(Era::Legacy).await;
    (fixture, gateway(json!({ "a": server })).await)
}

fn says_name() -> Value {
    json!({ "action": "accept", "content": { "name": "Ada" } })
}

const ASKS: &str = "test_input_required_result_elicitation";

#[tokio::test]
async fn discovery_tells_revisions_and_capabilities() {
    let (_fixture, gateway) = with_fixture().await;
    let outcome = gateway.stateless("direct", StatelessEnvelope::default()).request("server/discover", json!({})).await;
    let found = outcome.result();
    assert_eq!(found["resultType"], "complete");
    assert_eq!(found["supportedVersions"][0], REVISION);
    assert_eq!(found["capabilities"]["tools"], json!({ "listChanged": true }));
    assert_eq!(found["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "hikite");
    assert!(found["ttlMs"].is_u64() && found["cacheScope"] == "private");
}

#[tokio::test]
async fn a_request_must_say_who_sends_it() {
    let gateway = gateway(json!({})).await;
    let missing = [
        StatelessEnvelope::default().meta("clientCapabilities", Value::Null),
        StatelessEnvelope::default().meta("protocolVersion", Value::Null),
        StatelessEnvelope::default().meta("logLevel", "loud"),
        StatelessEnvelope::default().meta("clientCapabilities", "all"),
    ];
    for envelope in missing {
        let outcome = gateway.stateless("direct", envelope).request("tools/list", json!({})).await;
        assert_eq!((outcome.status, outcome.code()), (Some(400), -32602), "{}", outcome.text);
        assert!(outcome.text.contains(r#""id":1"#), "{}", outcome.text);
    }
    let unnamed = StatelessEnvelope::default().meta("clientInfo", Value::Null);
    gateway.stateless("direct", unnamed).request("tools/list", json!({})).await.result();
}

#[tokio::test]
async fn headers_must_say_what_the_body_says() {
    let (_fixture, gateway) = with_fixture().await;
    let wrong = [
        StatelessEnvelope::default().without_header("mcp-method"),
        StatelessEnvelope::default().header("mcp-method", "tools/list"),
        StatelessEnvelope::default().header("mcp-method", "TOOLS/CALL"),
        StatelessEnvelope::default().without_header("mcp-name"),
        StatelessEnvelope::default().header("mcp-name", "other"),
        StatelessEnvelope::default().header("mcp-name", "=?base64?%%%?="),
        StatelessEnvelope::default().without_header("mcp-protocol-version"),
        StatelessEnvelope::default().header("mcp-protocol-version", "2025-11-25"),
        StatelessEnvelope::default().revision("v999.0.0").header("mcp-protocol-version", REVISION),
    ];
    for envelope in wrong {
        let outcome = gateway.stateless("direct", envelope).call("echo", json!({ "text": "x" })).await;
        assert_eq!((outcome.status, outcome.code()), (Some(400), -32020), "{}", outcome.text);
    }
    let encoded = StatelessEnvelope::default().header("mcp-name", "=?base64?ZWNobw==?=");
    assert_eq!(gateway.stateless("direct", encoded).text("echo", json!({ "text": "x" })).await, "x");
}

#[tokio::test]
async fn arguments_that_a_tool_wants_in_headers_are_compared() {
    let (_fixture, gateway) = with_fixture().await;
    let call = async |envelope: StatelessEnvelope, arguments: Value| {
        gateway.stateless("direct", envelope).call("mirrored", arguments).await
    };
    let region = StatelessEnvelope::default().header("mcp-param-region", "eu");
    assert_eq!(call(region.clone(), json!({ "region": "eu" })).await.status, Some(200));
    assert_eq!(call(region.clone(), json!({ "region": "eu", "count": null })).await.status, Some(200));
    let counted = region.clone().header("mcp-param-count", "42");
    assert_eq!(call(counted, json!({ "region": "eu", "count": 42.0 })).await.status, Some(200));
    for (envelope, arguments) in [
        (StatelessEnvelope::default(), json!({ "region": "eu" })),
        (region.clone(), json!({ "region": "us" })),
        (region.clone(), json!({ "region": "eu", "inner": { "tenant": "t" } })),
        (region.clone().header("mcp-param-dry", "false"), json!({ "region": "eu", "dry": true })),
    ] {
        let outcome = call(envelope, arguments).await;
        assert_eq!((outcome.status, outcome.code()), (Some(400), -32020), "{}", outcome.text);
    }
}

#[tokio::test]
async fn an_unknown_revision_is_told_the_known_ones() {
    let gateway = gateway(json!({})).await;
    let client = gateway.stateless("direct", StatelessEnvelope::default().revision("1900-01-01"));
    let outcome = client.request("server/discover", json!({})).await;
    assert_eq!((outcome.status, outcome.code()), (Some(400), -32022));
    let data = &outcome.error()["data"];
    assert_eq!((&data["requested"], &data["supported"][0]), (&json!("1900-01-01"), &json!(REVISION)));
}

#[tokio::test]
async fn methods_of_sessions_do_not_exist() {
    let gateway = gateway(json!({})).await;
    let client = gateway.stateless("direct", StatelessEnvelope::default());
    for method in [
        "initialize",
        "ping",
        "logging/setLevel",
        "resources/subscribe",
        "resources/unsubscribe",
        "roots/list",
        "tasks/list",
        "tasks/result",
        "no/such",
    ] {
        let outcome = client.request(method, json!({})).await;
        assert_eq!((outcome.status, outcome.code()), (Some(404), -32601), "{method}");
    }
    for method in ["GET", "DELETE"] {
        let request = gateway.request(method, "/mcp").header("mcp-protocol-version", REVISION);
        assert_eq!(gateway.send(request).await.status, 405, "{method}");
    }
}

#[tokio::test]
async fn what_is_not_there_is_invalid_and_says_what() {
    let (_fixture, gateway) = with_fixture().await;
    let client = gateway.stateless("direct", StatelessEnvelope::default());
    let missing = client.request("resources/read", json!({ "uri": "test://none" })).await;
    assert_eq!((missing.code(), &missing.error()["data"]["uri"]), (-32602, &json!("test://none")));
    assert_eq!(client.call("no_such_tool", json!({})).await.code(), -32602);
    assert_eq!(client.request("prompts/get", json!({ "name": "none" })).await.code(), -32602);
    assert_eq!(client.request("tools/list", json!({ "cursor": "none" })).await.code(), -32602);
    // Without the extension, tasks are not revealed.
    let task = client.request("tasks/get", json!({ "taskId": "t" })).await;
    assert_eq!((task.status, task.code()), (Some(400), -32021));
    let task = gateway.stateless("direct", StatelessEnvelope::default().with_tasks());
    assert_eq!(task.request("tasks/get", json!({ "taskId": "t" })).await.code(), -32602);
}

#[tokio::test]
async fn lists_keep_their_order_and_may_be_kept() {
    let (_fixture, gateway) = with_fixture().await;
    let client = gateway.stateless("direct", StatelessEnvelope::default());
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
        let (first, second) = (client.request(method, json!({})).await, client.request(method, json!({})).await);
        let list = first.result();
        assert_eq!(list, second.result());
        assert!(list["ttlMs"].is_u64() && list["cacheScope"] == "private", "{method}");
    }
    let read = client.request("resources/read", json!({ "uri": "test://static-text" })).await.result();
    assert!(read["ttlMs"].is_u64() && read["cacheScope"].is_string());
}

#[tokio::test]
async fn a_ticket_is_good_once_for_its_own_request() {
    let (_fixture, gateway) = with_fixture().await;
    let client = gateway.stateless("direct", StatelessEnvelope::capable());
    let asked = client.call(ASKS, json!({})).await.result();
    assert_eq!(asked["resultType"], "input_required");
    let state = asked["requestState"].as_str().expect("a ticket");
    let answers = json!({ "user_name": says_name() });
    let again = |name: &str, state: &str| {
        let params = json!({ "name": name, "arguments": {}, "inputResponses": answers, "requestState": state });
        client.request("tools/call", params)
    };
    assert_eq!(again(ASKS, &format!("{state}-TAMPERED")).await.code(), -32602);
    assert_eq!(again(ASKS, &state[1..]).await.code(), -32602);
    assert_eq!(again("echo", state).await.code(), -32602);
    assert_eq!(again(ASKS, state).await.first_text(), "Hello, Ada!");
    assert_eq!(again(ASKS, state).await.code(), -32602, "used up");
}

#[tokio::test]
async fn a_call_nobody_comes_back_for_is_cancelled() {
    let (fixture, server) = upstream(Era::Legacy).await;
    let limits = json!({ "question_timeout": "3s", "suspended_calls": 1 });
    let gateway = configured(json!({ "mcpServers": { "a": server }, "limits": limits })).await;
    let client = gateway.stateless("direct", StatelessEnvelope::capable());
    let asked = client.call(ASKS, json!({})).await.result();
    let refused = client.call(ASKS, json!({})).await.error();
    assert_eq!(refused["data"]["code"], "OVERLOADED", "{refused}");
    assert!(eventually(|| fixture.cancelled().len() == 2).await);
    let late = json!({ "name": ASKS, "arguments": {}, "requestState": asked["requestState"],
        "inputResponses": { "user_name": says_name() } });
    assert_eq!(client.request("tools/call", late).await.code(), -32602);
}

#[tokio::test]
async fn what_the_client_cannot_answer_is_not_asked() {
    let (_fixture, gateway) = with_fixture().await;
    let sampling = StatelessEnvelope::default().capabilities(json!({ "sampling": {} }));
    let outcome = gateway.stateless("direct", sampling).call(ASKS, json!({})).await;
    assert_eq!((outcome.status, outcome.code()), (Some(400), -32021), "{}", outcome.text);
    assert_eq!(outcome.error()["data"]["requiredCapabilities"], json!({ "elicitation": {} }));
}

#[tokio::test]
async fn logs_come_only_when_asked_for_and_progress_on_its_own_stream() {
    let (_fixture, gateway) = with_fixture().await;
    let quiet = gateway.stateless("direct", StatelessEnvelope::default());
    let outcome = quiet.call("test_tool_with_logging", json!({})).await;
    assert!(outcome.notifications.is_empty(), "{:?}", outcome.notifications);
    let curious = gateway.stateless("direct", StatelessEnvelope::default().log_level("debug").progress_token("p"));
    assert!(!curious.call("test_tool_with_logging", json!({})).await.told("notifications/message").is_empty());
    let steps = curious.call("test_tool_with_progress", json!({})).await.told("notifications/progress");
    assert!(steps.len() >= 3 && steps.iter().all(|step| step["progressToken"] == "p"), "{steps:?}");
}

#[tokio::test]
async fn a_listener_hears_what_it_asked_for_and_a_farewell() {
    let (fixture, server) = upstream(Era::Legacy).await;
    let mut gateway = gateway(json!({ "a": server })).await;
    let client = gateway.stateless("direct", StatelessEnvelope::default());
    client.text("echo", json!({ "text": "up" })).await;
    let wish =
        json!({ "toolsListChanged": true, "resourceSubscriptions": ["test://watched-resource", "other://none"] });
    let heard = client.listen(wish).await;
    let honoured = json!({ "toolsListChanged": true, "resourceSubscriptions": ["test://watched-resource"] });
    assert_eq!(heard.acknowledged, honoured);
    let prompts = client.listen(json!({ "promptsListChanged": true })).await;
    fixture.add_tool("new_tool");
    heard.told("notifications/tools/list_changed", 1).await;
    client.text("touch_resource", json!({ "uri": "test://watched-resource" })).await;
    let updated = heard.told("notifications/resources/updated", 1).await;
    assert_eq!(updated[0]["uri"], "test://watched-resource");
    assert!(prompts.all().is_empty(), "{:?}", prompts.all());
    gateway.terminate();
    let farewell = heard.ended().await.result();
    assert_eq!(farewell["resultType"], "complete");
    drop(prompts);
    assert!(gateway.exit().await.success());
}

#[tokio::test]
async fn a_session_and_single_requests_share_one_pipe() {
    let folder = tempfile::tempdir().expect("a folder");
    let config = json!({ "mcpServers": { "a": stdio(&[]) }, "server": { "surface": ["direct"] } });
    std::fs::write(folder.path().join("hikite.json"), config.to_string()).expect("a file");
    let client = StatelessClient::over_stdio(&crate::PROGRAMS, folder.path(), &[], StatelessEnvelope::default());
    assert_eq!(client.text("echo", json!({ "text": "alone" })).await, "alone");
    let hello = json!({ "jsonrpc": "2.0", "id": "s", "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    client.send_line(&hello.to_string());
    client.send_line(r#"{"jsonrpc":"2.0","id":"p","method":"ping"}"#);
    let both = || client.stray().iter().filter(|told| told["id"] == "s" || told["id"] == "p").count() == 2;
    assert!(eventually(both).await, "{:?}", client.stray());
    let hanging = client.begin_call("hang", json!({}));
    assert_eq!(client.text("echo", json!({ "text": "still alone" })).await, "still alone");
    hanging.cancel();
    let cancelled = async || client.text("cancelled", json!({})).await != "[]";
    let begin = std::time::Instant::now();
    while !cancelled().await {
        assert!(begin.elapsed() < LIMIT);
    }
}

#[tokio::test]
async fn categories_work_without_a_session_too() {
    let (_fixture, server) = http_fixture().await;
    let gateway = configured(json!({ "mcpServers": { "a": server },
        "categories": { "c": { "description": "d", "server": "a" } } }))
    .await;
    let client = gateway.stateless("categories", StatelessEnvelope::default());
    let tools = client.request("tools/list", json!({})).await.result();
    assert_eq!(tools["tools"].as_array().map(Vec::len), Some(2));
    let arguments = json!({ "category": "c", "name": "echo", "args": { "text": "hi" } });
    assert_eq!(client.text("call-category-tool", arguments).await, "hi");
}

#[tokio::test]
async fn a_call_that_was_given_up_takes_its_connection_along() {
    // Its server may still ask a question for it, which the next call must not receive.
    let gateway = gateway(json!({ "a": crate::with(stdio(&[]), "share", "never") })).await;
    let client = gateway.stateless("direct", StatelessEnvelope::capable());
    assert_eq!(client.text("count", json!({})).await, "1");
    assert_eq!(client.text("count", json!({})).await, "2", "calls that follow one another meet the same process");
    let given_up = client.begin_call("hang", json!({}));
    tokio::time::sleep(Duration::from_millis(200)).await;
    drop(given_up);
    tokio::time::sleep(Duration::from_millis(100)).await;
    assert_eq!(client.text("count", json!({})).await, "1");
}

#[tokio::test]
async fn a_suspended_call_holds_nobody_up() {
    let (_fixture, server) = upstream(Era::Legacy).await;
    let gateway = gateway(json!({ "a": crate::with(server, "concurrency", 1) })).await;
    let client = gateway.stateless("direct", StatelessEnvelope::capable());
    let asked = client.call(ASKS, json!({})).await.result();
    for _ in 0..3 {
        assert_eq!(client.text("echo", json!({ "text": "x" })).await, "x");
    }
    let answer = json!({ "name": ASKS, "arguments": {}, "requestState": asked["requestState"],
        "inputResponses": { "user_name": says_name() } });
    assert_eq!(client.request("tools/call", answer).await.first_text(), "Hello, Ada!");
    assert_eq!(client.text("echo", json!({ "text": "x" })).await, "x");
}

#[tokio::test]
async fn lanes_have_a_limit_and_make_room() {
    let (fixture, server) = http_fixture().await;
    let config = json!({ "mcpServers": { "a": server }, "limits": { "sessions": 2 } });
    let gateway = configured(config).await;
    for number in 0..5 {
        let capabilities = json!({ "experimental": {}, "extensions": { "x/y": { "n": number } } });
        let client = gateway.stateless("direct", StatelessEnvelope::default().capabilities(capabilities));
        assert_eq!(client.text("echo", json!({ "text": "x" })).await, "x");
    }
    let busy = gateway.stateless("direct", StatelessEnvelope::default());
    let before = fixture.calls();
    let (_one, _two) = (busy.begin_call("hang", json!({})), busy.begin_call("hang", json!({})));
    assert!(eventually(|| fixture.calls() == before + 2).await, "the calls do not run");
    let refused = busy.call("echo", json!({ "text": "x" })).await.error();
    assert_eq!(refused["data"]["code"], "OVERLOADED", "{refused}");
}

#[tokio::test]
async fn a_page_that_must_be_opened_first_becomes_a_question() {
    let script = r#"
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    method, answer = message["method"], {"jsonrpc": "2.0", "id": message.get("id")}
    if method == "initialize":
        answer["result"] = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}}
    elif method == "tools/list":
        answer["result"] = {"tools": [{"name": "locked", "inputSchema": {"type": "object"}}]}
    elif method == "tools/call":
        page = {"mode": "url", "elicitationId": "e", "url": "https://example.com/", "message": "Sign in"}
        answer["error"] = {"code": -32042, "message": "sign in first", "data": {"elicitations": [page]}}
    else:
        answer["error"] = {"code": -32601, "message": "no"}
    if "id" in message:
        print(json.dumps(answer), flush=True)
"#;
    let server = json!({ "description": "d", "command": "python3", "args": ["-c", script] });
    let gateway = gateway(json!({ "a": server })).await;
    let forms = gateway.stateless("direct", StatelessEnvelope::capable()).call("locked", json!({})).await;
    assert_eq!((forms.status, forms.code()), (Some(400), -32021), "{}", forms.text);
    let pages = StatelessEnvelope::default().capabilities(json!({ "elicitation": { "url": {} } }));
    let asked = gateway.stateless("direct", pages).call("locked", json!({})).await.result();
    let question = &asked["inputRequests"]["url-1"]["params"];
    assert_eq!((&question["mode"], &question["url"]), (&json!("url"), &json!("https://example.com/")), "{asked}");
    assert!(question.get("elicitationId").is_none());
}

#[tokio::test]
async fn whoever_listens_on_a_pipe_does_not_hold_up_its_end() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("hikite.json"), "{}").expect("a file");
    let client =
        SessionClient::over_stdio(&crate::PROGRAMS, folder.path(), &[], ClientOptions::default().unvalidated()).await;
    let meta = json!({ "io.modelcontextprotocol/protocolVersion": REVISION,
        "io.modelcontextprotocol/clientCapabilities": {} });
    let listen = json!({ "jsonrpc": "2.0", "id": "l", "method": "subscriptions/listen",
        "params": { "_meta": meta, "notifications": { "toolsListChanged": true } } });
    client.send_line(&listen.to_string());
    client.told("notifications/subscriptions/acknowledged", 1).await;
    let begin = std::time::Instant::now();
    assert!(client.close().await.success());
    assert!(begin.elapsed() < Duration::from_secs(8), "{:?}", begin.elapsed());
}

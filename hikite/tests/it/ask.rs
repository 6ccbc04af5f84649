//! Questions that servers ask during a call: each reaches the client it belongs to, or nobody.

use std::time::Duration;

use hikite_testkit::fixture::{FixtureOptions, FixtureTransport, PostResponseFormat};
use hikite_testkit::gateway::{ClientOptions, SETTLE_TIME, ServerRequest, SessionClient, TestGateway, eventually};
use serde_json::{Value, json};

use crate::{error_of, fixture, gateway, http_fixture, stdio, with};

fn question(kind: &str, marker: &str) -> Value {
    json!({ "kind": kind, "marker": marker })
}

async fn answering(gateway: &TestGateway, name: &str) -> SessionClient {
    gateway.client_with("direct", ClientOptions::answering(name)).await
}

/// Waits until the server has received this many calls, not counting the calls of `count` itself.
async fn arrived(client: &SessionClient, calls: u64) {
    for asked in 1..200 {
        let count: u64 = client.text("count", json!({})).await.parse().expect("a number");
        if count >= calls + asked {
            return;
        }
    }
    panic!("the calls do not arrive");
}

#[tokio::test]
async fn a_question_on_a_shared_process_with_two_callers_is_put_to_nobody() {
    let gateway = gateway(json!({ "a": with(stdio(&[]), "share", "always") })).await;
    let (ada, bob) = (answering(&gateway, "ada").await, answering(&gateway, "bob").await);
    let busy = ada.begin_call("hang", json!({}));
    arrived(&ada, 1).await;
    for kind in ["elicitation", "sampling", "roots"] {
        let result = bob.call("ask", question(kind, "whose?")).await;
        assert_eq!(result["isError"], true, "{result}");
        let text = result["content"][0]["text"].as_str().expect("text");
        assert!(text.contains("The question cannot be assigned to one client, so no client is asked."), "{text}");
    }
    assert!(ada.questions().is_empty() && bob.questions().is_empty());
    drop(busy);
}

#[tokio::test]
async fn a_program_that_asks_only_in_a_call_is_answered_the_first_time() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    let (ada, bob) = (answering(&gateway, "ada").await, gateway.client("direct").await);
    let told = ada.text("test_sampling", json!({ "prompt": "p" })).await;
    assert!(told.contains("ada:"), "{told}");
    let params = json!({ "name": "test_sampling", "arguments": { "prompt": "p" } });
    let refused = bob.request("tools/call", params).await;
    assert!(refused.map_or(true, |result| result["isError"] == true));
    assert!(bob.questions().is_empty());
}

#[tokio::test]
async fn a_question_on_a_shared_process_with_one_caller_reaches_only_that_one() {
    let gateway = gateway(json!({ "a": with(stdio(&[]), "share", "always") })).await;
    let (ada, bob) = (answering(&gateway, "ada").await, answering(&gateway, "bob").await);
    ada.listen().await;
    ada.text("echo", json!({ "text": "I was here before" })).await;
    let answer = bob.text("ask", question("elicitation", "bob's own")).await;
    assert_eq!(answer, r#"{"action":"accept","content":{"answer":"bob:bob's own"}}"#);
    let answer = bob.text("ask", question("roots", "r")).await;
    assert_eq!(answer, r#"{"roots":[{"uri":"file:///bob","name":"r"}]}"#);
    assert!(bob.text("ask", question("sampling", "s")).await.contains("bob:s"));
    assert!(ada.questions().is_empty());
    assert_eq!(bob.questions().len(), 3);
}

#[tokio::test]
async fn calls_of_one_session_beside_each_other_are_still_one_caller() {
    let gateway = gateway(json!({ "a": with(stdio(&[]), "share", "always") })).await;
    let ada = answering(&gateway, "ada").await;
    let busy = ada.begin_call("hang", json!({}));
    arrived(&ada, 1).await;
    assert!(ada.text("ask", question("sampling", "mine")).await.contains("ada:mine"));
    drop(busy);
}

/// Lets eight sessions ask at once; each sees its own marker only.
async fn nobody_sees_anothers(server: Value) {
    let gateway = gateway(json!({ "a": server })).await;
    let mut clients = Vec::new();
    for number in 0..8 {
        clients.push(answering(&gateway, &format!("client{number}")).await);
    }
    let calls: Vec<_> = clients
        .iter()
        .enumerate()
        .flat_map(|(number, client)| {
            ["elicitation", "sampling", "elicitation"]
                .map(|kind| (number, client.begin_call("ask", question(kind, &format!("marker{number}")))))
        })
        .collect();
    for (number, call) in calls {
        let result = call.answer().await.expect("a result").to_string();
        assert!(result.contains(&format!("client{number}:marker{number}")), "{result}");
    }
    for (number, client) in clients.iter().enumerate() {
        let markers: Vec<String> = client.questions().iter().map(ServerRequest::marker).collect();
        assert_eq!(markers, vec![format!("marker{number}"); 3]);
    }
}

#[tokio::test]
async fn over_http_a_question_goes_to_the_caller_whose_stream_it_came_on() {
    let (_fixture, server) = http_fixture().await;
    nobody_sees_anothers(with(server, "share", "always")).await;
}

#[tokio::test]
async fn over_http_sessions_with_connections_of_their_own_are_asked_their_own() {
    let (_fixture, server) = http_fixture().await;
    nobody_sees_anothers(server).await;
}

#[tokio::test]
async fn over_sse_sessions_are_asked_their_own() {
    let (_fixture, server) = fixture(FixtureTransport::Sse, FixtureOptions::default()).await;
    nobody_sees_anothers(server).await;
}

#[tokio::test]
async fn a_server_that_asks_outside_the_calls_stream_asks_the_owner_of_the_connection() {
    let (_fixture, server) = fixture(
        FixtureTransport::Http,
        FixtureOptions { answer: PostResponseFormat::Json, ..FixtureOptions::default() },
    )
    .await;
    nobody_sees_anothers(server).await;
}

#[tokio::test]
async fn a_server_that_asks_back_runs_once_per_session_that_can_answer() {
    let gateway = gateway(json!({ "a": stdio(&["--ask-roots"]) })).await;
    let (ada, bob) = (answering(&gateway, "ada").await, answering(&gateway, "bob").await);
    let (mute, deaf) = (gateway.client("direct").await, gateway.client("direct").await);
    let mut pids = Vec::new();
    for client in [&ada, &bob, &mute, &deaf] {
        client.listen().await;
        pids.push(client.call("who", json!({})).await["structuredContent"]["pid"].clone());
    }
    assert!(pids[0] != pids[1] && pids[0] != pids[2] && pids[1] != pids[2], "{pids:?}");
    assert_eq!(pids[2], pids[3]);
    // A question asked at startup went to the session that the process runs for.
    for client in [&ada, &bob] {
        assert_eq!(client.asked().await.method, "roots/list");
    }
    assert!(mute.questions().is_empty() && deaf.questions().is_empty());
}

#[tokio::test]
async fn a_client_that_cannot_be_asked_is_not() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "web": server, "program": stdio(&[]) })).await;
    let client = gateway.client("direct").await;
    for tool in ["web__ask", "program__ask"] {
        let result = client.call(tool, question("sampling", "m")).await;
        assert_eq!(result["isError"], true);
        let text = result["content"][0]["text"].as_str().expect("text");
        assert!(text.contains("The client does not support `sampling/createMessage`."), "{text}");
    }
    let who = client.call("web__who", json!({})).await["structuredContent"].clone();
    assert_eq!(who["capabilities"], json!({}), "nothing is promised on its behalf");
    assert!(client.questions().is_empty());
    drop(fixture);
}

#[tokio::test]
async fn what_a_client_can_is_told_to_the_server_and_nothing_more() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let capabilities = json!({ "elicitation": { "form": {}, "url": {} } });
    let client = gateway
        .client_with("direct", ClientOptions { capabilities: capabilities.clone(), ..ClientOptions::silent() })
        .await;
    let who = client.call("who", json!({})).await["structuredContent"].clone();
    assert_eq!(who["capabilities"], capabilities);
}

#[tokio::test]
async fn cancelling_the_call_withdraws_its_question() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "web": server, "program": stdio(&[]) })).await;
    for tool in ["web__ask", "program__ask"] {
        let client = gateway.client_with("direct", ClientOptions::silent()).await;
        client.listen().await;
        let call = client.begin_call(tool, question("elicitation", "still there?"));
        let asked = client.asked().await;
        client.cancel(call.id).await;
        let withdrawn = eventually(|| {
            client.notifications("notifications/cancelled").iter().any(|told| told["requestId"] == asked.id)
        })
        .await;
        assert!(withdrawn, "{tool}: the question stays open");
    }
    assert_eq!(fixture.cancelled().len(), 1);
}

#[tokio::test]
async fn a_late_answer_to_a_withdrawn_question_is_ignored() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client_with("direct", ClientOptions::silent()).await;
    let call = client.begin_call("ask", question("elicitation", "m"));
    let asked = client.asked().await;
    client.cancel(call.id).await;
    tokio::time::sleep(SETTLE_TIME).await;
    client.answer(&asked, json!({ "action": "decline" })).await;
    assert_eq!(client.text("echo", json!({ "text": "fine" })).await, "fine");
}

#[tokio::test]
async fn an_open_question_stops_the_clock_of_the_call() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": with(server, "timeout", "2s") })).await;
    let client = gateway.client_with("direct", ClientOptions::silent()).await;
    let call = client.begin_call("ask", question("elicitation", "take your time"));
    let asked = client.asked().await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    client.answer(&asked, json!({ "action": "decline" })).await;
    assert_eq!(call.answer().await.expect("a result")["content"][0]["text"], r#"{"action":"decline"}"#);
}

#[tokio::test]
async fn a_declined_question_and_a_refused_one_reach_the_server_as_they_are() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client_with("direct", ClientOptions::silent()).await;
    let call = client.begin_call("test_elicitation", json!({ "message": "who?" }));
    let asked = client.asked().await;
    assert_eq!(asked.params["requestedSchema"]["required"], json!(["username", "email"]));
    client.answer(&asked, json!({ "action": "decline", "x-kept": [1.50] })).await;
    let text = call.answer().await.expect("a result")["content"][0]["text"].clone();
    assert_eq!(text, "User response: action=decline, content=null");
}

#[tokio::test]
async fn through_a_category_the_question_reaches_the_caller_too() {
    let (_fixture, server) = http_fixture().await;
    let config = json!({
        "mcpServers": { "a": server },
        "categories": { "c": { "description": "d", "server": "a" } },
    });
    let gateway = crate::configured(config).await;
    let client = gateway.client_with("", ClientOptions::answering("cat")).await;
    let result = client.call_in("c", "ask", question("sampling", "m")).await;
    assert!(result["content"][0]["text"].as_str().expect("text").contains("cat:m"), "{result}");
    let refused = error_of(&gateway.client("").await.call_in("c", "nothing", json!({})).await);
    assert_eq!(refused["name"], "UnknownTool");
}

#[tokio::test]
async fn the_question_of_an_abandoned_call_is_put_to_nobody_else() {
    let gateway = gateway(json!({ "a": with(stdio(&[]), "share", "always") })).await;
    let (ada, bob) = (answering(&gateway, "ada").await, answering(&gateway, "bob").await);
    ada.listen().await;
    bob.listen().await;
    let later = |marker: &str| json!({ "kind": "elicitation", "marker": marker, "delay_ms": 600 });
    assert!(ada.text("ask", later("waited for")).await.contains("ada:waited for"));
    let before: u64 = ada.text("count", json!({})).await.parse().expect("a number");
    let call = ada.begin_call("ask", later("ada's alone"));
    arrived(&ada, before + 1).await;
    ada.cancel(call.id).await;
    let busy = bob.begin_call("sleep", json!({ "ms": 1500 }));
    assert_eq!(busy.answer().await.expect("a result")["content"][0]["text"], "slept 1500 ms");
    assert_eq!(bob.questions().iter().map(ServerRequest::marker).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(ada.questions().len(), 1, "who gave up is not asked either");
}

/// A program that asks before it deploys, if it may, and reports the capabilities it was told.
const CAREFUL: &str = r#"
import json, sys
told = {}
def say(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    text = lambda text: {"content": [{"type": "text", "text": text}]}
    if method == "initialize":
        told = message["params"]["capabilities"]
        say(id=id, result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}})
    elif method == "tools/list":
        say(id=id, result={"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("deploy", "told")]})
    elif method == "tools/call" and message["params"]["name"] == "told":
        say(id=id, result=text(" ".join(sorted(told))))
    elif method == "tools/call" and "elicitation" in told:
        say(id="q", method="elicitation/create", params={"message": "sure?",
            "requestedSchema": {"type": "object", "properties": {}}})
        answer = json.loads(sys.stdin.readline())
        say(id=id, result=text(answer["result"]["action"] if "result" in answer else "refused"))
    elif method == "tools/call":
        say(id=id, result=text("not asked"))
    elif method and id is not None:
        say(id=id, error={"code": -32601, "message": "no such method"})
"#;

fn careful() -> Value {
    json!({ "description": "d", "command": "python3", "args": ["-c", CAREFUL] })
}

#[tokio::test]
async fn what_the_first_caller_can_is_not_said_of_others_once_it_was_asked() {
    let gateway = gateway(json!({ "a": careful() })).await;
    let (ada, bob) = (answering(&gateway, "ada").await, gateway.client("direct").await);
    assert_eq!(ada.text("deploy", json!({})).await, "accept");
    assert_eq!(bob.text("deploy", json!({})).await, "not asked");
    assert_eq!(ada.text("deploy", json!({})).await, "accept");
    // Ada's own process and the shared one, each with its guard.
    assert!(eventually(|| gateway.descendants().len() == 4).await, "{:?}", gateway.descendants());
    assert!(bob.questions().is_empty());
}

#[tokio::test]
async fn what_the_first_caller_can_is_not_said_of_one_that_cannot() {
    let config = json!({ "mcpServers": { "a": careful() }, "server": { "surface": "direct" } });
    let gateway = crate::configured(config.clone()).await;
    assert_eq!(gateway.client("direct").await.text("told", json!({})).await, "elicitation roots sampling");
    // Its lists are cached by now, so the next process is started for a caller.
    let gateway = gateway.restart(config).await;
    let capabilities = json!({ "elicitation": {}, "extensions": { "example.com/x": {} } });
    let ada = gateway.client_with("direct", ClientOptions { capabilities, ..ClientOptions::silent() }).await;
    let (able, bob) = (answering(&gateway, "able").await, gateway.client("direct").await);
    assert_eq!(ada.text("told", json!({})).await, "elicitation");
    assert_eq!(able.text("told", json!({})).await, "elicitation", "who can more stays");
    assert_eq!(bob.text("told", json!({})).await, "");
    assert_eq!(ada.text("told", json!({})).await, "", "nothing is declared again");
    // One guard and one server: the process with more capabilities is gone.
    assert!(eventually(|| gateway.descendants().len() == 2).await, "{:?}", gateway.descendants());
}

#[tokio::test]
async fn processes_of_single_sessions_leave_room_for_those_of_all() {
    let servers = json!({ "a": stdio(&["--ask-roots"]), "b": stdio(&[]) });
    let config = json!({ "mcpServers": servers, "limits": { "stdio_processes": 8 } });
    let gateway = crate::configured(config).await;
    let client = gateway.client("direct").await;
    assert_eq!(client.text("b__echo", json!({ "text": "early" })).await, "early");
    let mut clients = Vec::new();
    for number in 0..10 {
        clients.push(answering(&gateway, &format!("client{number}")).await);
    }
    let calls: Vec<_> = clients.iter().map(|client| client.begin_call("a__who", json!({}))).collect();
    for call in calls {
        let who = call.answer().await.expect("a result");
        assert!(who["structuredContent"]["pid"].is_u64(), "{who}");
    }
    assert_eq!(client.text("b__echo", json!({ "text": "late" })).await, "late");
}

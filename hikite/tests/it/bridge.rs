//! Any client works with any upstream: clients with and without a session, and servers with and without sessions, over
//! HTTP and stdio.

use std::time::{Duration, Instant};

use hikite_testkit::fixture::{Era, Fixture, FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{
    ClientOptions, PendingCall, SessionClient, StatelessClient, StatelessEnvelope, TestGateway,
};
use serde_json::{Value, json};

use crate::{fixture, gateway, stdio, with};

/// Time within which a cancellation must reach the server.
const SOON: Duration = Duration::from_millis(100);
const ASKS: &str = "test_input_required_result_elicitation";
pub(crate) const ERAS: [Era; 2] = [Era::Legacy, Era::Modern];

/// Starts a server of one kind of revision with every tool that asks questions.
pub(crate) async fn upstream(era: Era) -> (Fixture, Value) {
    fixture(FixtureTransport::Http, FixtureOptions { era, extended: true, ..FixtureOptions::default() }).await
}

/// Returns a stdio server of one kind of revision with those tools.
fn program(era: Era) -> Value {
    stdio(&["--extended", "--era", if era == Era::Modern { "modern" } else { "legacy" }])
}

/// Starts a gateway in front of each kind of server.
pub(crate) async fn gateways(share: &str) -> Vec<(String, TestGateway, Option<Fixture>)> {
    let mut gateways = Vec::new();
    for era in ERAS {
        let (fixture, server) = upstream(era).await;
        gateways.push((format!("{era:?} over HTTP"), gateway(json!({ "a": server })).await, Some(fixture)));
        let program = with(program(era), "share", share);
        gateways.push((format!("{era:?} over stdio"), gateway(json!({ "a": program })).await, None));
    }
    gateways
}

/// Answers every form with the marker it shows.
fn answer(_: &str, question: &Value) -> Option<Value> {
    let params = &question["params"];
    Some(match question["method"].as_str()? {
        "elicitation/create" if params["mode"] == "url" => json!({ "action": "accept" }),
        "elicitation/create" => {
            let asked = params["requestedSchema"]["properties"].as_object()?;
            let content: serde_json::Map<String, Value> =
                asked.keys().map(|name| (name.clone(), params["message"].clone())).collect();
            json!({ "action": "accept", "content": content })
        }
        "sampling/createMessage" => json!({ "role": "assistant", "model": "m",
            "content": { "type": "text", "text": "sampled" } }),
        _ => json!({ "roots": [{ "uri": "file:///r", "name": "r" }] }),
    })
}

/// Returns a session client that answers like `answer`.
pub(crate) fn person() -> ClientOptions {
    let capabilities = json!({ "sampling": {}, "elicitation": { "form": {}, "url": {} }, "roots": {} });
    let answer = |question: &hikite_testkit::gateway::ServerRequest| {
        answer("", &json!({ "method": question.method, "params": question.params }))
    };
    ClientOptions { capabilities, answer: std::sync::Arc::new(answer), ..ClientOptions::default() }
}

fn capable() -> StatelessEnvelope {
    let elicitation = json!({ "form": {}, "url": {} });
    StatelessEnvelope::capable().capabilities(json!({ "sampling": {}, "elicitation": elicitation, "roots": {} }))
}

/// Returns calls that ask questions, and their expected results.
fn asking() -> Vec<(&'static str, Value, &'static str)> {
    let marker = |key: &str, count: usize| json!({ key: count, "marker": "m" });
    vec![
        ("test_input_required_result_elicitation", json!({}), "Hello, What is your name?!"),
        ("test_input_required_result_sampling", json!({}), "sampled"),
        ("test_input_required_result_list_roots", json!({}), "file:///r"),
        ("test_input_required_result_multiple_inputs", json!({}), "sampled"),
        ("test_input_required_result_multi_round", json!({}), "Step 2"),
        ("ask_rounds", marker("rounds", 3), "m q3"),
        ("ask_many", marker("questions", 3), "m q3"),
        ("ask_url", json!({ "url": "https://example.com/" }), "accept"),
    ]
}

#[tokio::test]
async fn a_client_with_a_session_is_asked_by_any_server() {
    for (label, gateway, _fixture) in gateways("auto").await {
        let client = gateway.client_with("direct", person()).await;
        for (tool, arguments, expected) in asking() {
            let text = client.text(tool, arguments).await;
            assert!(text.contains(expected), "{label}, {tool}: {text}");
        }
    }
}

#[tokio::test]
async fn a_client_without_a_session_is_asked_by_any_server() {
    for (label, gateway, _fixture) in gateways("auto").await {
        let client = gateway.stateless("direct", capable());
        for (tool, arguments, expected) in asking() {
            let through = client.call_with_answers(tool, arguments, answer).await;
            let text = through.outcome.first_text();
            assert!(text.contains(expected), "{label}, {tool}: {text}");
            assert!(!through.rounds.is_empty(), "{label}, {tool} asked nothing");
        }
        let prompt = json!({ "name": "test_input_required_result_prompt" });
        let through = client.request_with_answers("prompts/get", prompt, answer).await;
        assert!(through.outcome.result()["messages"].is_array(), "{label}");
    }
}

#[tokio::test]
async fn what_nobody_can_answer_is_an_error_of_the_call_alone() {
    for (label, gateway, _fixture) in gateways("auto").await {
        let client = gateway.client("direct").await;
        let refused = client.request("tools/call", json!({ "name": ASKS, "arguments": {} })).await;
        let failed = refused.as_ref().map_or(true, |result| result["isError"] == true);
        assert!(failed, "{label}: {refused:?}");
        let alone = gateway.stateless("direct", StatelessEnvelope::default());
        let outcome = alone.call("test_missing_capability", json!({})).await;
        assert_eq!((outcome.status, outcome.code()), (Some(400), -32021), "{label}: {}", outcome.text);
        assert_eq!(client.text("echo", json!({ "text": "on" })).await, "on");
    }
}

#[tokio::test]
async fn every_client_reads_lists_and_resources_of_every_server() {
    let mut seen = Vec::new();
    for (label, gateway, _fixture) in gateways("auto").await {
        let (client, alone) =
            (gateway.client("direct").await, gateway.stateless("direct", StatelessEnvelope::default()));
        for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
            let mut with_session = client.request(method, json!({})).await.expect("a list");
            let mut without = alone.request(method, json!({})).await.result();
            for added in ["resultType", "ttlMs", "cacheScope", "_meta"] {
                without.as_object_mut().expect("an object").remove(added);
                with_session.as_object_mut().expect("an object").remove(added);
            }
            assert_eq!(with_session, without, "{label}");
        }
        let uri = json!({ "uri": "test://static-text" });
        let read = client.request("resources/read", uri.clone()).await.expect("a resource");
        assert!(read.get("resultType").is_none(), "{label}: {read}");
        assert_eq!(read["contents"], alone.request("resources/read", uri).await.result()["contents"]);
        let missing = json!({ "uri": "test://template" });
        assert_eq!(client.request("resources/read", missing.clone()).await.expect_err("absent")["code"], -32002);
        assert_eq!(alone.request("resources/read", missing).await.code(), -32602, "{label}");
        let complete = json!({ "ref": { "type": "ref/prompt", "name": "test_prompt_with_arguments" },
            "argument": { "name": "arg1", "value": "p" } });
        let completed = client.request("completion/complete", complete.clone()).await.expect("completions");
        assert_eq!(
            completed["completion"],
            alone.request("completion/complete", complete).await.result()["completion"]
        );
        seen.push(client.request("tools/call", json!({ "name": "rich", "arguments": {} })).await.expect("rich"));
    }
    assert!(seen.windows(2).all(|pair| pair[0]["content"] == pair[1]["content"]));
}

#[tokio::test]
async fn subscribers_hear_of_changes_in_every_server() {
    for (label, gateway, _fixture) in gateways("auto").await {
        let client = gateway.client("direct").await;
        client.listen().await;
        let uri = "test://watched-resource";
        client.request("resources/subscribe", json!({ "uri": uri })).await.expect("subscribed");
        let alone = gateway.stateless("direct", StatelessEnvelope::default());
        let wish = json!({ "toolsListChanged": true, "resourceSubscriptions": [uri] });
        let heard = alone.listen(wish.clone()).await;
        assert_eq!(heard.acknowledged, wish, "{label}");
        alone.text("touch_resource", json!({ "uri": uri })).await;
        heard.told("notifications/resources/updated", 1).await;
        client.told("notifications/resources/updated", 1).await;
        client.request("resources/unsubscribe", json!({ "uri": uri })).await.expect("unsubscribed");
        alone.text("touch_resource", json!({ "uri": uri })).await;
        heard.told("notifications/resources/updated", 2).await;
        alone.text("add_tool", json!({ "name": "brand_new" })).await;
        heard.told("notifications/tools/list_changed", 1).await;
        client.told("notifications/tools/list_changed", 1).await;
        assert_eq!(client.notifications("notifications/resources/updated").len(), 1, "{label}");
    }
}

#[tokio::test]
async fn logs_reach_whoever_asked_for_them_from_every_server() {
    for (label, gateway, _fixture) in gateways("auto").await {
        let client = gateway.client("direct").await;
        client.request("logging/setLevel", json!({ "level": "debug" })).await.expect("set");
        client.text("test_tool_with_logging", json!({})).await;
        client.told("notifications/message", 3).await;
        let alone = gateway.stateless("direct", StatelessEnvelope::default().log_level("debug"));
        let outcome = alone.call("test_tool_with_logging", json!({})).await;
        assert!(outcome.told("notifications/message").len() >= 3, "{label}: {:?}", outcome.notifications);
    }
}

/// Returns how many calls the server knows to be cancelled.
async fn cancelled(fixture: Option<&Fixture>, witness: &StatelessClient) -> usize {
    match fixture {
        Some(fixture) => fixture.cancelled().len(),
        None => {
            let ids: Vec<Value> = serde_json::from_str(&witness.text("cancelled", json!({})).await).expect("ids");
            ids.len()
        }
    }
}

/// Starts a call that hangs, ends it, and returns whether the server was notified in time. A busy machine may be late
/// once; a late gateway is late every time.
async fn heard_in_time<C>(
    fixture: Option<&Fixture>,
    witness: &StatelessClient,
    begin: impl AsyncFn() -> C,
    end: impl AsyncFn(C),
) -> bool {
    const ATTEMPTS: usize = 3;
    for _ in 0..ATTEMPTS {
        let before = cancelled(fixture, witness).await;
        let calls: u64 = witness.text("count", json!({})).await.parse().expect("a number");
        let call = begin().await;
        arrived(witness, calls + 1).await;
        end(call).await;
        let from = Instant::now();
        while from.elapsed() < SOON {
            if cancelled(fixture, witness).await > before {
                return true;
            }
        }
    }
    false
}

/// Waits until the server has received the call, not counting the calls of `count` itself.
async fn arrived(witness: &StatelessClient, calls: u64) {
    let begin = Instant::now();
    for looked in 1.. {
        let count: u64 = witness.text("count", json!({})).await.parse().expect("a number");
        if count >= calls + looked {
            break;
        }
        assert!(begin.elapsed() < Duration::from_secs(60), "the call does not arrive");
    }
    // A counted call is not yet running.
    tokio::time::sleep(Duration::from_millis(20)).await;
}

#[tokio::test]
async fn a_cancellation_reaches_every_server_in_time() {
    for (label, gateway, fixture) in gateways("auto").await {
        let witness = gateway.stateless("direct", StatelessEnvelope::default());
        witness.text("echo", json!({ "text": "up" })).await;
        let client: SessionClient = gateway.client("direct").await;
        let begin = async || client.begin_call("hang", json!({}));
        let end = async |call: PendingCall| client.cancel(call.id).await;
        assert!(heard_in_time(fixture.as_ref(), &witness, begin, end).await, "{label}");
    }
}

#[tokio::test]
async fn a_client_that_leaves_is_noticed_by_every_server_in_time() {
    for (label, gateway, fixture) in gateways("auto").await {
        let witness = gateway.stateless("direct", StatelessEnvelope::default());
        witness.text("echo", json!({ "text": "up" })).await;
        let alone = gateway.stateless("direct", StatelessEnvelope::default());
        let begin = async || alone.begin_call("hang", json!({}));
        assert!(heard_in_time(fixture.as_ref(), &witness, begin, async |call| drop(call)).await, "{label}");
        let client: SessionClient = gateway.client("direct").await;
        let begin = async || client.begin_call("hang", json!({}));
        assert!(heard_in_time(fixture.as_ref(), &witness, begin, async |call| drop(call)).await, "{label}");
    }
}

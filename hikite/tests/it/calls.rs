//! Running calls: cancellation, progress, deadlines, log messages.

use std::time::{Duration, Instant};

use hikite_testkit::fixture::{FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{ClientOptions, LIMIT, TestGateway, eventually};
use serde_json::{Value, json};

use crate::{begin_sleep, configured, error_of, fixture, gateway, http_fixture, stdio, with};

#[tokio::test]
async fn a_cancellation_reaches_the_server_over_http() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    let call = client.begin_call("hang", json!({}));
    assert!(eventually(|| fixture.calls() == 1).await);
    client.cancel(call.id).await;
    assert!(eventually(|| fixture.cancelled().len() == 1).await, "{:?}", fixture.cancelled());
}

#[tokio::test]
async fn a_cancellation_reaches_the_server_over_sse() {
    let (fixture, server) = fixture(FixtureTransport::Sse, FixtureOptions::default()).await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    let call = client.begin_call("hang", json!({}));
    assert!(eventually(|| fixture.calls() == 1).await);
    client.cancel(call.id).await;
    assert!(eventually(|| fixture.cancelled().len() == 1).await);
}

#[tokio::test]
async fn a_cancellation_reaches_the_server_over_stdio() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    let client = gateway.client("direct").await;
    client.text("echo", json!({ "text": "up" })).await;
    let call = client.begin_call("hang", json!({}));
    while client.text("count", json!({})).await.parse::<u64>().expect("a number") < 3 {}
    client.cancel(call.id).await;
    let begin = Instant::now();
    while client.text("cancelled", json!({})).await == "[]" {
        assert!(begin.elapsed() < LIMIT, "it does not arrive");
    }
}

#[tokio::test]
async fn a_client_that_disconnects_cancels_its_call() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    let call = client.begin_call("hang", json!({}));
    assert!(eventually(|| fixture.calls() == 1).await);
    drop(call);
    assert!(eventually(|| fixture.cancelled().len() == 1).await);
}

#[tokio::test]
async fn a_client_that_disconnects_in_the_middle_of_a_stream_cancels_its_call() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    // Later revisions can resume a broken stream; see `resume`.
    let hello = ClientOptions { revision: "2025-06-18", ..ClientOptions::default() };
    let client = gateway.client_with("direct", hello).await;
    let params = json!({ "name": "sleep", "arguments": { "ms": 60_000 }, "_meta": { "progressToken": "p" } });
    let call = client.begin("tools/call", params);
    client.told("notifications/progress", 2).await;
    drop(call);
    assert!(eventually(|| fixture.cancelled().len() == 1).await);
}

#[tokio::test]
async fn cancelling_one_call_leaves_the_others_alone() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": with(server, "share", "always") })).await;
    let (first, second) = (gateway.client("direct").await, gateway.client("direct").await);
    let staying = first.begin_call("sleep", json!({ "ms": 700 }));
    let leaving = second.begin_call("hang", json!({}));
    assert!(eventually(|| fixture.calls() == 2).await);
    // Two clients use the same request ids independently.
    second.cancel(leaving.id).await;
    assert_eq!(staying.answer().await.expect("a result")["content"][0]["text"], "slept 700 ms");
    assert_eq!(fixture.cancelled().len(), 1);
}

#[tokio::test]
async fn progress_comes_under_the_clients_own_token() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "web": server, "program": stdio(&[]) })).await;
    for tool in ["web__test_tool_with_progress", "program__test_tool_with_progress"] {
        for token in [json!("my-token"), json!(7)] {
            let client = gateway.client("direct").await;
            let params = json!({ "name": tool, "arguments": {}, "_meta": { "progressToken": token } });
            client.request("tools/call", params).await.expect("a result");
            let told = client.notifications("notifications/progress");
            let expected: Vec<Value> = [0, 50, 100]
                .map(|done| json!({ "progress": done, "total": 100, "message": format!("{done} of 100"), "progressToken": token }))
                .to_vec();
            assert_eq!(told, expected, "{tool}");
        }
    }
}

#[tokio::test]
async fn a_client_that_wants_no_progress_is_told_none() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    client.listen().await;
    client.call("test_tool_with_progress", json!({})).await;
    assert!(client.notifications("notifications/progress").is_empty());
}

#[tokio::test]
async fn progress_extends_the_deadline_even_if_the_client_did_not_ask_for_it() {
    let (fixture, server) = http_fixture().await;
    // Long compared with the 50 ms between progress messages: a busy machine stalls at times.
    let short = |server| with(server, "timeout", "2s");
    let gateway = gateway(json!({ "web": short(server), "program": short(stdio(&[])) })).await;
    let client = gateway.client("direct").await;
    let story = async |module: &str| {
        let sleep = format!("{module}__sleep");
        assert_eq!(client.text(&sleep, json!({ "ms": 4000 })).await, "slept 4000 ms");
        let error = error_of(&client.call(&format!("{module}__hang"), json!({})).await);
        assert_eq!(error["code"], "TIMEOUT");
        assert_eq!(error["message"], format!("`{module}` did not answer within 2 s."));
        assert_eq!(
            error["hint"],
            format!("Ask for less, or increase `timeout` of the call, of the tool or of `{module}`.")
        );
    };
    tokio::join!(story("web"), story("program"));
    assert!(eventually(|| fixture.cancelled().len() == 1).await, "the server is told");
}

#[tokio::test]
async fn log_messages_of_a_call_reach_its_caller_at_the_level_it_chose() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "web": with(server, "share", "always"), "program": stdio(&[]) })).await;
    let (loud, quiet) = (gateway.client("direct").await, gateway.client("direct").await);
    quiet.request("logging/setLevel", json!({ "level": "error" })).await.expect("set");
    loud.request("logging/setLevel", json!({ "level": "debug" })).await.expect("set");
    for tool in ["web__test_tool_with_logging", "program__test_tool_with_logging"] {
        loud.call(tool, json!({})).await;
        quiet.call(tool, json!({})).await;
    }
    let told = loud.notifications("notifications/message");
    let texts: Vec<&str> = told.iter().filter_map(|params| params["data"].as_str()).collect();
    let three = ["Tool execution started", "Tool processing data", "Tool execution completed"];
    assert_eq!(texts, [three, three].concat());
    assert!(quiet.notifications("notifications/message").is_empty());
    let wrong = quiet.request("logging/setLevel", json!({ "level": "shouting" })).await.expect_err("no level");
    assert_eq!((&wrong["code"], &wrong["message"]), (&json!(-32602), &json!("`shouting` is not a log level.")));
}

#[tokio::test]
async fn a_level_set_before_a_server_runs_holds_once_it_does() {
    let config = json!({ "mcpServers": { "a": stdio(&[]) }, "limits": { "idle_stop": "200ms" } });
    let gateway = configured(config).await;
    let client = gateway.client("direct").await;
    client.names("tools/list").await;
    client.request("logging/setLevel", json!({ "level": "error" })).await.expect("set");
    client.call("test_tool_with_logging", json!({})).await;
    assert!(client.notifications("notifications/message").is_empty());
}

#[tokio::test]
async fn a_rate_and_a_number_at_once_are_kept_per_server() {
    let (fixture, server) = http_fixture().await;
    let one = with(with(server.clone(), "concurrency", 1), "share", "always");
    let slow = with(server, "rate", "2/h");
    let gateway = gateway(json!({ "one": one, "slow": slow })).await;
    let client = gateway.client("direct").await;
    let begin = Instant::now();
    let calls: Vec<_> = (0..3).map(|_| client.begin_call("one__sleep", json!({ "ms": 150 }))).collect();
    for call in calls {
        call.answer().await.expect("a result");
    }
    assert!(begin.elapsed() >= Duration::from_millis(450), "they ran beside each other");
    for _ in 0..2 {
        client.text("slow__echo", json!({ "text": "x" })).await;
    }
    let refused = error_of(&client.call("slow__echo", json!({ "text": "x" })).await);
    assert_eq!(refused["code"], "RATE_LIMIT_EXCEEDED");
    assert!(refused["hint"].as_str().expect("text").starts_with("Try again in "), "{refused}");
    drop(fixture);
}

#[tokio::test]
async fn sigterm_lets_a_running_call_finish() {
    let (_fixture, server) = http_fixture().await;
    let mut gateway: TestGateway = gateway(json!({ "web": server, "program": stdio(&[]) })).await;
    let client = gateway.client_with("direct", ClientOptions::default()).await;
    let calls = [begin_sleep(&client, "web__sleep", 1500).await, begin_sleep(&client, "program__sleep", 1500).await];
    gateway.terminate();
    for call in calls {
        assert_eq!(call.answer().await.expect("a result")["content"][0]["text"], "slept 1500 ms");
    }
    assert!(gateway.exit().await.success(), "{}", gateway.stderr());
}

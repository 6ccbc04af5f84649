//! Servers that report an outage: retries, their number, and the circuit breaker.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hikite_testkit::fixture::{Era, Fixture, FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{LIMIT, SessionClient, TestGateway, eventually};
use serde_json::{Value, json};

use crate::{configured, error_of, fixture, with};

/// Starts a retryable fixture of this kind of revision, with these limits.
async fn scene(era: Era, retry: Value, limits: Value) -> (Fixture, TestGateway, SessionClient) {
    let (fixture, server) = fixture(FixtureTransport::Http, FixtureOptions { era, ..FixtureOptions::default() }).await;
    let server = with(server, "retry", retry);
    let gateway = configured(json!({ "mcpServers": { "a": server }, "limits": limits })).await;
    let client = gateway.client("direct").await;
    assert_eq!(client.text("echo", json!({ "text": "up" })).await, "up");
    (fixture, gateway, client)
}

async fn echo(client: &SessionClient) -> Value {
    client.call("echo", json!({ "text": "x" })).await
}

#[tokio::test]
async fn an_outage_is_multiplied_by_a_fifth_at_most_also_after_good_times() {
    const CALLS: u64 = 100;
    for (era, limits) in [
        (Era::Legacy, json!({ "breaker_failures": 0 })),
        (Era::Modern, json!({ "breaker_failures": 0 })),
        (Era::Legacy, json!({})),
    ] {
        let retry = json!({ "attempts": 3, "delay": "20ms" });
        let (fixture, gateway, client) = scene(era, retry, limits.clone()).await;
        join_all((0..CALLS).map(|_| client.text("echo", json!({ "text": "up" })))).await;
        fixture.refuse_calls(503, None);
        let clients = join_all((0..4).map(|_| gateway.client("direct"))).await;
        let calls = clients.iter().map(|client| async move {
            for _ in 0..CALLS / 4 {
                let error = error_of(&echo(client).await);
                assert_eq!(error["code"], "UPSTREAM_UNAVAILABLE", "{error}");
            }
        });
        join_all(calls).await;
        let sent = fixture.refused();
        assert!(sent <= CALLS * 6 / 5, "{sent} of {CALLS}, {limits}");
        if limits == json!({}) {
            assert!(sent < CALLS / 2, "the breaker is open: {sent}");
        } else {
            assert!(sent > CALLS, "some are tried again: {sent}");
        }
        fixture.accept_calls();
        recovers(&client).await;
    }
}

/// Waits until a call succeeds.
async fn recovers(client: &SessionClient) {
    let begin = Instant::now();
    while echo(client).await["isError"] == true {
        assert!(begin.elapsed() < LIMIT * 2, "it is not found again");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_server_that_fails_is_left_alone_until_one_call_finds_it_well() {
    let limits = json!({ "breaker_failures": 3, "breaker_pause": "2s" });
    let (fixture, _gateway, client) = scene(Era::Legacy, json!(0), limits).await;
    fixture.refuse_calls(503, None);
    for _ in 0..3 {
        assert_eq!(error_of(&echo(&client).await)["message"], "`a` failed: it answered 503 Service Unavailable");
    }
    for _ in 0..5 {
        let error = error_of(&echo(&client).await);
        assert_eq!(error["code"], "UPSTREAM_UNAVAILABLE");
        let reason =
            "`a` is not called for now because of repeated failures: `a` failed: it answered 503 Service Unavailable";
        assert_eq!(error["message"], reason);
        assert!(error["hint"].as_str().expect("text").starts_with("it is tried again in "), "{error}");
    }
    assert_eq!(fixture.refused(), 3, "nothing was sent");
    // Still failing when probed: one call, and a longer pause.
    tokio::time::sleep(Duration::from_millis(2100)).await;
    let probes = join_all((0..5).map(|_| echo(&client))).await;
    assert!(probes.iter().all(|result| result["isError"] == true));
    assert_eq!(fixture.refused(), 4);
    fixture.accept_calls();
    recovers(&client).await;
    assert_eq!(client.text("echo", json!({ "text": "well" })).await, "well");
}

#[tokio::test]
async fn what_a_tool_itself_answers_never_opens_the_breaker() {
    let limits = json!({ "breaker_failures": 2 });
    let (_fixture, _gateway, client) = scene(Era::Legacy, json!(0), limits).await;
    for _ in 0..5 {
        assert_eq!(client.call("test_error_handling", json!({})).await["isError"], true);
        let params = json!({ "name": "structured", "arguments": { "a": 1e9, "b": 1 } });
        client.request("tools/call", params).await.expect_err("refused in its own words");
    }
    assert_eq!(client.text("echo", json!({ "text": "well" })).await, "well");
}

#[tokio::test]
async fn a_server_is_given_the_time_it_asks_for() {
    let (fixture, _gateway, client) = scene(Era::Legacy, json!({ "attempts": 1, "delay": "1ms" }), json!({})).await;
    for status in [429, 503] {
        // Retries need budget from successful calls.
        for _ in 0..5 {
            client.text("echo", json!({ "text": "up" })).await;
        }
        fixture.refuse_calls(status, Some("1"));
        let (begin, before) = (Instant::now(), fixture.refused());
        let call = client.begin_call("echo", json!({ "text": "late" }));
        assert!(eventually(|| fixture.refused() > before).await);
        fixture.accept_calls();
        assert_eq!(call.answer().await.expect("a result")["content"][0]["text"], "late", "{status}");
        assert!(begin.elapsed() >= Duration::from_secs(1), "{status}: {:?}", begin.elapsed());
    }
}

#[tokio::test]
async fn a_time_that_the_call_does_not_have_is_told_at_once() {
    let (fixture, _gateway, client) = scene(Era::Modern, json!(3), json!({})).await;
    for (status, code) in [(429, "RATE_LIMIT_EXCEEDED"), (503, "UPSTREAM_UNAVAILABLE")] {
        fixture.refuse_calls(status, Some("3600"));
        let begin = Instant::now();
        let error = error_of(&echo(&client).await);
        assert_eq!((&error["code"], &error["hint"]), (&json!(code), &json!("Try again in 3600 s.")));
        assert!(begin.elapsed() < Duration::from_secs(10));
        assert!(!error.to_string().contains("127.0.0.1"), "{error}");
    }
    assert_eq!(fixture.refused(), 2);
}

#[tokio::test]
async fn a_tool_has_the_time_that_its_override_gives_it() {
    let (_fixture, server) = crate::http_fixture().await;
    let tools = json!({ "overrides": { "hang": { "timeout": "200ms" } } });
    let server = with(with(server, "tools", tools), "timeout", "20s");
    let config = json!({ "mcpServers": { "a": server }, "categories": { "c": { "description": "d", "server": "a",
        "tools": { "overrides": { "hang": { "timeout": "400ms" } } } } } });
    let gateway = configured(config).await;
    let client = gateway.client("direct,categories").await;
    let error = error_of(&client.call("hang", json!({})).await);
    assert_eq!((&error["code"], &error["message"]), (&json!("TIMEOUT"), &json!("`a` did not answer within 0.2 s.")));
    let error = error_of(&client.call_in("c", "hang", json!({})).await);
    assert_eq!(error["message"], "`a` did not answer within 0.4 s.");
}

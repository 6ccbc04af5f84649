//! The result cache: one upstream call for equal requests, and no stale results.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use hikite_testkit::fixture::{Fixture, FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{LIMIT, SessionClient, StatelessEnvelope, TestGateway};
use serde_json::{Value, json};

use crate::{configured, fixture, gateway, with};

async fn scene() -> (Fixture, Value, TestGateway, SessionClient) {
    let (fixture, server) = fixture(FixtureTransport::Http, FixtureOptions::default()).await;
    let server = with(with(server, "cache", "1m"), "cacheResources", "1m");
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    (fixture, server, gateway, client)
}

fn hit(result: &Value) -> bool {
    let mark = &result["_meta"]["hikite/cache"];
    assert!(mark.is_null() || (mark["hit"] == true && mark["ageMs"].is_u64()), "{mark}");
    !mark.is_null()
}

#[tokio::test]
async fn a_hundred_callers_make_one_call() {
    let (fixture, _, gateway, _) = scene().await;
    let clients = join_all((0..10).map(|_| gateway.client("direct"))).await;
    let calls = (0..100).map(|n| clients[n % 10].call("echo", json!({ "text": "same" })));
    let results = join_all(calls).await;
    assert!(results.iter().all(|result| result["content"][0]["text"] == "same"));
    assert_eq!(fixture.calls(), 1);
    assert_eq!(results.iter().filter(|result| !hit(result)).count(), 1);
    gateway.wait_for_stderr("attempts=0 cached=true").await;
    gateway.wait_for_stderr("attempts=1 cached=false").await;
}

#[tokio::test]
async fn only_what_reads_and_asks_the_same_is_given_again() {
    let (fixture, _, gateway, client) = scene().await;
    for (text, calls) in [("a", 1), ("a", 1), ("b", 2), ("a", 2)] {
        assert_eq!(client.text("echo", json!({ "text": text })).await, text);
        assert_eq!(fixture.calls(), calls, "{text}");
    }
    for _ in 0..2 {
        assert!(!hit(&client.call("count", json!({})).await), "it does not say that it only reads");
    }
    let stateless = gateway.stateless("direct", StatelessEnvelope::default());
    assert_eq!(stateless.text("echo", json!({ "text": "a" })).await, "a");
    let again = stateless.call("echo", json!({ "text": "a" })).await;
    assert!(hit(&again.result()), "{}", again.text);
}

#[tokio::test]
async fn a_resource_is_read_again_once_its_server_says_that_it_changed() {
    let (_fixture, _, _gateway, client) = scene().await;
    let uri = json!({ "uri": "test://static-text" });
    let read = async || client.request("resources/read", uri.clone()).await.expect("a result");
    client.listen().await;
    client.request("resources/subscribe", uri.clone()).await.expect("subscribed");
    assert!(!hit(&read().await) && hit(&read().await));
    assert_eq!(client.text("touch_resource", uri.clone()).await, "told 1");
    client.told("notifications/resources/updated", 1).await;
    assert!(!hit(&read().await), "it was updated");
    assert!(hit(&read().await));
}

#[tokio::test]
async fn other_lists_and_another_config_forget_what_was_kept() {
    let (fixture, server, gateway, client) = scene().await;
    let echo = async || hit(&client.call("echo", json!({ "text": "x" })).await);
    assert!(!echo().await && echo().await);
    fixture.add_tool("late");
    assert!(becomes(async || !echo().await).await, "the lists changed");
    assert!(echo().await);
    gateway.write_config(&json!({ "mcpServers": { "a": with(server, "cache", "0s") } }));
    gateway.wait_for_stderr("the changed config is active").await;
    assert!(!echo().await && !echo().await, "nothing is kept any more");
}

/// Returns `true` if the condition holds within `LIMIT`.
async fn becomes(check: impl AsyncFn() -> bool) -> bool {
    let begin = Instant::now();
    while begin.elapsed() < LIMIT {
        if check().await {
            return true;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    false
}

#[tokio::test]
async fn a_category_may_decide_for_itself() {
    let (_fixture, server) = fixture(FixtureTransport::Http, FixtureOptions::default()).await;
    let tools = json!({ "overrides": { "echo": { "cache": "1m" } } });
    let config = json!({ "mcpServers": { "a": server },
        "categories": { "c": { "description": "d", "server": "a", "tools": tools } } });
    let gateway = configured(config).await;
    let client = gateway.client("direct,categories").await;
    for kept in [false, true] {
        assert_eq!(hit(&client.call_in("c", "echo", json!({ "text": "x" })).await), kept);
        assert!(!hit(&client.call("echo", json!({ "text": "x" })).await), "outside nothing was said of it");
    }
}

//! Lists over time: they change, are cached, outlive their servers, and changes are announced to clients.

use std::time::{Duration, Instant};

use hikite_testkit::fixture::{FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{LIMIT, SETTLE_TIME, eventually, within};
use serde_json::{Map, json};

use crate::{configured, error_of, fixture, gateway, http_fixture, stdio, with};

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

#[tokio::test]
async fn a_changed_list_reaches_the_clients_that_see_it() {
    let (fixture, server) = http_fixture().await;
    let config = json!({ "mcpServers": { "a": server }, "categories": { "c": { "description": "d", "server": "a" } } });
    let gateway = configured(config).await;
    let (direct, categories) = (gateway.client("direct").await, gateway.client("categories").await);
    for client in [&direct, &categories] {
        client.listen().await;
    }
    direct.text("echo", json!({ "text": "connect" })).await;
    fixture.add_tool("late");
    direct.told(TOOLS_CHANGED, 1).await;
    assert!(direct.names("tools/list").await.contains(&"late".to_owned()));
    direct.call("late", json!({})).await;
    let shown = categories.call("get-category-tools", json!({ "category": "c", "toolNames": ["late"] })).await;
    assert_eq!(shown["structuredContent"]["tools"]["late"]["name"], "late");
    assert!(categories.notifications(TOOLS_CHANGED).is_empty(), "its own two tools are the same");
    fixture.remove_tool("late");
    direct.told(TOOLS_CHANGED, 2).await;
    let error = direct.request("tools/call", json!({ "name": "late", "arguments": {} })).await.expect_err("gone");
    assert_eq!(error["code"], -32602);
}

#[tokio::test]
async fn a_program_that_changes_its_list_is_heard() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    let client = gateway.client("direct").await;
    client.names("tools/list").await;
    client.text("add_tool", json!({ "name": "late" })).await;
    let begin = Instant::now();
    while !client.names("tools/list").await.contains(&"late".to_owned()) {
        assert!(begin.elapsed() < Duration::from_secs(60), "the new tool is not listed:\n{}", gateway.stderr());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(client.text("late", json!({ "text": "x" })).await, r#"{"tool":"late","arguments":{"text":"x"}}"#);
    client.listen().await;
    client.told(TOOLS_CHANGED, 1).await;
}

#[tokio::test]
async fn lists_outlive_a_restart_and_their_server() {
    let (fixture, server) = http_fixture().await;
    let config = json!({ "mcpServers": { "a": server }, "categories": { "c": { "description": "d", "server": "a" } } });
    let gateway = configured(config.clone()).await;
    let before = gateway.client("direct").await.raw_result("tools/list", json!({})).await;
    fixture.stop().await;
    let gateway = gateway.restart(config).await;
    let client = gateway.client("direct,categories").await;
    let shown = gateway.client("direct").await.raw_result("tools/list", json!({})).await;
    assert_eq!(shown, before);
    let category = client.call("get-category-tools", json!({ "category": "c" })).await;
    assert_eq!(category["structuredContent"]["tools"].as_object().expect("tools").len(), 33);
    let error = error_of(&client.call("echo", json!({ "text": "x" })).await);
    assert_eq!(error["code"], "UPSTREAM_UNAVAILABLE");
    assert_eq!(error["message"], "`a` cannot be reached.", "where it is, is nobody's business");
}

#[tokio::test]
async fn with_a_cached_list_no_server_is_started_until_it_is_called() {
    let config = json!({ "mcpServers": { "a": stdio(&[]) } });
    let gateway = configured(config.clone()).await;
    gateway.client("direct").await.names("tools/list").await;
    let gateway = gateway.restart(config).await;
    let client = gateway.client("direct").await;
    assert_eq!(client.names("tools/list").await.len(), 33);
    tokio::time::sleep(SETTLE_TIME).await;
    assert!(gateway.descendants().is_empty(), "{:?}", gateway.descendants());
    assert_eq!(client.text("echo", json!({ "text": "now" })).await, "now");
}

#[tokio::test]
async fn a_server_that_comes_up_late_is_found_and_told() {
    let (fixture, server) = http_fixture().await;
    let proxy = hikite_testkit::fault::FaultProxy::start(fixture.address()).await.expect("a proxy");
    proxy.set(hikite_testkit::fault::ProxyFault::refuse()).await;
    let server = with(server, "url", format!("http://{}/mcp", proxy.address()));
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    client.listen().await;
    assert!(client.names("tools/list").await.is_empty());
    proxy.set(hikite_testkit::fault::ProxyFault::default()).await;
    client.told(TOOLS_CHANGED, 1).await;
    assert_eq!(client.text("echo", json!({ "text": "there" })).await, "there");
}

#[tokio::test]
async fn updates_of_a_resource_reach_its_subscribers_alone() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "web": server })).await;
    let (one, two, three) =
        (gateway.client("direct").await, gateway.client("direct").await, gateway.client("direct").await);
    let uri = json!({ "uri": "test://watched-resource" });
    for client in [&one, &two, &three] {
        client.listen().await;
    }
    for client in [&one, &two] {
        assert_eq!(client.request("resources/subscribe", uri.clone()).await, Ok(json!({})));
    }
    let updated = "notifications/resources/updated";
    three.text("touch_resource", uri.clone()).await;
    for client in [&one, &two] {
        assert_eq!(client.told(updated, 1).await, std::slice::from_ref(&uri));
    }
    assert_eq!(two.request("resources/unsubscribe", uri.clone()).await, Ok(json!({})));
    three.text("touch_resource", uri.clone()).await;
    one.told(updated, 2).await;
    assert_eq!((two.notifications(updated).len(), three.notifications(updated).len()), (1, 0));
    one.delete().await;
    let count = || fixture.received().iter().filter(|received| received.method == "resources/unsubscribe").count();
    assert!(eventually(|| count() == 1).await, "the last subscriber left, {} were told", count());
    assert_eq!(three.text("touch_resource", uri).await, "told 0");
}

#[tokio::test]
async fn a_subscription_outlives_the_servers_memory_of_us() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    client.listen().await;
    let uri = json!({ "uri": "test://watched-resource" });
    client.request("resources/subscribe", uri.clone()).await.expect("subscribed");
    fixture.forget_sessions();
    assert_eq!(
        client.text("echo", json!({ "text": "as if nothing had happened" })).await,
        "as if nothing had happened"
    );
    let subscribed = || fixture.received().iter().filter(|received| received.method == "resources/subscribe").count();
    assert!(eventually(|| subscribed() == 2).await);
    client.text("touch_resource", uri.clone()).await;
    client.told("notifications/resources/updated", 1).await;
}

#[tokio::test]
async fn a_lost_session_is_opened_again_without_the_client_noticing() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    for round in 0..3 {
        let session = client.call("who", json!({})).await["structuredContent"]["sessionId"].clone();
        fixture.forget_sessions();
        let after = client.call("who", json!({})).await["structuredContent"]["sessionId"].clone();
        assert_ne!(session, after, "{round}");
    }
    assert_eq!(fixture.calls(), 6);
}

#[tokio::test]
async fn the_old_transport_is_spoken_where_it_is_configured_and_where_the_new_one_is_refused() {
    let (_fixture, sse) = fixture(FixtureTransport::Sse, FixtureOptions::default()).await;
    let gateway = gateway(json!({ "asked": sse.clone(), "found": with(sse, "type", "http") })).await;
    let client = gateway.client("direct").await;
    for module in ["asked", "found"] {
        assert_eq!(client.text(&format!("{module}__echo"), json!({ "text": module })).await, module);
        let params = json!({ "name": format!("{module}__test_tool_with_progress"), "arguments": {}, "_meta": { "progressToken": module } });
        client.request("tools/call", params).await.expect("a result");
    }
    assert_eq!(client.notifications("notifications/progress").len(), 6);
}

#[tokio::test]
async fn headers_of_the_config_are_sent_and_their_absence_is_explained() {
    let options =
        FixtureOptions { require_header: Some(("x-key".into(), "s3cret".into())), ..FixtureOptions::default() };
    let (_fixture, server) = fixture(FixtureTransport::Http, options).await;
    let right = with(server.clone(), "headers", json!({ "X-Key": "s3cret" }));
    let categories = json!({ "c": { "description": "d", "server": "wrong", "tools": { "includeNames": ["echo"] } } });
    let gateway =
        configured(json!({ "mcpServers": { "right": right, "wrong": server }, "categories": categories })).await;
    let client = gateway.client("direct,categories").await;
    assert_eq!(client.text("echo", json!({ "text": "in" })).await, "in");
    let error = error_of(&client.call_in("c", "echo", json!({ "text": "x" })).await);
    assert_eq!(error["code"], "ACCOUNT_REQUIRED");
    assert_eq!(error["message"], "`wrong` requires a login.");
    gateway.wait_for_stderr("check the credentials in `mcpServers.wrong.headers`.").await;
    assert!(!gateway.stderr().contains("s3cret"));
}

#[tokio::test]
async fn ten_dead_servers_of_fifty_delay_nobody() {
    let (fixture, live) = http_fixture().await;
    let mut servers = Map::new();
    for number in 0..40 {
        servers.insert(format!("live{number}"), live.clone());
    }
    for number in 0..5 {
        servers.insert(
            format!("refused{number}"),
            json!({ "description": "d", "type": "http", "url": "http://127.0.0.1:9/mcp" }),
        );
        servers.insert(format!("absent{number}"), json!({ "description": "d", "command": "/no/such/program" }));
    }
    let gateway = configured(json!({ "mcpServers": servers, "limits": { "all_lists": "20s" } })).await;
    let client = gateway.client("direct").await;
    let begin = Instant::now();
    assert_eq!(client.names("tools/list").await.len(), 40 * 33);
    assert!(begin.elapsed() < LIMIT, "{:?}", begin.elapsed());
    let begin = Instant::now();
    for number in [0, 39] {
        client.text(&format!("live{number}__echo"), json!({ "text": "x" })).await;
    }
    client.names("tools/list").await;
    assert!(begin.elapsed() < LIMIT, "{:?}", begin.elapsed());
    drop(fixture);
}

#[tokio::test]
async fn a_slow_list_is_waited_for_so_long_and_told_when_it_comes() {
    let (_quick, quick) = http_fixture().await;
    let slow = FixtureOptions { list_delay: Duration::from_secs(4), ..FixtureOptions::default() };
    let (_slow, slow) = fixture(FixtureTransport::Http, slow).await;
    let config = json!({ "mcpServers": { "quick": quick, "slow": slow }, "limits": { "all_lists": "2s" } });
    let gateway = configured(config).await;
    let client = gateway.client("direct").await;
    client.listen().await;
    let begin = Instant::now();
    assert_eq!(client.names("tools/list").await.len(), 33);
    assert!(begin.elapsed() < Duration::from_secs(4), "{:?}", begin.elapsed());
    // Every one of its lists is slow.
    assert!(within(LIMIT * 3, || !client.notifications(TOOLS_CHANGED).is_empty()).await);
    let begin = Instant::now();
    while client.names("tools/list").await.len() < 66 {
        assert!(begin.elapsed() < LIMIT, "the slow list never comes");
    }
}

#[tokio::test]
async fn a_lost_session_repeats_only_the_call_that_was_refused() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    let (ada, bob) = (gateway.client("direct").await, gateway.client("direct").await);
    let running = ada.begin_call("sleep", json!({ "ms": 1500 }));
    assert!(eventually(|| fixture.calls() == 1).await);
    fixture.forget_sessions();
    assert_eq!(bob.text("echo", json!({ "text": "again" })).await, "again");
    // It may fail, because the server's progress is unknown; it must not run twice.
    let outcome = running.answer().await;
    tokio::time::sleep(SETTLE_TIME).await;
    let slept = |received: &&hikite_testkit::fixture::ReceivedMessage| {
        received.method == "tools/call" && received.params.as_ref().is_some_and(|params| params.contains("sleep"))
    };
    assert_eq!(fixture.received().iter().filter(slept).count(), 1, "{outcome:?}");
    assert_eq!(fixture.calls(), 2);
}

#[tokio::test]
async fn a_server_that_cries_wolf_is_not_read_again_and_again() {
    let (fixture, server) =
        fixture(FixtureTransport::Http, FixtureOptions { cry_wolf: true, ..FixtureOptions::default() }).await;
    let gateway = gateway(json!({ "a": server })).await;
    assert_eq!(gateway.client("direct").await.text("echo", json!({ "text": "x" })).await, "x");
    let reads = || fixture.received().iter().filter(|received| received.method == "tools/list").count();
    let before = reads();
    fixture.add_tool("late");
    tokio::time::sleep(Duration::from_secs(3)).await;
    let read = reads() - before;
    assert!((1..=20).contains(&read), "read {read} times in 3 s");
    assert!(gateway.client("direct").await.names("tools/list").await.contains(&"late".to_owned()));
}

//! Per-session lists: items that a server offers to one client's session only are visible there and nowhere else, under
//! the usual rules.

use std::time::{Duration, Instant};

use hikite_testkit::fixture::{FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{ClientOptions, LIMIT, SETTLE_TIME, SessionClient, StatelessEnvelope, eventually};
use serde_json::{Value, json};

use crate::rest::{get, post};
use crate::{PROGRAMS, configured, error_of, fixture, stdio, with};

const CHANGED: [&str; 3] =
    ["notifications/tools/list_changed", "notifications/prompts/list_changed", "notifications/resources/list_changed"];

/// Returns a client that declares roots and elicitation.
fn hello() -> ClientOptions {
    let capabilities = json!({ "roots": { "listChanged": true }, "elicitation": {} });
    ClientOptions { capabilities, ..ClientOptions::answering("ada") }
}

async fn personal() -> (hikite_testkit::fixture::Fixture, Value) {
    fixture(FixtureTransport::Http, FixtureOptions { personal: true, ..FixtureOptions::default() }).await
}

/// Waits until a list contains this name, or no longer does.
async fn until(client: &SessionClient, method: &str, name: &str, there: bool) {
    let begin = Instant::now();
    while client.names(method).await.iter().any(|known| known == name) != there {
        assert!(begin.elapsed() < LIMIT, "{method}: `{name}` is {}", if there { "missing" } else { "still there" });
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn a_tool_that_one_session_is_offered_is_seen_and_called_there_alone() {
    let (_fixture, server) = personal().await;
    let config = json!({ "mcpServers": { "a": server } });
    let gateway = configured(config).await;
    let (ada, bob) = (gateway.client_with("direct", hello()).await, gateway.client_with("direct", hello()).await);
    for client in [&ada, &bob] {
        client.listen().await;
        client.text("echo", json!({ "text": "connect" })).await;
    }
    ada.text("grow", json!({ "name": "late" })).await;
    for changed in CHANGED {
        ada.told(changed, 1).await;
    }
    until(&ada, "tools/list", "late", true).await;
    until(&ada, "prompts/list", "late", true).await;
    until(&ada, "resources/list", "own://late", true).await;
    assert_eq!(ada.text("late", json!({})).await, "late of one session");
    assert_eq!(ada.text("a:late", json!({})).await, "late of one session");
    let prompt = ada.request("prompts/get", json!({ "name": "late" })).await.expect("its own prompt");
    assert_eq!(prompt["messages"][0]["content"]["text"], "late of one session");
    let read = ada.request("resources/read", json!({ "uri": "own://late" })).await.expect("its own resource");
    assert_eq!(read["contents"][0]["text"], "read own://late");
    tokio::time::sleep(SETTLE_TIME).await;
    for changed in CHANGED {
        assert!(bob.notifications(changed).is_empty(), "{changed} reached a session whose lists are the same");
    }
    assert!(!bob.names("tools/list").await.contains(&"late".to_owned()));
    let refused = bob.request("tools/call", json!({ "name": "late", "arguments": {} })).await;
    assert_eq!(refused.expect_err("not its own")["code"], -32602);
    ada.text("shrink", json!({})).await;
    until(&ada, "tools/list", "late", false).await;
    let refused = ada.request("tools/call", json!({ "name": "late", "arguments": {} })).await;
    assert_eq!(refused.expect_err("gone")["code"], -32602);
}

#[tokio::test]
async fn every_surface_finds_what_the_session_alone_is_offered() {
    let (_fixture, server) = personal().await;
    let config = json!({
        "mcpServers": { "a": server },
        "categories": { "c": { "description": "d", "server": "a" } },
    });
    let gateway = configured(config).await;
    let client = gateway.client_with("direct,categories,modules,search", hello()).await;
    client.text("grow", json!({ "name": "paint_fence" })).await;
    until(&client, "tools/list", "paint_fence", true).await;
    let shown = client.call("get-category-tools", json!({ "category": "c", "toolNames": ["paint_fence"] })).await;
    assert_eq!(shown["structuredContent"]["tools"]["paint_fence"]["name"], "paint_fence");
    let called = client.call_in("c", "paint_fence", json!({})).await;
    assert!(called.to_string().contains("paint_fence of one session"), "{called}");
    let opened = client.text("get_module_schema", json!({ "modules": ["a"], "detail": "names" })).await;
    assert!(opened.contains("paint_fence"), "{opened}");
    let called = client.call("call", json!({ "module": "a", "tool": "paint_fence", "params": {} })).await;
    assert!(called.to_string().contains("paint_fence of one session"), "{called}");
    let found = client.call("tool_discovery", json!({ "query": ["paint fence"] })).await;
    assert!(found.to_string().contains("a:paint_fence"), "{found}");
    let batch = json!({ "commands": [{ "id": "x", "module": "a", "tool": "paint_fence", "params": {} }] });
    let ran = client.call("batch", batch).await;
    assert_eq!(ran["structuredContent"]["tasks"][0]["status"], "ok", "{ran}");
}

#[tokio::test]
async fn a_program_with_a_session_of_its_own_is_heard_over_serve_and_over_stdio() {
    let server = with(stdio(&["--personal"]), "share", "never");
    let config = json!({ "mcpServers": { "a": server }, "server": { "surface": "direct" } });
    let gateway = configured(config.clone()).await;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("hikite.json"), config.to_string()).expect("written");
    let pipe = SessionClient::over_stdio(&PROGRAMS, folder.path(), &["--surface", "direct"], hello()).await;
    let ada = gateway.client_with("direct", hello()).await;
    let bob = gateway.client_with("direct", hello()).await;
    ada.listen().await;
    for client in [&pipe, &ada] {
        client.text("grow", json!({ "name": "late" })).await;
        client.told(CHANGED[0], 1).await;
        until(client, "tools/list", "late", true).await;
        assert_eq!(client.text("late", json!({})).await, "late of one session");
    }
    assert!(!bob.names("tools/list").await.contains(&"late".to_owned()));
    pipe.close().await;
}

#[tokio::test]
async fn what_a_session_is_offered_goes_with_its_upstream_session() {
    let (fixture, server) = personal().await;
    let gateway = configured(json!({ "mcpServers": { "a": server } })).await;
    let client = gateway.client_with("direct", hello()).await;
    client.listen().await;
    client.text("grow", json!({ "name": "late" })).await;
    until(&client, "tools/list", "late", true).await;
    let told = client.notifications(CHANGED[0]).len();
    fixture.forget_sessions();
    assert_eq!(client.text("echo", json!({ "text": "again" })).await, "again");
    until(&client, "tools/list", "late", false).await;
    client.told(CHANGED[0], told + 1).await;
}

#[tokio::test]
async fn a_strict_pin_holds_a_sessions_own_tool_back_until_it_is_approved() {
    let (_fixture, server) = personal().await;
    let gateway = configured(json!({ "mcpServers": { "a": server }, "pins": "strict" })).await;
    let client = gateway.client_with("direct", hello()).await;
    assert!(client.names("tools/list").await.is_empty(), "nothing is approved yet");
    let run = gateway.run(&["pin", "approve", "--all"]).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    until(&client, "tools/list", "grow", true).await;
    client.text("grow", json!({ "name": "late" })).await;
    let begin = Instant::now();
    let held = loop {
        let answer = client.request("tools/call", json!({ "name": "late", "arguments": {} })).await;
        if let Ok(held) = answer {
            break error_of(&held);
        }
        assert!(begin.elapsed() < LIMIT, "it is never heard of: {answer:?}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!(
        (&held["code"], &held["hint"]),
        (&json!("TOOL_DISABLED"), &json!("Review it with `hikite pin show a:late`."))
    );
    assert!(!client.names("tools/list").await.contains(&"late".to_owned()));
    let waiting = get(&gateway, "/v1/pins?state=new").await.value();
    let hash = waiting["pins"].as_array().expect("pins").iter().find(|pin| pin["key"] == "a:late").cloned();
    let hash = hash.unwrap_or_else(|| panic!("{waiting}"))["hash"].clone();
    let approved = post(&gateway, "/v1/pins/a:late/approve", &json!({ "hash": hash })).await;
    assert_eq!(approved.status, 200, "{}", approved.value());
    until(&client, "tools/list", "late", true).await;
    assert_eq!(client.text("late", json!({})).await, "late of one session");
}

#[tokio::test]
async fn a_sessions_own_tool_is_shown_approved_and_blocked_at_the_terminal() {
    let (_fixture, server) = personal().await;
    let gateway = configured(json!({ "mcpServers": { "a": server }, "pins": "strict" })).await;
    let client = gateway.client_with("direct", hello()).await;
    let listen = gateway.address().to_string();
    let pin = async |words: &[&str]| gateway.run(&[&["pin", "--listen", &listen], words].concat()).await;
    assert_eq!(pin(&["approve", "--all"]).await.code, Some(0));
    until(&client, "tools/list", "grow", true).await;
    client.text("grow", json!({ "name": "late" })).await;
    let begin = Instant::now();
    let shown = loop {
        let shown = pin(&["show", "a:late"]).await;
        if shown.code == Some(0) {
            break shown.stdout;
        }
        assert!(begin.elapsed() < LIMIT * 3, "{}", shown.stderr);
    };
    assert!(shown.starts_with("a:late: new; it cannot be called before it is approved\n"), "{shown}");
    let all_new = pin(&["list", "--state", "new", "--module", "a"]).await;
    assert_eq!((all_new.code, all_new.stdout.trim()), (Some(0), "a:late  new  strict"), "{}", all_new.stderr);
    let wrong = pin(&["approve", "late", "--hash", &"0".repeat(64)]).await;
    assert!(wrong.code == Some(1) && wrong.stderr.contains("has changed since you reviewed it"), "{}", wrong.stderr);
    let approved = pin(&["approve", "late"]).await;
    assert_eq!((approved.code, approved.stderr.trim()), (Some(0), "`a:late` is approved."));
    until(&client, "tools/list", "late", true).await;
    let blocked = pin(&["block", "a:late", "--json"]).await;
    let blocked: Value = serde_json::from_str(&blocked.stdout).unwrap_or_else(|_| panic!("{}", blocked.stderr));
    assert_eq!((&blocked[0]["key"], &blocked[0]["state"]), (&json!("a:late"), &json!("blocked")));
    until(&client, "tools/list", "late", false).await;
    // A hikite that does not accept the token is another one: the servers are asked instead.
    let other = configured(json!({})).await;
    let own = gateway.run(&["pin", "--listen", &other.address().to_string(), "show", "a:grow"]).await;
    assert!(own.code == Some(0) && own.stdout.starts_with("a:grow: approved\n"), "{}", own.stderr);
}

#[tokio::test]
async fn a_permission_hides_a_sessions_own_tool_like_any_other() {
    let (_fixture, server) = personal().await;
    let config = json!({
        "mcpServers": { "a": server },
        "projects": { "p": { "permissions": { "deny": ["a:late*"] } } },
    });
    let gateway = configured(config).await;
    let path = "/mcp/p?surface=direct";
    let client = SessionClient::over_http(gateway.address(), path, Some(gateway.token()), hello()).await;
    client.text("grow", json!({ "name": "later" })).await;
    client.text("grow", json!({ "name": "soon" })).await;
    until(&client, "tools/list", "soon", true).await;
    assert!(!client.names("tools/list").await.contains(&"later".to_owned()));
    let refused = client.request("tools/call", json!({ "name": "later", "arguments": {} })).await;
    assert_eq!(refused.expect_err("denied")["code"], -32602);
}

#[tokio::test]
async fn who_has_one_list_too_many_of_its_own_sees_the_shared_one() {
    let (_fixture, server) = personal().await;
    let config = json!({ "mcpServers": { "a": server }, "limits": { "own_lists": 1 } });
    let gateway = configured(config).await;
    let (ada, bob) = (gateway.client_with("direct", hello()).await, gateway.client_with("direct", hello()).await);
    ada.text("grow", json!({ "name": "one" })).await;
    until(&ada, "tools/list", "one", true).await;
    bob.text("grow", json!({ "name": "two" })).await;
    assert!(eventually(|| gateway.stderr().contains("own_lists")).await, "{}", gateway.stderr());
    let names = bob.names("tools/list").await;
    assert!(!names.contains(&"two".to_owned()) && !names.contains(&"one".to_owned()));
    // Equal lists are shared.
    let eve = gateway.client_with("direct", hello()).await;
    eve.text("grow", json!({ "name": "one" })).await;
    until(&eve, "tools/list", "one", true).await;
}

#[tokio::test]
async fn a_server_that_says_its_list_changed_is_believed_even_if_it_is_the_same() {
    let (_fixture, server) = personal().await;
    let gateway = configured(json!({ "mcpServers": { "a": server } })).await;
    let (ada, bob) = (gateway.client_with("direct", hello()).await, gateway.client_with("categories", hello()).await);
    for client in [&ada, &bob] {
        client.listen().await;
    }
    ada.text("announce", json!({ "times": 1 })).await;
    ada.told(CHANGED[0], 1).await;
    tokio::time::sleep(SETTLE_TIME).await;
    assert!(bob.notifications(CHANGED[0]).is_empty(), "nobody said anything to this session");
}

#[tokio::test]
async fn a_resource_that_no_list_has_is_read_by_the_link_to_it() {
    let (_one, one) = personal().await;
    let (_two, two) = personal().await;
    let gateway = configured(json!({ "mcpServers": { "one": one, "two": two } })).await;
    let (ada, bob) = (gateway.client("direct").await, gateway.client_with("direct", hello()).await);
    let uri = json!({ "uri": "unlisted://page/7" });
    let unknown = ada.request("resources/read", uri.clone()).await.expect_err("nobody knows it");
    assert_eq!(unknown["code"], -32002, "{unknown}");
    ada.call("two__link", uri.clone()).await;
    for client in [&ada, &bob] {
        let read = client.request("resources/read", uri.clone()).await.expect("it was given to this caller");
        assert_eq!(read["contents"][0]["text"], "read unlisted://page/7");
    }
    ada.listen().await;
    assert_eq!(ada.request("resources/subscribe", uri.clone()).await, Ok(json!({})));
    ada.call("two__touch_resource", uri.clone()).await;
    assert_eq!(ada.told("notifications/resources/updated", 1).await, std::slice::from_ref(&uri));
    assert_eq!(ada.request("resources/unsubscribe", uri).await, Ok(json!({})));
    let both = ada.request("resources/read", json!({ "uri": "test://other" })).await.expect_err("of whom?");
    let hint = both["data"]["hint"].as_str().expect("words");
    assert!(hint.contains("`one`") && hint.contains("`two`"), "{both}");
}

#[tokio::test]
async fn an_unlisted_resource_goes_to_the_one_module_that_its_scheme_fits() {
    let (fixture, server) = personal().await;
    let (other, bystander) = fixture_of_prompts().await;
    let gateway = configured(json!({ "mcpServers": { "one": server, "two": bystander } })).await;
    let client = gateway.client("direct").await;
    let error = client.request("resources/read", json!({ "uri": "test://no-such" })).await.expect_err("unknown");
    assert_eq!(error["code"], -32002, "{error}");
    let reads = |fixture: &hikite_testkit::fixture::Fixture| {
        fixture.received().iter().filter(|received| received.method == "resources/read").count()
    };
    assert_eq!((reads(&fixture), reads(&other)), (1, 0), "its own server was asked, and no other");
}

/// Starts a server whose resources have another URI scheme.
async fn fixture_of_prompts() -> (hikite_testkit::fixture::Fixture, Value) {
    let imitation = Some(hikite_testkit::fixture::ImitatedService::Notion);
    fixture(FixtureTransport::Http, FixtureOptions { imitation, ..FixtureOptions::default() }).await
}

#[tokio::test]
async fn a_flood_of_announcements_is_read_a_few_times_and_holds_nobody_up() {
    let (flooding, server) = personal().await;
    let (_other, calm) = personal().await;
    let gateway = configured(json!({ "mcpServers": { "a": server, "b": calm } })).await;
    let client = gateway.client_with("direct", hello()).await;
    client.listen().await;
    assert_eq!(client.text("a__echo", json!({ "text": "x" })).await, "x");
    let lists = || flooding.received().iter().filter(|received| received.method == "tools/list").count();
    let before = lists();
    client.text("a__announce", json!({ "times": 100_000 })).await;
    for number in 0..50 {
        let text = number.to_string();
        assert_eq!(client.text("b__echo", json!({ "text": text })).await, text);
    }
    tokio::time::sleep(Duration::from_secs(2)).await;
    let read = lists() - before;
    assert!((1..=12).contains(&read), "read {read} times");
    let told = client.notifications(CHANGED[0]).len();
    assert!(told <= read, "told {told} times of {read} readings");
}

#[tokio::test]
async fn a_client_without_a_session_sees_what_its_calls_brought_about_and_hears_of_it() {
    let (_fixture, server) = personal().await;
    let gateway = configured(json!({ "mcpServers": { "a": server } })).await;
    let client = gateway.stateless("direct", StatelessEnvelope::capable());
    let other = gateway.stateless("direct", StatelessEnvelope::default());
    let wish = json!({ "toolsListChanged": true });
    client.text("echo", json!({ "text": "connect" })).await;
    let (heard, others) = (client.listen(wish.clone()).await, other.listen(wish).await);
    client.text("grow", json!({ "name": "late" })).await;
    heard.told(CHANGED[0], 1).await;
    let lists = async |client: &hikite_testkit::gateway::StatelessClient| {
        client.request("tools/list", json!({})).await.result().to_string().contains("\"late\"")
    };
    let begin = Instant::now();
    while !lists(&client).await {
        assert!(begin.elapsed() < LIMIT, "the tool is not listed");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert!(!lists(&other).await, "it has no session with the server that grew");
    assert_eq!(client.text("late", json!({})).await, "late of one session");
    assert!(others.notifications(CHANGED[0]).is_empty(), "its own list is the same");
}

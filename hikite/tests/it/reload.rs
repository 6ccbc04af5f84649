//! Reload of the config file while the gateway runs.

use hikite_testkit::gateway::{TestGateway, eventually};
use serde_json::{Value, json};

use crate::{begin_sleep, configured, http_fixture, stdio, with};

const TOOLS_CHANGED: &str = "notifications/tools/list_changed";

#[expect(clippy::needless_pass_by_value, reason = "reads like the JSON it makes")]
fn config(servers: Value, categories: &[&str]) -> Value {
    let categories: serde_json::Map<String, Value> = categories
        .iter()
        .map(|name| ((*name).to_owned(), json!({ "description": format!("About {name}."), "server": "a" })))
        .collect();
    json!({ "mcpServers": servers, "categories": categories })
}

async fn menu(gateway: &TestGateway) -> String {
    let list = gateway.client("categories").await.request("tools/list", json!({})).await.expect("a list");
    list["tools"][0]["description"].as_str().expect("text").to_owned()
}

#[tokio::test]
async fn a_new_category_shows_and_is_told() {
    let (_fixture, server) = http_fixture().await;
    let gateway = configured(config(json!({ "a": server }), &["one"])).await;
    let client = gateway.client("").await;
    client.listen().await;
    client.call_in("one", "echo", json!({ "text": "x" })).await;
    gateway.write_config(&config(json!({ "a": server }), &["one", "two"]));
    client.told(TOOLS_CHANGED, 1).await;
    assert!(menu(&gateway).await.ends_with("\n- one: About one.\n- two: About two."));
    assert_eq!(client.call_in("two", "echo", json!({ "text": "there" })).await["content"][0]["text"], "there");
    gateway.wait_for_stderr("the changed config is active").await;
    gateway.write_config(&config(json!({ "a": server }), &["two"]));
    client.told(TOOLS_CHANGED, 2).await;
    assert_eq!(client.call_in("one", "echo", json!({})).await["structuredContent"]["error"]["name"], "UnknownCategory");
}

#[tokio::test]
async fn a_wrong_change_is_told_and_changes_nothing() {
    let (_fixture, server) = http_fixture().await;
    let gateway = configured(config(json!({ "a": server }), &["one"])).await;
    let client = gateway.client("").await;
    client.listen().await;
    let before = menu(&gateway).await;
    for (wrong, said) in [
        ("{ broken", "hikite.json:1:3: expected"),
        (
            r#"{ "categories": { "one": { "description": "d", "server": "gone" } } }"#,
            "categories.one.server: there is no server `gone` in `mcpServers`",
        ),
        (r#"{ "limts": {} }"#, "limts: unknown key\nhint: Did you mean `limits`?"),
    ] {
        gateway.write_text(wrong);
        gateway.wait_for_stderr(said).await;
        assert_eq!(client.call_in("one", "echo", json!({ "text": "still" })).await["content"][0]["text"], "still");
        assert_eq!(menu(&gateway).await, before);
    }
    assert_eq!(gateway.stderr().matches("the changed config is invalid; the previous one stays active:").count(), 3);
    assert!(client.notifications(TOOLS_CHANGED).is_empty());
    gateway.write_config(&config(json!({ "a": server }), &["one", "two"]));
    client.told(TOOLS_CHANGED, 1).await;
}

#[tokio::test]
async fn what_did_not_change_goes_on_undisturbed() {
    let servers = |extra: Option<Value>| {
        let mut servers = json!({ "a": stdio(&[]), "gone": with(stdio(&[]), "env", json!({ "X": "1" })) });
        match extra {
            Some(extra) => servers["gone"] = extra,
            None => drop(servers.as_object_mut().expect("servers").remove("gone")),
        }
        servers
    };
    let gateway = configured(config(servers(Some(stdio(&[]))), &["one"])).await;
    let client = gateway.client("direct").await;
    client.listen().await;
    let who = async |tool: &str| client.call(tool, json!({})).await["structuredContent"]["pid"].clone();
    let (kept, gone) = (who("a__who").await, who("gone__who").await);
    let running = [begin_sleep(&client, "a__sleep", 1200).await, begin_sleep(&client, "gone__sleep", 1200).await];
    let told = client.notifications(TOOLS_CHANGED).len();
    gateway.write_config(&config(servers(None), &["one"]));
    client.told(TOOLS_CHANGED, told + 1).await;
    for call in running {
        assert_eq!(
            call.answer().await.expect("a result")["content"][0]["text"],
            "slept 1200 ms",
            "what runs may finish"
        );
    }
    assert_eq!(who("who").await, kept, "a name is bare again once it is the only one");
    let gone = u32::try_from(gone.as_u64().expect("a pid")).expect("a pid");
    assert!(eventually(|| !hikite_testkit::gateway::is_alive(gone)).await, "the removed server lives on");
}

#[tokio::test]
async fn a_changed_server_is_started_anew() {
    let gateway = configured(config(json!({ "a": with(stdio(&[]), "env", json!({ "PROBE": "1" })) }), &["one"])).await;
    let client = gateway.client("").await;
    let probe = async || client.call_in("one", "env", json!({ "name": "PROBE" })).await["content"][0]["text"].clone();
    assert_eq!(probe().await, "1");
    gateway.write_config(&config(json!({ "a": with(stdio(&[]), "env", json!({ "PROBE": "2" })) }), &["one"]));
    gateway.wait_for_stderr("the changed config is active").await;
    assert_eq!(probe().await, "2");
    assert!(eventually(|| gateway.descendants().len() == 2).await, "{:?}", gateway.descendants());
}

#[tokio::test]
async fn a_new_token_holds_at_once_and_what_needs_a_restart_is_said() {
    let auth = |token: &str| json!({ "auth": { "token": token } });
    let gateway = configured(auth("the-first-token-of-all")).await;
    let ask = async |token: &str| {
        let request = hikite_testkit::gateway::HttpRequest::new("GET", "/nowhere")
            .header("authorization", &format!("Bearer {token}"));
        gateway.send(request).await.status
    };
    assert_eq!((ask("the-first-token-of-all").await, ask("the-second-token-of-all").await), (404, 401));
    let mut next = auth("the-second-token-of-all");
    next["limits"] = json!({ "drain": "1s" });
    gateway.write_config(&next);
    gateway.wait_for_stderr("`server.listen`, `limits`, `data` and `store` take effect after a restart").await;
    gateway.wait_for_stderr("the changed config is active").await;
    assert_eq!((ask("the-first-token-of-all").await, ask("the-second-token-of-all").await), (401, 404));
}

#[tokio::test]
async fn a_reload_cannot_expose_the_gateway_to_the_network() {
    let gateway = configured(json!({})).await;
    gateway.write_config(&json!({ "auth": { "mode": "none" }, "server": { "listen": "0.0.0.0:0" } }));
    tokio::time::sleep(std::time::Duration::from_secs(1)).await;
    // The socket stays on loopback, where no token is required; a foreign Host is never allowed.
    let foreign = hikite_testkit::gateway::HttpRequest::new("GET", "/mcp").header("host", "10.0.0.1");
    assert_eq!(gateway.send(foreign).await.status, 403);
}

fn initialize() -> hikite_testkit::gateway::HttpRequest {
    let hello =
        json!({ "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } });
    let message = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello });
    hikite_testkit::gateway::HttpRequest::new("POST", "/mcp").json(message.to_string())
}

#[tokio::test]
async fn another_data_folder_in_the_file_leaves_the_token_as_it_is() {
    let config = |data: &str| json!({ "server": { "listen": "127.0.0.1:0" }, "data": data });
    let gateway = TestGateway::start_by_file(&crate::PROGRAMS, config("data")).await;
    assert!(!gateway.token().is_empty());
    gateway.write_config(&config("elsewhere"));
    gateway.wait_for_stderr("`server.listen`, `limits`, `data` and `store` take effect after a restart").await;
    gateway.wait_for_stderr("the changed config is active").await;
    let bearer = format!("Bearer {}", gateway.token());
    assert_eq!(gateway.send(initialize().header("authorization", &bearer)).await.status, 200);
    assert_eq!(gateway.send(initialize()).await.status, 401);
    assert!(!gateway.folder().path().join("elsewhere").exists());
}

#[tokio::test]
async fn another_store_in_the_file_waits_for_a_restart() {
    let gateway = configured(json!({})).await;
    gateway.write_config(&json!({ "store": { "url": "sqlite:elsewhere.db" } }));
    gateway.wait_for_stderr("`server.listen`, `limits`, `data` and `store` take effect after a restart").await;
    gateway.wait_for_stderr("the changed config is active").await;
    assert!(!gateway.folder().path().join("elsewhere.db").exists());
}

#[tokio::test]
async fn a_reload_cannot_drop_the_token_by_naming_another_address_than_the_bound_one() {
    let token = "a-token-from-the-config-file";
    let open = json!({ "listen": "0.0.0.0:0", "public_url": "https://x.example", "allowed_hosts": ["127.0.0.1"] });
    let config = json!({ "server": open, "auth": { "token": token }, "data": "data" });
    let gateway = TestGateway::start_by_file(&crate::PROGRAMS, config).await;
    let bearer = format!("Bearer {token}");
    let statuses = async || {
        let with = gateway.send(initialize().header("authorization", &bearer)).await.status;
        (with, gateway.send(initialize()).await.status)
    };
    assert_eq!(statuses().await, (200, 401));
    gateway.write_config(&json!({ "server": { "listen": "127.0.0.1:0" }, "auth": { "mode": "none" }, "data": "data" }));
    gateway.wait_for_stderr("the changed config is invalid; the previous one stays active:").await;
    gateway.wait_for_stderr("`auth.mode` is \"none\" and 0.0.0.0:").await;
    assert_eq!(statuses().await, (200, 401));
    // Not even through a valid file in between.
    gateway.write_config(&json!({ "server": { "listen": "127.0.0.1:0", "public_url": "https://x.example" },
        "auth": { "token": token }, "data": "data" }));
    gateway.wait_for_stderr("the changed config is active").await;
    gateway.write_config(&json!({ "server": { "listen": "127.0.0.1:0" }, "auth": { "mode": "none" }, "data": "data" }));
    let refused = || gateway.stderr().matches("the changed config is invalid").count() == 2;
    assert!(eventually(refused).await, "{}", gateway.stderr());
    assert_eq!(statuses().await, (200, 401));
}

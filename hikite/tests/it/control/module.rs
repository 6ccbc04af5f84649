//! Modules: status, connection, restart, enable and disable.

use hikite_testkit::gateway::TestGateway;
use serde_json::{Value, json};

use super::{deeds, outsider, refuses_outsiders, shared, until};
use crate::rest::{get, post, refused};
use crate::{configured, gateway, http_fixture, stdio, with};

async fn module(gateway: &TestGateway, name: &str) -> Value {
    get(gateway, &format!("/v1/modules/{name}")).await.value()
}

fn names(modules: &Value) -> Vec<&str> {
    modules["modules"].as_array().expect("modules").iter().filter_map(|module| module["name"].as_str()).collect()
}

#[tokio::test]
async fn a_module_tells_an_admin_how_it_is_doing_and_how_it_is_reached() {
    let (_fixture, remote) = http_fixture().await;
    let remote = with(remote.clone(), "url", format!("{}?key=hunter2", remote["url"].as_str().expect("a URL")));
    let remote = with(remote, "headers", json!({ "X-Key": "hunter3" }));
    let local = with(stdio(&[]), "env", json!({ "KEY": "hunter4" }));
    let gateway = gateway(json!({ "a": local, "b": remote, "c": with(stdio(&[]), "enabled", false) })).await;
    for _ in 0..3 {
        let call = json!({ "name": "a:echo", "parameters": { "text": "x" } });
        assert_eq!(post(&gateway, "/v1/tools/call", &call).await.status, 200);
    }
    let a = module(&gateway, "a").await;
    assert_eq!((&a["kind"], &a["managedBy"], &a["enabled"]), (&json!("stdio"), &json!("file"), &json!(true)), "{a}");
    assert_eq!(
        (&a["state"], &a["calls"]["perMinute"], &a["calls"]["total"]),
        (&json!("running"), &json!(3), &json!(3))
    );
    assert!(a["calls"]["p50Ms"].as_f64().is_some_and(|ms| ms > 0.0), "{a}");
    assert!(a["command"].is_string() && a["args"] == json!(["--stdio"]) && a["stderr"].is_array(), "{a}");
    let b = module(&gateway, "b").await;
    assert_eq!((&b["kind"], &b["calls"]["total"]), (&json!("http"), &json!(0)), "{b}");
    assert!(b["url"].as_str().expect("an address").ends_with("?key=***"), "{b}");
    let all = get(&gateway, "/v1/modules").await;
    assert!(!format!("{} {a} {b}", all.text()).contains("hunter"));
    let all = all.value();
    assert_eq!(names(&all), ["a", "b", "c"]);
    let c = &all["modules"][2];
    assert_eq!((&c["state"], &c["enabled"], &c["managedBy"]), (&json!("disabled"), &json!(false), &json!("file")));
    let refusal = post(&gateway, "/v1/modules/c/enable", &json!({})).await;
    refused(&refusal, 409, "CONFLICT", "The module `c` is disabled in the config file.");
}

#[tokio::test]
async fn others_are_told_less_and_may_switch_nothing() {
    let gateway = gateway(json!({ "a": stdio(&[]), "b": with(stdio(&[]), "enabled", false) })).await;
    let token = outsider(&gateway).await;
    let look = |path: &'static str| {
        let request = gateway.request("GET", path).header("authorization", &format!("Bearer {token}"));
        gateway.send(request)
    };
    let all = look("/v1/modules").await.value();
    assert_eq!(names(&all), ["a"]);
    let a = look("/v1/modules/a").await.value();
    for member in ["calls", "command", "args", "stderr", "url"] {
        assert!(a[member].is_null() && all["modules"][0][member].is_null(), "{member}: {a}");
    }
    assert_eq!(a["kind"], "stdio");
    refused(&look("/v1/modules/b").await, 404, "NOT_FOUND", "There is no module `b`.");
    refuses_outsiders(
        &gateway,
        &[("POST", "/v1/modules/a/restart"), ("POST", "/v1/modules/a/disable"), ("POST", "/v1/modules/a/enable")],
    )
    .await;
}

#[tokio::test]
async fn a_module_that_is_off_is_in_nobodys_view_here_in_other_processes_and_after_a_restart() {
    let servers = json!({ "a": stdio(&[]), "b": stdio(&[]) });
    let (_folder, config) = shared(json!({ "mcpServers": servers, "server": { "surface": "direct" } }));
    let gateway = configured(config.clone()).await;
    let other = configured(config.clone()).await;
    let client = gateway.client("direct").await;
    assert!(client.names("tools/list").await.iter().any(|name| name == "b__echo"));
    let off = post(&gateway, "/v1/modules/b/disable", &json!({})).await;
    assert_eq!((off.status, &off.value()["state"]), (200, &json!("disabled")), "{}", off.text());
    assert!(!client.names("tools/list").await.iter().any(|name| name.contains("__")));
    let call = json!({ "name": "b:echo", "parameters": { "text": "x" } });
    let status = async |gateway: &TestGateway| post(gateway, "/v1/tools/call", &call).await.status;
    assert_eq!(status(&gateway).await, 404);
    until("the other process follows", async || status(&other).await == 404).await;
    drop(other);
    let gateway = gateway.restart(config).await;
    assert_eq!(status(&gateway).await, 404);
    assert_eq!(module(&gateway, "b").await["state"], "disabled");
    assert_eq!(post(&gateway, "/v1/modules/b/restart", &json!({})).await.status, 409);
    let on = post(&gateway, "/v1/modules/b/enable", &json!({})).await;
    assert_eq!(on.value()["enabled"], true, "{}", on.text());
    assert_eq!(status(&gateway).await, 200);
    let deeds = deeds(&gateway, 3).await;
    assert_eq!(deeds, ["module.enable b ok", "module.restart b CONFLICT", "module.disable b ok"]);
}

#[tokio::test]
async fn a_restart_ends_the_process_and_the_next_call_starts_another() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    let call = json!({ "name": "a:echo", "parameters": { "text": "x" } });
    assert_eq!(post(&gateway, "/v1/tools/call", &call).await.status, 200);
    let before: Vec<u32> = gateway.descendants().iter().map(|process| process.pid).collect();
    assert!(!before.is_empty());
    assert_eq!(post(&gateway, "/v1/modules/a/restart", &json!({})).await.status, 200);
    assert_eq!(post(&gateway, "/v1/tools/call", &call).await.status, 200);
    let lives = async || gateway.descendants().iter().any(|process| before.contains(&process.pid));
    until("the old process is gone", async || !lives().await).await;
    assert_eq!(post(&gateway, "/v1/modules/nobody/restart", &json!({})).await.status, 404);
}

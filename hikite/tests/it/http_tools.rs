//! HTTP tools from the config and from a terminal: called on every interface, protected against SSRF, enabled and
//! disabled.

use hikite_testkit::api::{MockApi, MockResponse};
use hikite_testkit::gateway::{CommandOutput, TestGateway};
use serde_json::{Value, json};

use crate::{configured, error_of};

/// A secret that must never leak.
const CANARY: &str = "canary-5b1f7a";

/// Returns a tool that reads `/users/{id}` of the service.
fn form(url: &str) -> Value {
    json!({ "description": "Reads a user.",
        "parameters": [{ "name": "id", "type": "string", "description": "whose", "required": true }, { "name": "lang", "type": "string", "description": "in which language" }],
        "http": { "url": url, "headers": { "Authorization": format!("Bearer {CANARY}") }, "result": "user" } })
}

fn named(mut form: Value, name: &str) -> Value {
    form["name"] = name.into();
    form
}

/// Starts a service with one user.
async fn service() -> MockApi {
    let api = MockApi::start().await;
    api.answer("/users/7", MockResponse::json(&json!({ "user": { "name": "Ada" } })));
    api
}

async fn register(gateway: &TestGateway, form: &Value, flags: &[&str]) -> CommandOutput {
    let file = gateway.folder().path().join("form.json");
    std::fs::write(&file, form.to_string()).expect("a file");
    let arguments: Vec<&str> =
        ["tools", "register", file.to_str().expect("UTF-8")].iter().chain(flags).copied().collect();
    gateway.run(&arguments).await
}

#[tokio::test]
async fn mistakes_in_a_form_are_told_before_anything_starts() {
    let gateway = configured(json!({})).await;
    let file = gateway.folder().path().join("broken.json");
    std::fs::write(&file, "{\n  \"name\": }").expect("a file");
    let run = gateway.run(&["tools", "register", file.to_str().expect("UTF-8")]).await;
    assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""));
    assert!(run.stderr.contains("is no form of a tool: 2:11: "), "{}", run.stderr);
    let run = register(&gateway, &json!([]), &[]).await;
    assert!(run.stderr.contains("it is not an object"), "{}", run.stderr);
    let run = gateway.run(&["tools", "register", "nowhere.json"]).await;
    assert!(run.code == Some(1) && run.stderr.contains("cannot read `nowhere.json`"), "{}", run.stderr);
}

#[tokio::test]
async fn unknown_tools_are_not_switched() {
    let gateway = configured(json!({})).await;
    for verb in ["enable", "disable", "unregister"] {
        let run = gateway.run(&["tools", verb, "nothing"]).await;
        assert_eq!((run.code, run.stdout.as_str()), (Some(1), ""), "{verb}");
        assert!(run.stderr.starts_with("error: "), "{}", run.stderr);
    }
}

#[tokio::test]
async fn the_config_is_shown_without_the_secrets_of_its_tools() {
    let gateway = configured(json!({ "tools": { "get-user": form("https://x/{id}") } })).await;
    let run = gateway.run(&["config", "show"]).await;
    assert!(run.code == Some(0) && run.stdout.contains("https://x/{id}"), "{}", run.stderr);
    assert!(!run.stdout.contains(CANARY), "{}", run.stdout);
}

#[tokio::test]
async fn a_tool_of_the_file_is_called_and_follows_it() {
    let api = service().await;
    let tools = |path: &str| json!({ "tools": { "get-user": form(&api.url(path)) } });
    let gateway = configured(tools("/users/{id}")).await;
    let client = gateway.client("direct").await;
    assert_eq!(client.names("tools/list").await, ["get-user"]);
    let result = client.call("get-user", json!({ "id": "7", "lang": "ja" })).await;
    assert_eq!(result["structuredContent"], json!({ "name": "Ada" }));
    assert_eq!(
        (api.last().query.as_str(), api.last().header("authorization")),
        ("lang=ja", Some("Bearer canary-5b1f7a"))
    );
    let run = gateway.run(&["call", "registered:get-user", "--param", "id=\"7\""]).await;
    assert!(run.code == Some(0) && run.stdout.contains("Ada"), "{}{}", run.stdout, run.stderr);
    let run = gateway.run(&["call", "get-user", "--json", r#"{"id": "7"}"#, "--raw"]).await;
    assert!(run.stdout.contains("\"structuredContent\""), "{}", run.stdout);
    gateway.write_config(&json!({ "tools": { "get-person": form(&api.url("/users/{id}")) } }));
    gateway.wait_for_stderr("the changed config is in force").await;
    assert_eq!(gateway.client("direct").await.names("tools/list").await, ["get-person"]);
    let overwrite = register(&gateway, &named(form("https://x/{id}"), "get-person"), &["--overwrite"]).await;
    assert_eq!(overwrite.code, Some(1), "what the file says is the file's: {}", overwrite.stderr);
    assert!(!gateway.stderr().contains(CANARY), "{}", gateway.stderr());
}

#[tokio::test]
async fn a_registered_tool_is_seen_by_a_running_gateway_and_stays_outside() {
    let api = service().await;
    let gateway = configured(json!({ "egress": { "allow": [] } })).await;
    let run = register(&gateway, &named(form(&api.url("/users/{id}")), "get-user"), &[]).await;
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(run.stderr.contains("`registered:get-user` is registered"), "{}", run.stderr);
    let again = register(&gateway, &named(form(&api.url("/users/{id}")), "get-user"), &[]).await;
    assert_eq!(again.code, Some(1), "{}", again.stderr);
    let client = gateway.client("direct").await;
    seen(&gateway, "get-user", true).await;
    let result = client.call("get-user", json!({ "id": "7" })).await;
    assert_eq!((error_of(&result)["code"].clone(), api.connections()), (json!("TOOL_EXECUTION_ERROR"), 0), "{result}");
    gateway.write_config(&json!({ "egress": { "allow": ["127.0.0.1"] } }));
    gateway.wait_for_stderr("the changed config is in force").await;
    let result = client.call("get-user", json!({ "id": "7" })).await;
    assert_eq!(result["structuredContent"], json!({ "name": "Ada" }), "{result}");
    for (verb, shows) in [("disable", false), ("enable", true), ("unregister", false)] {
        let run = gateway.run(&["tools", verb, "registered:get-user"]).await;
        assert_eq!(run.code, Some(0), "{verb}: {}", run.stderr);
        seen(&gateway, "get-user", shows).await;
    }
}

#[tokio::test]
async fn all_faults_of_a_form_are_told() {
    let gateway = configured(json!({})).await;
    let mut wrong = named(form("https://x/{idd}"), "get-user");
    wrong["http"]["headers"]["Host"] = "y".into();
    let run = register(&gateway, &wrong, &[]).await;
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    for said in [
        "/http/url: there is no parameter `idd`. Did you mean `id`?",
        "/http/headers/Host: `host` is set by hikite alone",
    ] {
        assert!(run.stderr.contains(said), "{}", run.stderr);
    }
}

/// Waits until the list contains the tool, or no longer does.
async fn seen(gateway: &TestGateway, tool: &str, expected: bool) {
    let client = gateway.client("direct").await;
    for _ in 0..200 {
        let names = client.names("tools/list").await;
        if names.iter().any(|name| name == tool) == expected {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("`{tool}` is still not as it should be ({expected}):\n{}", gateway.stderr());
}

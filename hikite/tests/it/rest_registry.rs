//! Tool registration over the REST API: tools are registered, replaced, enabled, disabled and deleted, with the rules
//! and messages of the specification.

use hikite_testkit::gateway::{HttpReply, TestGateway};
use serde_json::{Value, json};

use crate::rest::{get, is_moment, post, refused};
use crate::{gateway, stdio, with};

const NAME: &str =
    "Tool name must start with lowercase letter and contain only lowercase letters, numbers, and hyphens";

fn form(name: &str) -> Value {
    json!({ "name": name, "description": "Test tool", "parameters": [],
        "http": { "url": "https://api.example/thing" } })
}

async fn register(gateway: &TestGateway, form: &Value) -> HttpReply {
    post(gateway, "/v1/tools", form).await
}

async fn delete(gateway: &TestGateway, path: &str) -> HttpReply {
    gateway.send(gateway.request("DELETE", path)).await
}

#[tokio::test]
async fn a_tool_is_registered_shown_and_found_again_after_a_restart() {
    let gateway = gateway(json!({})).await;
    let mut whole = form("weather");
    for (key, value) in [
        ("version", json!("2.1.0")),
        ("tags", json!(["sky", "city"])),
        ("category", json!("outside")),
        ("author", json!("somebody")),
        ("examples", json!([{ "description": "Kyoto", "parameters": { "city": "Kyoto" }, "expectedResult": 7 }])),
        ("parameters", json!([{ "name": "city", "type": "string", "description": "The city.", "required": true }])),
    ] {
        whole = with(whole, key, value);
    }
    let reply = register(&gateway, &whole).await;
    let tool = reply.value();
    assert_eq!(
        (reply.status, reply.headers["location"].to_str().expect("text")),
        (201, "/v1/tools/registered:weather"),
        "{tool}"
    );
    assert_eq!(
        (&tool["key"], &tool["module"], &tool["version"]),
        (&json!("registered:weather"), &json!("registered"), &json!("2.1.0"))
    );
    assert_eq!(
        (&tool["tags"], &tool["category"], &tool["author"]),
        (&whole["tags"], &whole["category"], &whole["author"])
    );
    assert_eq!((&tool["examples"], &tool["enabled"]), (&whole["examples"], &json!(true)));
    assert_eq!(tool["inputSchema"]["required"], json!(["city"]));
    is_moment(&tool["registeredAt"]);
    assert_eq!(get(&gateway, "/v1/tools/weather").await.value(), tool);
    let list = |gateway: &TestGateway, query: &'static str| {
        let request = gateway.request("GET", &format!("/v1/tools?{query}"));
        request.send(gateway.address())
    };
    for query in ["tag=sky", "tag=sky&tag=city", "category=outside", "module=registered"] {
        assert_eq!(list(&gateway, query).await.value()["pagination"]["total"], 1, "{query}");
    }
    assert_eq!(list(&gateway, "tag=sky&tag=sea").await.value()["pagination"]["total"], 0);
    let found =
        post(&gateway, "/v1/tools/search", &json!({ "query": "test tool", "filters": { "tags": ["sky"] } })).await;
    assert_eq!(found.value()["results"][0]["key"], "registered:weather");
    let gateway = gateway.restart(json!({})).await;
    assert_eq!(get(&gateway, "/v1/tools/weather").await.value(), tool);
}

#[tokio::test]
async fn the_tests_of_the_specification() {
    let gateway = gateway(json!({})).await;
    // ToolRegistry › register › should register a tool successfully
    assert_eq!(register(&gateway, &form("test")).await.status, 201);
    let tool = get(&gateway, "/v1/tools/test").await;
    assert_eq!((tool.status, &tool.value()["version"]), (200, &json!("1.0.0")));
    // ToolRegistry › register › should throw error for duplicate tool names
    let twice = register(&gateway, &form("test")).await;
    refused(&twice, 409, "CONFLICT", "Tool \"test\" is already registered");
    // API Server › GET /v1/tools › should return tool list
    let list = get(&gateway, "/v1/tools").await;
    assert_eq!((list.status, list.value()["tools"].as_array().map(Vec::len)), (200, Some(1)));
}

#[tokio::test]
async fn the_rules_of_registration_have_their_words() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    for (body, message) in [
        (with(form("x"), "name", ""), "Tool name is required"),
        (with(form("x"), "name", "   "), "Tool name is required"),
        (with(form("x"), "name", "Upper"), NAME),
        (with(form("x"), "name", "1st"), NAME),
        (with(form("x"), "name", "under_score"), NAME),
        (with(form("x"), "name", "-x"), NAME),
        (with(form("x"), "description", ""), "Tool description is required"),
        (with(form("x"), "description", " "), "Tool description is required"),
    ] {
        let reply = register(&gateway, &body).await;
        let refusal = refused(&reply, 400, "VALIDATION_ERROR", message);
        assert_eq!(refusal["details"].as_array().map(Vec::len), Some(1), "{refusal}");
    }
    for wrong in [
        json!({}),
        with(form("x"), "http", json!({})),
        with(form("x"), "http", json!({ "url": "ftp://a.example" })),
        with(form("x"), "http", json!({ "url": "https://a.example/{nobody}" })),
        with(form("x"), "parameters", json!([{ "name": "a", "type": "date" }])),
        with(form("x"), "tag", json!(["a"])),
        with(form("x"), "tags", "a"),
        with(form("x"), "overwrite", "yes"),
    ] {
        let reply = register(&gateway, &wrong).await;
        assert_eq!(
            (reply.status, &reply.value()["code"]),
            (400, &json!("VALIDATION_ERROR")),
            "{wrong} {}",
            reply.text()
        );
        assert!(reply.value()["details"].is_array(), "{}", reply.text());
    }
    let taken = register(&gateway, &with(form("echo"), "module", "a")).await;
    assert_eq!((taken.status, &taken.value()["code"]), (409, &json!("CONFLICT")), "{}", taken.text());
}

#[tokio::test]
async fn a_tool_is_replaced_only_if_that_is_asked_for() {
    let gateway = gateway(json!({})).await;
    assert_eq!(register(&gateway, &form("x")).await.status, 201);
    let other = with(form("x"), "description", "Another");
    assert_eq!(register(&gateway, &other).await.status, 409);
    assert_eq!(get(&gateway, "/v1/tools/x").await.value()["description"], "Test tool");
    let reply = register(&gateway, &with(other, "overwrite", true)).await;
    assert_eq!((reply.status, &reply.value()["description"]), (201, &json!("Another")));
    assert_eq!(get(&gateway, "/v1/tools/x").await.value()["description"], "Another");
}

#[tokio::test]
async fn a_tool_is_switched_off_and_on_and_stays_so() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    assert_eq!(register(&gateway, &form("mine")).await.status, 201);
    for key in ["a:echo", "registered:mine"] {
        let off = post(&gateway, &format!("/v1/tools/{key}/disable"), &json!({})).await;
        assert_eq!((off.status, &off.value()["enabled"]), (200, &json!(false)), "{key}");
        let call = post(&gateway, "/v1/tools/call", &json!({ "name": key, "parameters": { "text": "x" } })).await;
        refused(&call, 403, "TOOL_DISABLED", &format!("Tool is disabled: {key}"));
    }
    let gateway = gateway.restart(json!({ "mcpServers": { "a": stdio(&[]) } })).await;
    assert_eq!(get(&gateway, "/v1/tools/a:echo").await.value()["enabled"], false);
    for key in ["a:echo", "registered:mine"] {
        let on = gateway.send(gateway.request("POST", &format!("/v1/tools/{key}/enable"))).await;
        assert_eq!((on.status, &on.value()["enabled"]), (200, &json!(true)), "{key}");
    }
    let call = json!({ "name": "a:echo", "parameters": { "text": "back" } });
    assert_eq!(post(&gateway, "/v1/tools/call", &call).await.value()["result"], "back");
    for action in ["enable", "disable"] {
        let nobody = post(&gateway, &format!("/v1/tools/nobody/{action}"), &json!({})).await;
        refused(&nobody, 404, "TOOL_NOT_FOUND", "Tool not found: nobody");
    }
}

#[tokio::test]
async fn a_registered_tool_can_be_taken_away_and_one_of_a_server_cannot() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    assert_eq!(register(&gateway, &form("x")).await.status, 201);
    let gone = delete(&gateway, "/v1/tools/registered%3Ax").await;
    assert_eq!((gone.status, gone.body.len()), (204, 0));
    refused(&get(&gateway, "/v1/tools/x").await, 404, "TOOL_NOT_FOUND", "Tool not found: x");
    refused(&delete(&gateway, "/v1/tools/x").await, 404, "TOOL_NOT_FOUND", "Tool not found: x");
    let upstream = delete(&gateway, "/v1/tools/a:echo").await;
    assert_eq!((upstream.status, &upstream.value()["code"]), (409, &json!("CONFLICT")));
    assert_eq!(get(&gateway, "/v1/tools/a:echo").await.status, 200);
}

#[tokio::test]
async fn a_tool_says_which_tool_it_needs() {
    let gateway = gateway(json!({})).await;
    let needy = with(form("needy"), "dependencies", json!(["base"]));
    let tool = register(&gateway, &needy).await.value();
    assert_eq!(tool["enabled"], false);
    assert!(tool["disabledReason"].as_str().is_some_and(|reason| reason.contains("`base`")), "{tool}");
    let call = post(&gateway, "/v1/tools/call", &json!({ "name": "needy" })).await;
    let refusal = refused(&call, 403, "TOOL_DISABLED", "Tool is disabled: needy");
    assert!(refusal["hint"].as_str().is_some_and(|hint| hint.contains("`base`")), "{refusal}");
    assert_eq!(register(&gateway, &form("base")).await.status, 201);
    assert_eq!(get(&gateway, "/v1/tools/needy").await.value()["enabled"], true);
}

//! A tool that an account's mask denies looks absent on every surface and by every way of calling it.

use hikite_testkit::provider::{CLIENT_ID, CLIENT_SECRET, MockProvider};
use serde_json::{Value, json};

use super::{body, connect, family, post, search, with};
use crate::error_of;

const CREATE: &str = "create_page";

fn create(account: Option<&str>) -> Value {
    let mut call = json!({ "module": "notion", "tool": CREATE, "params": {} });
    if let Some(account) = account {
        call["account"] = account.into();
    }
    call
}

/// Asserts that both answers are equal except for the name.
#[track_caller]
fn alike(masked: &Value, absent: &Value) {
    let plain = |value: &Value| value.to_string().replace(CREATE, "NAME").replace("no_such_tool", "NAME");
    let without_hint = |mut value: Value| {
        value.as_object_mut().expect("an object").remove("hint");
        value
    };
    assert_eq!(plain(&without_hint(masked.clone())), plain(&without_hint(absent.clone())));
    assert_eq!(masked["code"], "TOOL_NOT_FOUND");
}

#[tokio::test]
async fn a_tool_that_no_account_allows_is_nowhere() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({ "server": { "surface": ["modules", "search"] } })).await;
    let id = connect(&gateway, &provider, "default").await;
    let mask = json!({ "permissions": { "deny": [format!("notion:{CREATE}")] } });
    let request = gateway.request("PATCH", &format!("/v1/accounts/{id}")).json(mask.to_string());
    assert_eq!(gateway.send(request).await.status, 200);
    let client = gateway.client("").await;
    let asked = provider.requests();
    alike(&error_of(&client.call("call", create(None)).await), &{
        let call = json!({ "module": "notion", "tool": "no_such_tool", "params": {} });
        error_of(&client.call("call", call).await)
    });
    let run = |tool: &str| json!({ "toolKey": format!("notion:{tool}"), "arguments": {} });
    let search_client = gateway.client("search").await;
    alike(
        &error_of(&search_client.call("tool_execute", run(CREATE)).await),
        &error_of(&search_client.call("tool_execute", run("no_such_tool")).await),
    );
    let batch = |tool: &str| json!({ "commands": [{ "id": "a", "module": "notion", "tool": tool, "params": {} }] });
    let refused = client.call("batch", batch(CREATE)).await;
    assert!(refused["isError"] == true && refused.to_string().contains("There is no tool"), "{refused}");
    let sheet = client.call("get_module_schema", json!({ "modules": ["notion"], "detail": "names" })).await;
    assert!(!sheet.to_string().contains(CREATE) && sheet.to_string().contains("search"), "{sheet}");
    let found = client.call("tool_discovery", json!({ "query": "create a page in Notion" })).await;
    assert!(!found.to_string().contains(CREATE), "{found}");
    let list = gateway.send(gateway.request("GET", "/v1/tools?limit=100")).await;
    assert!(!String::from_utf8_lossy(&list.body).contains(CREATE));
    let one = |tool: &str| gateway.request("GET", &format!("/v1/tools/notion:{tool}"));
    assert_eq!(gateway.send(one(CREATE)).await.status, 404);
    let rest = post(&gateway, "/v1/tools/call", &json!({ "name": format!("notion:{CREATE}"), "parameters": {} })).await;
    assert_eq!((rest.status, &body(&rest)["code"]), (404, &json!("TOOL_NOT_FOUND")));
    assert!(!gateway.client("direct").await.names("tools/list").await.iter().any(|name| name == CREATE));
    assert_eq!(family(&client.call("call", search(None)).await), 0, "the others are there");
    assert_eq!(provider.requests(), asked);
}

#[tokio::test]
async fn the_account_of_the_call_decides_where_another_allows_more() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({})).await;
    let narrow = connect(&gateway, &provider, "narrow").await;
    connect(&gateway, &provider, "wide").await;
    let mask = json!({ "permissions": { "allow": ["notion:search"] } });
    let request = gateway.request("PATCH", &format!("/v1/accounts/{narrow}")).json(mask.to_string());
    assert_eq!(gateway.send(request).await.status, 200);
    let client = gateway.client("modules").await;
    let sheet = client.call("get_module_schema", json!({ "modules": ["notion"], "detail": "names" })).await;
    assert!(sheet.to_string().contains(CREATE), "one of the accounts allows it: {sheet}");
    for call in [create(None), create(Some("narrow"))] {
        let absent = json!({ "module": "notion", "tool": "no_such_tool", "params": {} });
        alike(&error_of(&client.call("call", call).await), &error_of(&client.call("call", absent).await));
    }
    let wide = error_of(&client.call("call", create(Some("wide"))).await);
    assert_eq!(wide["code"], "VALIDATION_ERROR", "it is there, and its arguments are looked at");
    let task = |account: &str| {
        let task = json!({ "id": "a", "module": "notion", "tool": CREATE, "params": {}, "account": account });
        json!({ "commands": [task], "dry_run": true })
    };
    let narrow = client.call("batch", task("narrow")).await;
    assert!(narrow.to_string().contains("There is no tool"), "{narrow}");
    let wide = client.call("batch", task("wide")).await;
    assert!(!wide.to_string().contains("There is no tool"), "{wide}");
    let rest = |account: &str| json!({ "name": format!("notion:{CREATE}"), "parameters": {}, "options": { "account": account } });
    assert_eq!(post(&gateway, "/v1/tools/call", &rest("narrow")).await.status, 404);
    assert_eq!(post(&gateway, "/v1/tools/call", &rest("wide")).await.status, 400);
}

#[tokio::test]
async fn an_account_is_its_owners_alone_until_it_is_shared() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({})).await;
    let id = connect(&gateway, &provider, "mine").await;
    let made = gateway.run(&["token", "create", "--subject", "bob", "--json"]).await;
    let token: Value = serde_json::from_str(&made.stdout).expect("JSON");
    let bearer = format!("Bearer {}", token["secret"].as_str().expect("a secret"));
    let as_bob = |method: &str, path: &str| gateway.request(method, path).header("authorization", &bearer);
    let call = |account: &str| {
        let call =
            json!({ "name": "notion:search", "parameters": { "query": "x" }, "options": { "account": account } });
        as_bob("POST", "/v1/tools/call").json(call.to_string())
    };
    let mut tries = 0;
    while gateway.send(as_bob("GET", "/v1/me")).await.status != 200 && tries < 100 {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        tries += 1;
    }
    let foreign = body(&gateway.send(call("mine")).await);
    let absent = body(&gateway.send(call("none")).await);
    assert_eq!(foreign["code"], "VALIDATION_ERROR");
    assert_eq!(foreign["error"].to_string().replace("mine", "none"), absent["error"].to_string());
    assert_eq!(foreign["hint"], absent["hint"]);
    assert_eq!(body(&gateway.send(as_bob("GET", "/v1/accounts")).await)["accounts"], json!([]));
    assert_eq!(gateway.send(as_bob("GET", &format!("/v1/accounts/{id}"))).await.status, 404);
    assert_eq!(gateway.send(as_bob("GET", "/v1/accounts?all=true")).await.status, 403);
    let own = as_bob("PATCH", &format!("/v1/accounts/{id}")).json(r#"{"shared":true}"#);
    assert_eq!(gateway.send(own).await.status, 403, "with a token that may only call");
    let share = gateway.request("PATCH", &format!("/v1/accounts/{id}")).json(r#"{"shared":true}"#);
    assert_eq!(gateway.send(share).await.status, 200);
    let shared = body(&gateway.send(call("mine")).await);
    assert_eq!(shared["result"]["family"], 0, "{shared}");
}

#[tokio::test]
async fn an_account_of_the_file_has_a_mask_like_any_other() {
    let provider = MockProvider::start().await;
    let filed = |permissions: Value| {
        json!({ "notion": { "token": "access-of-the-file", "api": provider.url(""), "permissions": permissions,
            "oauth": { "client_id": CLIENT_ID, "client_secret": CLIENT_SECRET,
                "authorize_url": provider.url("/authorize"), "token_url": provider.url("/token"), "pkce": true } } })
    };
    let narrow = filed(json!({ "deny": [format!("notion:{CREATE}")] }));
    let gateway = with(&provider, json!({ "providers": narrow, "server": { "surface": "modules" } })).await;
    let client = gateway.client("").await;
    let absent = json!({ "module": "notion", "tool": "no_such_tool", "params": {} });
    alike(&error_of(&client.call("call", create(None)).await), &error_of(&client.call("call", absent.clone()).await));
    let names = json!({ "modules": ["notion"], "detail": "names" });
    let sheet = client.call("get_module_schema", names.clone()).await;
    assert!(!sheet.to_string().contains(CREATE) && sheet.to_string().contains("search"), "{sheet}");
    let listed = body(&gateway.send(gateway.request("GET", "/v1/accounts")).await);
    let mask = &listed["accounts"][0]["permissions"]["deny"];
    assert_eq!(mask, &json!([format!("notion:{CREATE}")]), "{listed}");

    connect(&gateway, &provider, "wide").await;
    let sheet = client.call("get_module_schema", names.clone()).await;
    assert!(sheet.to_string().contains(CREATE), "an account of one's own allows it: {sheet}");
    let of_the_file = error_of(&client.call("call", create(Some("default"))).await);
    alike(&of_the_file, &error_of(&client.call("call", absent).await));
    let wide = error_of(&client.call("call", create(Some("wide"))).await);
    assert_eq!(wide["code"], "VALIDATION_ERROR", "it is there, and its arguments are looked at");
    gateway.write_config(&json!({ "modules": { "builtin": ["notion"] }, "providers": filed(json!({})),
        "server": { "surface": "modules" } }));
    gateway.wait_for_stderr("the changed config is active").await;
    let there = error_of(&client.call("call", create(Some("default"))).await);
    assert_eq!(there["code"], "VALIDATION_ERROR", "the mask is gone with the config");
}

#[tokio::test]
async fn a_mask_of_no_account_and_one_that_cannot_be_read_are_told() {
    let gateway = crate::configured(json!({})).await;
    let oauth = json!({ "client_id": "x", "client_secret": "y" });
    for (provider, told) in [
        (json!({ "oauth": oauth, "permissions": { "deny": ["notion"] } }), "no account here"),
        (json!({ "token": "x", "permissions": { "deny": ["risk:mortal"] } }), "permissions"),
        (json!({ "token": "x", "permissions": { "denies": [] } }), "denies"),
    ] {
        gateway.write_config(&json!({ "providers": { "notion": provider } }));
        let run = gateway.run(&["config", "check"]).await;
        assert!(run.code == Some(2) && run.stderr.contains(told), "{told}: {}{}", run.stdout, run.stderr);
    }
}

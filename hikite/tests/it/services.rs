//! Built-in services from a client's view: those with an account are offered, those without one are only named.

use hikite_testkit::api::{MockApi, MockResponse};
use hikite_testkit::gateway::TestGateway;
use serde_json::{Value, json};

use crate::{configured, error_of};

const ISSUES: &str =
    include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../hikite-testkit/fixtures/answers/github-issues.json"));

/// Starts a gateway with GitHub connected and Notion not.
async fn connected(api: &MockApi, more: Value) -> TestGateway {
    let mut config = json!({
        "modules": { "builtin": ["notion", "github"] },
        "providers": { "github": { "token": "gh-token", "api": api.url("") } },
    });
    for (key, value) in more.as_object().expect("an object") {
        config[key] = value.clone();
    }
    configured(config).await
}

fn call(tool: &str, params: &Value) -> Value {
    json!({ "module": "github", "tool": tool, "params": params })
}

fn issues() -> Value {
    json!({ "owner": "octokit", "repo": "hello world" })
}

#[track_caller]
fn text(result: &Value) -> &str {
    assert!(result.get("isError").is_none(), "{result}");
    result["content"][0]["text"].as_str().unwrap_or_else(|| panic!("{result}"))
}

#[tokio::test]
async fn what_nobody_has_connected_is_named_and_not_in_the_way() {
    let api = MockApi::start().await;
    let gateway = connected(&api, json!({})).await;
    let client = gateway.client("").await;
    let list = client.request("tools/list", json!({})).await.expect("a list");
    let menu = list["tools"][0]["description"].as_str().expect("text");
    assert!(menu.contains("\n- github: GitHub"), "{menu}");
    assert!(menu.ends_with("\nNot connected yet (a call says how): notion"), "{menu}");
    let direct = gateway.client("direct").await;
    let names = direct.names("tools/list").await;
    assert_eq!(names.len(), 24, "{names:?}");
    assert!(names.iter().any(|name| name == "list_issues"), "{names:?}");
    assert!(direct.names("prompts/list").await.iter().all(|name| !name.contains("page")));
    let found = client.call("tool_discovery", json!({ "query": "search pages in Notion", "limit": 20 })).await;
    assert!(!found.to_string().contains("notion:"), "{found}");
    let result = client.call("call", json!({ "module": "notion", "tool": "search", "params": {} })).await;
    let error = error_of(&result);
    assert_eq!(error["code"], "ACCOUNT_REQUIRED");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("`providers.notion`")), "{error}");
    let sheet = client.call("get_module_schema", json!({ "modules": ["notion"] })).await;
    assert!(text(&sheet).contains(r#""state":"needs login""#), "{sheet}");
    assert_eq!(api.count(), 0);
}

#[tokio::test]
async fn answers_come_in_their_shape_unless_somebody_wants_them_whole() {
    let api = MockApi::start().await;
    api.answer("/repos/octokit/hello%20world/issues", MockResponse::bytes("application/json", ISSUES));
    let gateway = connected(&api, json!({})).await;
    let client = gateway.client("").await;
    let result = client.call("call", call("list_issues", &issues())).await;
    assert!(text(&result).starts_with("issues[13]{number,title,state,author,comments,updated}:\n"), "{result}");
    assert_eq!(result["_meta"]["hikite/answer"]["bytes"][0], 30431);
    let mut raw = call("list_issues", &issues());
    raw["format"] = json!("raw");
    let whole = client.call("call", raw).await;
    assert_eq!(text(&whole), ISSUES.trim());
    let mut part = call("list_issues", &issues());
    part["select"] = json!("number");
    assert!(text(&client.call("call", part).await).starts_with("[13]"), "the part of the whole");
    let direct = gateway.client("direct").await.call("list_issues", issues()).await;
    assert_eq!(text(&direct), ISSUES.trim(), "relayed");
    assert_eq!(api.last().header("authorization"), Some("Bearer gh-token"));
}

#[tokio::test]
async fn tasks_of_a_batch_see_the_whole_and_show_the_shape() {
    let api = MockApi::start().await;
    api.answer("/repos/octokit/hello%20world/issues", MockResponse::bytes("application/json", ISSUES));
    api.answer("/users/octokit-fixture-user-a", MockResponse::json(&json!({ "login": "a", "name": "Aki", "id": 7 })));
    let gateway = connected(&api, json!({})).await;
    let tasks = json!([
        { "id": "issues", "module": "github", "tool": "list_issues", "params": issues(), "output": true },
        { "id": "who", "module": "github", "tool": "get_user", "params": { "username": "${issues[0].user.login}" }, "output": true },
    ]);
    let result = gateway.client("").await.call("batch", json!({ "commands": tasks })).await;
    let report: Value = serde_json::from_str(text(&result)).expect("a report");
    assert!(report["tasks"][0]["result"].as_str().is_some_and(|text| text.starts_with("issues[13]{")), "{report}");
    assert!(report["tasks"][1]["result"].as_str().is_some_and(|text| text.contains("Aki")), "{report}");
}

#[tokio::test]
async fn a_program_is_told_where_a_list_goes_on() {
    let api = MockApi::start().await;
    let link = r#"<https://api.github.com/x?page=2>; rel="next""#;
    api.answer(
        "/repos/octokit/hello%20world/issues",
        MockResponse::bytes("application/json", ISSUES).header("link", link),
    );
    let gateway = connected(&api, json!({})).await;
    let body = json!({ "name": "github:list_issues", "parameters": issues() });
    let reply = gateway.send(gateway.request("POST", "/v1/tools/call").json(body.to_string())).await.value();
    assert_eq!((&reply["success"], &reply["nextCursor"]), (&json!(true), &json!("page=2")), "{reply}");
    assert_eq!(reply["result"].as_array().map(Vec::len), Some(13));
}

#[tokio::test]
async fn a_token_from_a_file_is_read_again_when_it_is_refused() {
    let api = MockApi::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("token");
    std::fs::write(&file, "old\n").expect("a file");
    let providers = json!({ "github": { "token_file": file, "api": api.url("") } });
    let gateway = connected(&api, json!({ "providers": providers })).await;
    let client = gateway.client("").await;
    api.answer("/user", MockResponse::json(&json!({ "login": "me" })));
    assert!(text(&client.call("call", call("get_user", &json!({}))).await).contains("me"));
    std::fs::write(&file, "new\n").expect("a file");
    api.script("/user", [MockResponse::status(401)]);
    assert!(text(&client.call("call", call("get_user", &json!({}))).await).contains("me"));
    let sent: Vec<Option<String>> =
        api.seen().iter().map(|seen| seen.header("authorization").map(str::to_owned)).collect();
    assert_eq!(sent, ["Bearer old", "Bearer old", "Bearer new"].map(|token| Some(token.to_owned())));
    api.answer("/user", MockResponse::status(401));
    let error = error_of(&client.call("call", call("get_user", &json!({}))).await);
    assert_eq!(error["code"], "ACCOUNT_REQUIRED");
}

#[tokio::test]
async fn a_service_that_never_answers_is_given_up() {
    let api = MockApi::start().await;
    api.answer("/user", MockResponse::text("late").delay(std::time::Duration::from_secs(60)));
    let gateway = connected(&api, json!({ "limits": { "call_timeout": "300ms" } })).await;
    let error = error_of(&gateway.client("").await.call("call", call("get_user", &json!({}))).await);
    assert_eq!(error["code"], "TIMEOUT");
}

//! Tools that a project does not allow, through the whole product: every response equals that of a hikite without them.

use hikite_testkit::api::{MockApi, MockResponse};
use hikite_testkit::gateway::{SessionClient, TestGateway};
use serde_json::{Value, json};

use crate::configured;
use crate::identity::{as_bearer, client, project, token};
use crate::search::recorded;

const SURFACES: [&str; 3] = ["direct", "categories", "search"];

/// Names requested on every surface: visible, hidden, or unknown.
const NAMES: [&str; 5] = ["filesystem:read_file", "read_file", "filesystem__read_file", "git:git_log", "git:git_lag"];

/// Starts `git` and, optionally, `filesystem`; the project's users see the same either way.
async fn world(with_files: bool) -> (TestGateway, String) {
    let mut servers = json!({ "git": recorded("git") });
    let mut both = json!(["git"]);
    let mut deny = json!([]);
    if with_files {
        servers["filesystem"] = recorded("filesystem");
        both = json!(["git", "filesystem"]);
        deny = json!(["filesystem"]);
    }
    let gateway = configured(json!({
        "mcpServers": servers,
        "categories": { "work": { "description": "What work needs", "server": both } },
        "server": { "surface": SURFACES },
        "search": { "provider": "bm25" },
    }))
    .await;
    project(&gateway, "work", json!({ "permissions": { "deny": deny } })).await;
    let made = token(&gateway, json!({ "name": "ci", "project": "work" })).await;
    (gateway, made.secret)
}

/// Sends every kind of request and returns the responses without their varying parts.
async fn answers(gateway: &TestGateway, secret: &str) -> Vec<(String, Value)> {
    let mut all = Vec::new();
    for surface in SURFACES {
        let client = client(gateway, &format!("/mcp?surface={surface}"), secret).await;
        all.push((format!("{surface} welcome"), client.welcome()));
        for question in over_mcp() {
            let answer = ask(&client, &question).await;
            all.push((format!("{surface} {question:?}"), answer));
        }
    }
    for (method, path, body) in over_rest() {
        let mut request = as_bearer(secret, method, &path);
        if !body.is_null() {
            request = request.json(body.to_string());
        }
        let reply = gateway.send(request).await;
        let answer = json!({ "status": reply.status, "body": lasting(reply.value()) });
        all.push((format!("{method} {path} {body}"), answer));
    }
    all
}

async fn ask(client: &SessionClient, (method, params): &(&str, Value)) -> Value {
    match client.request(method, params.clone()).await {
        Ok(result) => lasting(result),
        Err(error) => json!({ "refused": error }),
    }
}

fn over_mcp() -> Vec<(&'static str, Value)> {
    let call = |name: &str, arguments: Value| ("tools/call", json!({ "name": name, "arguments": arguments }));
    let lists =
        ["tools/list", "resources/list", "resources/templates/list", "prompts/list"].map(|list| (list, json!({})));
    let mut all = Vec::from(lists);
    for name in NAMES {
        all.push(call(name, json!({ "path": "/etc/hostname", "repo_path": "." })));
        all.push(call("tool_execute", json!({ "toolKey": name, "arguments": {} })));
        all.push(call("call-category-tool", json!({ "category": "work", "name": name, "args": {} })));
    }
    for query in ["read a file", "files and folders", "show the commit log", "filesystem:read_file"] {
        all.push(call("tool_discovery", json!({ "query": [query], "detail": "schemas" })));
    }
    all.push(call("get-category-tools", json!({ "category": "work" })));
    all.push(call("get-category-tools", json!({ "category": "work", "toolNames": NAMES })));
    all
}

fn over_rest() -> Vec<(&'static str, String, Value)> {
    let mut all = vec![
        ("GET", "/v1/tools?limit=100".into(), Value::Null),
        ("GET", "/v1/tools?module=filesystem".into(), Value::Null),
        ("GET", "/v1/modules".into(), Value::Null),
        ("GET", "/v1/categories".into(), Value::Null),
        ("POST", "/v1/tools/search".into(), json!({ "query": "read a file" })),
        ("POST", "/v1/tools/search".into(), json!({ "query": "file", "filters": { "module": "filesystem" } })),
    ];
    for name in NAMES {
        all.push(("GET", format!("/v1/tools/{name}"), Value::Null));
        all.push(("POST", "/v1/tools/call".into(), json!({ "name": name, "parameters": {} })));
    }
    all
}

/// Removes the members that differ in every response.
fn lasting(mut value: Value) -> Value {
    match &mut value {
        Value::Object(members) => {
            for new in ["requestId", "timestamp", "executionTime", "registeredAt"] {
                members.remove(new);
            }
            for member in members.values_mut() {
                *member = lasting(member.take());
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = lasting(item.take())),
        _ => {}
    }
    value
}

#[tokio::test]
async fn what_is_hidden_answers_as_what_is_not_there() {
    let (hiding, secret) = world(true).await;
    let hidden = answers(&hiding, &secret).await;
    let (without, secret) = world(false).await;
    let absent = answers(&without, &secret).await;
    assert_eq!(hidden.len(), absent.len());
    for ((asked, hidden), (_, absent)) in hidden.iter().zip(&absent) {
        assert_eq!(hidden, absent, "{asked}");
    }
    let owner = hiding.client("direct").await;
    assert!(owner.names("tools/list").await.iter().any(|name| name == "read_file"), "it is there");
}

#[tokio::test]
async fn what_is_hidden_is_never_sent_to_the_cloud() {
    let cloud = MockApi::start().await;
    cloud.answer(
        "/catalog/search",
        MockResponse::json(&json!({ "results": [
        { "toolKey": "filesystem:read_file", "relevance": 1 },
        { "toolKey": "git:git_log", "relevance": 0.5 },
    ] })),
    );
    let gateway = configured(json!({
        "mcpServers": { "git": recorded("git"), "filesystem": recorded("filesystem") },
        "server": { "surface": "search" },
        "search": { "provider": "cloud", "cloud": { "url": cloud.url("") } },
        "projects": { "work": { "permissions": { "deny": ["filesystem", "git:git_commit"] } } },
    }))
    .await;
    let made = token(&gateway, json!({ "name": "ci", "project": "work" })).await;
    let client = client(&gateway, "/mcp/work", &made.secret).await;
    let found = client.call("tool_discovery", json!({ "query": ["read a file"] })).await;
    let results = found["structuredContent"]["results"].as_array().expect("results");
    let keys: Vec<&str> = results.iter().filter_map(|tool| tool["toolKey"].as_str()).collect();
    assert_eq!(keys, ["git:git_log"], "what the cloud makes up is left out");
    assert_eq!(cloud.count(), 1);
    let body = String::from_utf8_lossy(&cloud.last().body).into_owned();
    assert!(body.contains("git:git_log"), "{body}");
    for hidden in ["filesystem", "read_file", "git_commit"] {
        assert!(!body.contains(hidden), "{hidden}: {body}");
    }
    assert!(cloud.last().header("authorization").is_none(), "a caller's token goes nowhere");
}

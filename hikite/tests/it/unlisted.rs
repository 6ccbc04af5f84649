//! Servers without known lists, because they are down or require a login: callers who may see them get the reason on
//! every surface, and others get the same answer as for a name that does not exist.

use hikite_testkit::authorization_server::{AuthorizationFaults, MockAuthorizationServer};
use hikite_testkit::gateway::{SessionClient, TestGateway};
use serde_json::{Value, json};

use crate::identity::{as_bearer, client, project, token};
use crate::rest::{get, post};
use crate::{configured, error_of, stdio};

const SURFACES: &str = "direct,modules,search,categories";

async fn house(name: &str, server: Value) -> TestGateway {
    configured(json!({
        "mcpServers": { name: server, "up": stdio(&[]) },
        "categories": { "work": { "description": "d", "server": name, "tools": { "includeNames": ["fetch"] } } },
        "server": { "surface": SURFACES.split(',').collect::<Vec<_>>() },
        "limits": { "first_list": "20s" },
    }))
    .await
}

fn down() -> Value {
    json!({ "description": "d", "command": "hikite-no-such-command" })
}

/// Returns every way to request a tool of a module that reports the reason in a result.
fn calls(module: &str) -> Vec<(&'static str, Value)> {
    let key = format!("{module}:fetch");
    vec![
        ("call", json!({ "module": module, "tool": "fetch", "params": {} })),
        ("call", json!({ "toolKey": key, "params": {} })),
        ("call", json!({ "tool": format!("{module}__fetch"), "params": {} })),
        ("get_module_schema", json!({ "modules": [module] })),
        ("tool_execute", json!({ "toolKey": key })),
        ("batch", json!({ "commands": [{ "id": "a", "module": module, "tool": "fetch" }] })),
        ("get-category-tools", json!({ "category": "work" })),
        ("call-category-tool", json!({ "category": "work", "name": "fetch", "args": {} })),
    ]
}

/// Calls a meta tool on a surface that has it, or any other tool on `direct`.
async fn on(gateway: &TestGateway, tool: &str, arguments: Value) -> Value {
    let surface = match tool {
        "call" | "get_module_schema" | "batch" => "modules",
        "tool_execute" => "search",
        "get-category-tools" | "call-category-tool" => "categories",
        _ => "direct",
    };
    gateway.client(surface).await.call(tool, arguments).await
}

async fn says(gateway: &TestGateway, module: &str, code: &str, message: &str) {
    let check = |place: &str, error: &Value| {
        assert_eq!(error["code"], code, "{place}: {error}");
        assert!(error["message"].as_str().is_some_and(|text| text.contains(message)), "{place}: {error}");
        assert!(error["hint"].as_str().is_some_and(|hint| !hint.is_empty()), "{place}: {error}");
    };
    for (tool, arguments) in calls(module) {
        check(&format!("{tool} {arguments}"), &error_of(&on(gateway, tool, arguments.clone()).await));
    }
    for name in [format!("{module}__fetch"), format!("{module}:fetch")] {
        check(&name, &error_of(&on(gateway, &name, json!({})).await));
    }
    let client = gateway.client("direct").await;
    let prompt = client.request("prompts/get", json!({ "name": format!("{module}__p") }));
    let mut refused = prompt.await.expect_err("no such prompt");
    refused["data"]["message"] = refused["message"].take();
    check("prompts/get", &refused["data"]);
    let status = if code == "ACCOUNT_REQUIRED" { 403 } else { 502 };
    let name = format!("{module}:fetch");
    for reply in [
        post(gateway, "/v1/tools/call", &json!({ "name": name })).await,
        get(gateway, &format!("/v1/tools/{name}")).await,
        post(gateway, "/v1/batch", &json!({ "commands": [{ "id": "a", "module": module, "tool": "fetch" }] })).await,
    ] {
        let mut body = reply.value();
        body["message"] = body["error"].take();
        assert_eq!(reply.status, status, "{body}");
        check("REST", &body);
    }
}

#[tokio::test]
async fn a_server_that_is_down_says_so_on_every_surface() {
    let gateway = house("down", down()).await;
    says(&gateway, "down", "UPSTREAM_UNAVAILABLE", "`down`").await;
    // A name without a module could belong to any module; one that exists is found anyway.
    let client = gateway.client("direct").await;
    let unknown = client.request("tools/call", json!({ "name": "qqqqqqqq", "arguments": {} })).await;
    let unknown = unknown.expect_err("no such tool");
    assert_eq!(unknown["data"]["code"], "TOOL_NOT_FOUND", "{unknown}");
    assert!(unknown["data"]["hint"].as_str().expect("a hint").starts_with("`down` may have it: "), "{unknown}");
    assert_eq!(client.text("echo", json!({ "text": "x" })).await, "x");
}

#[tokio::test]
async fn a_server_that_nobody_logged_in_to_says_so_on_every_surface() {
    let authority = MockAuthorizationServer::start(AuthorizationFaults::default()).await;
    let gateway = house("vault", json!({ "description": "d", "url": authority.url() })).await;
    says(&gateway, "vault", "ACCOUNT_REQUIRED", "login").await;
}

#[tokio::test]
async fn a_batch_with_a_fault_of_its_own_is_refused_for_that() {
    let gateway = house("down", down()).await;
    let tasks =
        json!([{ "id": "a", "module": "down", "tool": "fetch" }, { "id": "b", "module": "up", "tool": "ecko" }]);
    let error = error_of(&on(&gateway, "batch", json!({ "commands": tasks })).await);
    assert_eq!(error["code"], "VALIDATION_ERROR", "{error}");
    let message = error["message"].as_str().expect("text");
    assert!(message.contains("`down`") && message.contains("Did you mean `echo`?"), "{message}");
}

/// Sends every request about a module and returns the responses with its name removed.
async fn heard(gateway: &TestGateway, secret: &str, module: &str) -> Vec<String> {
    let open =
        async |surface: &str| -> SessionClient { client(gateway, &format!("/mcp?surface={surface}"), secret).await };
    let (direct, others) = (open("direct").await, open("modules,search").await);
    let mut all = Vec::new();
    for name in [format!("{module}__fetch"), format!("{module}:fetch"), "fetch".into()] {
        let params = json!({ "name": name, "arguments": {} });
        all.push(format!("{:?}", direct.request("tools/call", params).await));
    }
    let prompt = json!({ "name": format!("{module}__p") });
    all.push(format!("{:?}", direct.request("prompts/get", prompt).await));
    let category = |tool: &str| tool.contains("category");
    for (tool, arguments) in calls(module).into_iter().filter(|(tool, _)| !category(tool)) {
        let params = json!({ "name": tool, "arguments": arguments });
        all.push(format!("{:?}", others.request("tools/call", params).await));
    }
    let name = format!("{module}:fetch");
    let requests = [
        as_bearer(secret, "POST", "/v1/tools/call").json(json!({ "name": name }).to_string()),
        as_bearer(secret, "GET", &format!("/v1/tools/{name}")),
        as_bearer(secret, "GET", &format!("/v1/modules/{module}")),
    ];
    for request in requests {
        let reply = gateway.send(request).await;
        let body = reply.value();
        all.push(format!("{} {} {} {}", reply.status, body["code"], body["error"], body["hint"]));
    }
    all.iter().map(|text| text.replace(module, "M")).collect()
}

#[tokio::test]
async fn who_may_not_see_a_server_that_is_down_hears_what_is_said_of_no_server() {
    let gateway = house("down", down()).await;
    project(&gateway, "work", json!({ "permissions": { "deny": ["down"] } })).await;
    let made = token(&gateway, json!({ "name": "ci", "project": "work" })).await;
    // It has failed by now, and the owner gets the reason.
    says(&gateway, "down", "UPSTREAM_UNAVAILABLE", "`down`").await;
    let (hidden, absent) = (heard(&gateway, &made.secret, "down").await, heard(&gateway, &made.secret, "none").await);
    assert_eq!(hidden, absent);
    assert!(hidden.iter().all(|text| !text.contains("UPSTREAM_UNAVAILABLE")), "{hidden:?}");
}

/// Answers every call, and lists its tool only where it is told to.
const MAY_LIST: &str = r#"
import json, os, sys
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        send(id=id, result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}})
    elif method == "tools/list" and os.environ["LISTS"] == "yes":
        send(id=id, result={"tools": [{"name": "fetch", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        send(id=id, result={"content": [{"type": "text", "text": "fetched"}]})
"#;

#[tokio::test]
async fn a_tool_that_was_switched_off_stays_off_while_its_server_lists_nothing() {
    let config = |lists: &str| {
        let server = json!({ "description": "d", "command": "python3", "args": ["-c", MAY_LIST],
            "env": { "LISTS": lists } });
        json!({
            "mcpServers": { "a": server },
            "categories": { "work": { "description": "d", "server": "a", "tools": { "includeNames": ["fetch"] } } },
            "limits": { "first_list": "1s" },
        })
    };
    let gateway = configured(config("yes")).await;
    let fetch = json!({ "category": "work", "name": "fetch", "args": {} });
    let told = on(&gateway, "call-category-tool", fetch.clone()).await;
    assert_eq!(told["content"][0]["text"], "fetched", "{told}");
    let off = post(&gateway, "/v1/tools/a:fetch/disable", &json!({})).await;
    assert_eq!(off.status, 200);
    gateway.write_config(&config("no"));
    gateway.wait_for_stderr("the changed config is in force").await;
    let told = on(&gateway, "call-category-tool", fetch).await;
    assert_eq!(error_of(&told)["name"], "ToolDisabled", "{told}");
}

//! Project-bound tokens: a login that asks for `/mcp/{project}` gives access to that project only, on every interface
//! and after every refresh.

use hikite_testkit::fixture::Fixture;
use hikite_testkit::gateway::{StatelessClient, StatelessEnvelope};

use super::*;
use crate::identity::{as_bearer, client, project};

/// Starts the fixture behind two projects of alice's: `work` has no `mirror`.
async fn two_projects() -> (Fixture, TestGateway, TestBrowser) {
    let (fixture, web) = crate::http_fixture().await;
    let config = json!({ "mcpServers": { "web": web }, "server": { "surface": "direct" } });
    let (gateway, browser) = owned_gateway_with(config).await;
    let members = json!(["alice"]);
    project(&gateway, "work", json!({ "members": members, "permissions": { "deny": ["web:mirror"] } })).await;
    project(&gateway, "home", json!({ "members": members })).await;
    project(&gateway, "other", json!({ "members": ["bob"] })).await;
    (fixture, gateway, browser)
}

async fn alice(gateway: &TestGateway) -> TestBrowser {
    gateway.run(&["user", "add", "alice"]).await;
    let password = gateway.run(&["user", "password", "alice"]).await.stdout.trim().to_owned();
    logged_in(gateway, "alice", &password).await
}

fn at(gateway: &TestGateway, path: &str) -> String {
    format!("{}{path}", issuer(gateway))
}

async fn tokens_for(gateway: &TestGateway, browser: &mut TestBrowser, client: &str, path: &str) -> Value {
    let resource = at(gateway, path);
    let code = code(gateway, browser, client, &[("resource", &resource), ("scope", "read call admin")]).await;
    let reply = ask_token(gateway, &exchange(client, &code)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.value()
}

async fn refreshed(gateway: &TestGateway, client: &str, tokens: &Value, resource: &str) -> HttpReply {
    let token = tokens["refresh_token"].as_str().expect("a token");
    let mut fields = vec![("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", token)];
    if !resource.is_empty() {
        fields.push(("resource", resource));
    }
    ask_token(gateway, &fields).await
}

fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).expect("claims");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON")
}

/// Asserts that a token gives access to `work` and nothing else.
async fn is_bound(gateway: &TestGateway, token: &str) {
    let status = async |request: HttpRequest| gateway.send(request).await.status;
    for path in ["/mcp", "/mcp/work"] {
        let mcp = client(gateway, path, token).await;
        let names = mcp.names("tools/list").await;
        assert!(names.contains(&"echo".to_owned()) && !names.contains(&"mirror".to_owned()), "{path}: {names:?}");
        let stateless = StatelessClient::over_http(gateway.address(), path, Some(token), StatelessEnvelope::default());
        assert_eq!(stateless.text("echo", json!({ "text": "hi" })).await, "hi", "{path}");
        assert!(stateless.call("mirror", json!({})).await.answer.is_err(), "{path}");
    }
    let me = me(gateway, token).await.value();
    assert_eq!((&me["project"], &me["scopes"]), (&json!("work"), &json!(["read", "call"])));
    for other in ["home", "other", "nowhere"] {
        for method in ["GET", "POST"] {
            assert_eq!(status(as_bearer(token, method, &format!("/mcp/{other}"))).await, 404, "{method} {other}");
        }
        let header = as_bearer(token, "GET", "/v1/tools").header("hikite-project", other);
        assert_eq!(status(header).await, 404, "{other} in a header");
        let envelope = StatelessEnvelope::default().meta("projectId", other).unvalidated();
        let stateless = StatelessClient::over_http(gateway.address(), "/mcp", Some(token), envelope);
        let body = json!({ "name": "echo", "arguments": { "text": "hi" } });
        assert_eq!(stateless.begin("tools/call", body).outcome().await.status, Some(404), "{other} in `_meta`");
    }
    let call = |name: &str| json!({ "name": name, "parameters": { "text": "hi" } }).to_string();
    assert_eq!(status(as_bearer(token, "POST", "/v1/tools/call").json(call("web:echo"))).await, 200);
    assert_eq!(status(as_bearer(token, "POST", "/v1/tools/call").json(call("web:mirror"))).await, 404);
    for path in ["/v1/users", "/v1/tokens", "/v1/audit", "/metrics"] {
        assert_eq!(status(as_bearer(token, "GET", path)).await, 403, "{path}");
    }
    let sse = as_bearer(token, "GET", "/sse").header("hikite-project", "home");
    assert_eq!(status(sse).await, 404, "the old transport");
    assert_eq!(
        status(HttpRequest::new("GET", "/ui").header("authorization", &format!("Bearer {token}"))).await,
        303,
        "a page wants a login"
    );
}

#[tokio::test]
async fn a_token_for_a_project_opens_that_project_alone() {
    let (fixture, gateway, mut owner) = two_projects().await;
    let client = registered(&gateway).await;
    let described = gateway.send(HttpRequest::new("GET", "/.well-known/oauth-protected-resource/mcp/work")).await;
    assert_eq!(described.value()["resource"], at(&gateway, "/mcp/work"));
    let mut alice = alice(&gateway).await;
    for browser in [&mut owner, &mut alice] {
        let resource = at(&gateway, "/mcp/work");
        let asked = browser.get(&gateway, &authorize(&gateway, &client, &[("resource", &resource)])).await;
        assert!(asked.text.contains("<strong class=\"project\">work</strong>"), "{}", asked.text);
        let given = tokens_for(&gateway, browser, &client, "/mcp/work").await;
        assert_eq!(given["scope"], "read call", "nobody administers from inside a project");
        let claims = claims(access(&given));
        assert_eq!((&claims["aud"], &claims["project"]), (&json!(resource), &json!("work")));
        is_bound(&gateway, access(&given)).await;
        let next = refreshed(&gateway, &client, &given, "").await.value();
        is_bound(&gateway, access(&next)).await;
    }
    drop(fixture);
}

#[tokio::test]
async fn neither_a_code_nor_a_refresh_makes_it_wider() {
    let (fixture, gateway, mut owner) = two_projects().await;
    let client = registered(&gateway).await;
    for (path, others) in [("/mcp/work", &["/mcp", "", "/mcp/home", "/sse"][..]), ("/mcp/home/", &["/mcp/work"])] {
        let resource = at(&gateway, path);
        for other in others {
            let other = at(&gateway, other);
            let code = code(&gateway, &mut owner, &client, &[("resource", &resource)]).await;
            let fields = [exchange(&client, &code), vec![("resource", other.as_str())]].concat();
            refused(&ask_token(&gateway, &fields).await, 400, "invalid_target");
            let given = tokens_for(&gateway, &mut owner, &client, path).await;
            refused(&refreshed(&gateway, &client, &given, &other).await, 400, "invalid_target");
            let next = refreshed(&gateway, &client, &given, &resource).await;
            assert_eq!(next.status, 200, "{}", next.text());
            let project = path.trim_matches('/').rsplit('/').next().expect("a name").to_owned();
            assert_eq!(claims(access(&next.value()))["project"], project, "and it stays where it was");
        }
    }
    // An unbound token may be narrowed at each refresh.
    let whole = tokens_for(&gateway, &mut owner, &client, "/mcp").await;
    assert_eq!(claims(access(&whole)).get("project"), None);
    let less = refreshed(&gateway, &client, &whole, &at(&gateway, "/mcp/work")).await.value();
    assert_eq!(me(&gateway, access(&less)).await.value()["project"], "work");
    let again = refreshed(&gateway, &client, &less, "").await.value();
    assert_eq!(me(&gateway, access(&again)).await.value()["project"], json!(null));
    drop(fixture);
}

#[tokio::test]
async fn a_project_is_asked_for_by_who_may_enter_it() {
    let (fixture, gateway, _) = two_projects().await;
    let (client, mut alice) = (registered(&gateway).await, alice(&gateway).await);
    for wrong in ["/mcp/other", "/mcp/nowhere"] {
        let resource = at(&gateway, wrong);
        let page = alice.get(&gateway, &authorize(&gateway, &client, &[("resource", &resource)])).await;
        let told = page.leads_to(REDIRECT);
        assert_eq!(told["error"], "invalid_target", "{wrong}");
        assert_eq!(told["error_description"], "There is no such project, or this user is not a member of it.");
    }
    let both = format!("{}&resource={}", authorize(&gateway, &client, &[]), quoted(&at(&gateway, "/mcp/work")));
    assert_eq!(alice.get(&gateway, &both).await.leads_to(REDIRECT)["error"], "invalid_target", "two resources");
    // An unbound token works in every project of its user.
    let plain = tokens_for(&gateway, &mut alice, &client, "/mcp").await;
    for (path, mirror) in [("/mcp", true), ("/mcp/work", false), ("/mcp/home", true)] {
        let names = crate::identity::client(&gateway, path, access(&plain)).await.names("tools/list").await;
        assert_eq!(names.contains(&"mirror".to_owned()), mirror, "{path}");
    }
    assert_eq!(gateway.send(as_bearer(access(&plain), "POST", "/mcp/other")).await.status, 404);
    // A user who leaves a project loses access with every token.
    let bound = tokens_for(&gateway, &mut alice, &client, "/mcp/work").await;
    assert_eq!(me(&gateway, access(&bound)).await.status, 200);
    let leave = gateway.request("PATCH", "/v1/projects/work").json(json!({ "members": ["bob"] }).to_string());
    assert_eq!(gateway.send(leave).await.status, 200);
    assert_eq!(me(&gateway, access(&bound)).await.status, 401);
    drop(fixture);
}

#[tokio::test]
async fn what_was_allowed_for_a_project_is_not_allowed_for_all() {
    let (fixture, gateway, mut owner) = two_projects().await;
    let metadata = json!({ "client_name": "a test", "redirect_uris": [REDIRECT], "token_endpoint_auth_method": "client_secret_post" });
    let client = register(&gateway, &metadata).await["client_id"].as_str().expect("an id").to_owned();
    let (work, home, all) = (at(&gateway, "/mcp/work"), at(&gateway, "/mcp/home"), at(&gateway, "/mcp"));
    let ask = |resource: &str| authorize(&gateway, &client, &[("scope", "read"), ("resource", resource)]);
    let asked = owner.get(&gateway, &ask(&work)).await;
    owner.post(&gateway, "/oauth/consent", &asked, &[("decision", "allow")]).await.leads_to(REDIRECT);
    owner.get(&gateway, &ask(&work)).await.leads_to(REDIRECT);
    for other in [&home, &all] {
        assert_eq!(owner.get(&gateway, &ask(other)).await.status, 200, "{other}");
    }
    let consents = gateway.send(gateway.request("GET", "/v1/consents")).await.value();
    assert_eq!(consents["consents"][0]["project"], "work", "{consents}");
    drop(fixture);
}

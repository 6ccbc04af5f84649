//! Confused deputy attacks: a user's consent for one client and redirect URI gives nothing to another client, redirect
//! URI or user, and a flow started in one browser cannot be finished in another.

use hikite_testkit::api::MockApi;

use super::*;

/// Returns `true` if the browser is redirected without a consent page.
async fn passes(gateway: &TestGateway, browser: &mut TestBrowser, path: &str) -> bool {
    let page = browser.get(gateway, path).await;
    assert!(matches!(page.status, 200 | 303), "{} {}", page.status, page.text);
    let silent = browser.get(gateway, &format!("{path}&prompt=none")).await;
    let told = silent.header("location").contains("error=consent_required");
    assert_eq!(told, page.status == 200, "{}", silent.header("location"));
    page.status == 303
}

#[tokio::test]
async fn a_consent_is_for_one_client_at_one_place_of_one_user() {
    let (gateway, mut owner) = owned_gateway().await;
    let client = with_secret(&gateway).await;
    code(&gateway, &mut owner, &client, &[("scope", "read")]).await;
    let read = [("scope", "read")];
    assert!(passes(&gateway, &mut owner, &authorize(&gateway, &client, &read)).await, "it was allowed");
    let twin = with_secret(&gateway).await;
    assert!(!passes(&gateway, &mut owner, &authorize(&gateway, &twin, &read)).await, "another of the same name");
    let more = authorize(&gateway, &client, &[("scope", "read call")]);
    assert!(!passes(&gateway, &mut owner, &more).await, "more than was allowed");

    let places = json!([REDIRECT, "http://localhost:3999/callback"]);
    let metadata = json!({ "redirect_uris": places, "token_endpoint_auth_method": "client_secret_post" });
    let two = register(&gateway, &metadata).await["client_id"].as_str().expect("an id").to_owned();
    code(&gateway, &mut owner, &two, &[("scope", "read")]).await;
    let other = [("scope", "read"), ("redirect_uri", "http://localhost:3999/callback")];
    assert!(!passes(&gateway, &mut owner, &authorize(&gateway, &two, &other)).await, "another place");

    gateway.run(&["user", "add", "alice"]).await;
    let password = gateway.run(&["user", "password", "alice"]).await.stdout.trim().to_owned();
    let mut alice = logged_in(&gateway, "alice", &password).await;
    assert!(!passes(&gateway, &mut alice, &authorize(&gateway, &client, &read)).await, "another user");
}

#[tokio::test]
async fn a_code_of_one_user_gives_nothing_of_another_and_is_of_its_client_alone() {
    let (gateway, mut owner) = owned_gateway().await;
    let (client, other) = (registered(&gateway).await, registered(&gateway).await);
    gateway.run(&["user", "add", "alice"]).await;
    let password = gateway.run(&["user", "password", "alice"]).await.stdout.trim().to_owned();
    let mut alice = logged_in(&gateway, "alice", &password).await;
    let hers = code(&gateway, &mut alice, &client, &[]).await;
    // Injected into the owner's client, it yields alice's access, not the owner's; another client gets nothing.
    refused(&ask_token(&gateway, &exchange(&other, &hers)).await, 400, "invalid_grant");
    code(&gateway, &mut owner, &client, &[]).await;
    let given = ask_token(&gateway, &exchange(&client, &hers)).await.value();
    let subject = me(&gateway, access(&given)).await.value()["subject"].clone();
    assert_ne!(subject, json!("owner"));
    let admin = crate::identity::as_bearer(access(&given), "GET", "/v1/users");
    assert_eq!(gateway.send(admin).await.status, 403);
}

#[tokio::test]
async fn a_token_of_ours_never_goes_to_whoever_is_called_with_it() {
    let api = MockApi::start().await;
    let tool = json!({ "description": "Shows the caller.", "http": { "url": api.url("/who") } });
    let server = json!({ "type": "http", "url": api.url("/mcp"), "description": "never answers as it should" });
    let config =
        json!({ "tools": { "who": tool }, "mcpServers": { "web": server }, "server": { "surface": "direct" } });
    let (gateway, mut browser) = owned_gateway_with(config).await;
    let client = registered(&gateway).await;
    let given = tokens(&gateway, &mut browser, &client, "read call").await;
    for name in ["who", "web:any"] {
        let call = json!({ "name": name, "parameters": {} }).to_string();
        let request = crate::identity::as_bearer(access(&given), "POST", "/v1/tools/call").json(call);
        gateway.send(request.header("cookie", "a=b").header("x-api-key", "c")).await;
    }
    for path in ["/who", "/mcp"] {
        let seen = api.last_of(path);
        for name in ["authorization", "cookie", "x-api-key", "x-forwarded-for", "forwarded"] {
            assert_eq!(seen.header(name), None, "{path}: {name}");
        }
        assert!(!format!("{seen:?}").contains(access(&given)), "{path}");
    }
}

//! Native clients: a loopback redirect does not identify a program, so consent is asked each time and shows the port
//! and the scopes.

use super::*;

/// Redirect URI of a well-known web client, which needs no approval.
const WEB: &str = "https://claude.ai/api/mcp/auth_callback";

async fn client_at(gateway: &TestGateway, place: &str, method: &str) -> String {
    let metadata = json!({ "client_name": "a test", "redirect_uris": [place], "token_endpoint_auth_method": method });
    register(gateway, &metadata).await["client_id"].as_str().expect("an id").to_owned()
}

/// Gives the requested consent and returns the consent page.
async fn allow(gateway: &TestGateway, browser: &mut TestBrowser, path: &str) -> TestPage {
    let asked = browser.get(gateway, path).await;
    assert_eq!(asked.status, 200, "{} {}", asked.header("location"), asked.text);
    let done = browser.post(gateway, "/oauth/consent", &asked, &[("decision", "allow")]).await;
    assert!(done.header("location").contains("code="), "{} {}", done.header("location"), done.text);
    asked
}

#[tokio::test]
async fn a_public_client_on_this_machine_is_asked_about_each_time() {
    let (gateway, mut browser) = owned_gateway().await;
    for (registered, places) in [
        (REDIRECT, &[REDIRECT, "http://127.0.0.1:4000/callback"][..]),
        ("http://localhost/callback", &["http://localhost:4001/callback"]),
        ("http://[::1]:4002/callback", &["http://[::1]:4003/callback"]),
        ("cursor://anysphere.cursor-mcp/oauth/callback", &["cursor://anysphere.cursor-mcp/oauth/callback"]),
    ] {
        let client = client_at(&gateway, registered, "none").await;
        for place in places {
            let request = authorize(&gateway, &client, &[("scope", "read"), ("redirect_uri", place)]);
            for _ in 0..2 {
                let page = allow(&gateway, &mut browser, &request).await;
                let shown = place.split("/callback").next().expect("a beginning");
                let shown = shown.split("/oauth").next().expect("a beginning");
                assert!(page.text.contains(shown), "{shown}: {}", page.text);
                assert!(page.text.contains("list, search and describe tools"), "{}", page.text);
                assert!(!page.text.contains("run tools"), "only what is asked for: {}", page.text);
            }
            let silent = browser.get(&gateway, &format!("{request}&prompt=none")).await;
            assert!(silent.header("location").contains("error=consent_required"), "{}", silent.header("location"));
        }
    }
}

#[tokio::test]
async fn a_client_with_a_secret_and_one_on_the_web_are_remembered() {
    let (gateway, mut browser) = owned_gateway().await;
    for (place, method) in [(REDIRECT, "client_secret_basic"), (WEB, "none")] {
        let client = client_at(&gateway, place, method).await;
        let with = |scope: &'static str| authorize(&gateway, &client, &[("scope", scope), ("redirect_uri", place)]);
        allow(&gateway, &mut browser, &with("read")).await;
        let again = browser.get(&gateway, &with("read")).await;
        assert!(again.leads_to(place).contains_key("code"), "{method}");
        // No scope is added silently, neither at once nor by combining two consents.
        assert_eq!(browser.get(&gateway, &with("read call")).await.status, 200, "{method}");
        allow(&gateway, &mut browser, &with("call")).await;
        for more in ["read call", "read call admin", "read"] {
            assert_eq!(browser.get(&gateway, &with(more)).await.status, 200, "{method} {more}");
        }
        assert!(browser.get(&gateway, &with("call")).await.leads_to(place).contains_key("code"), "{method}");
    }
}

#[tokio::test]
async fn only_what_the_page_showed_is_allowed() {
    let (gateway, _) = owned_gateway().await;
    gateway.run(&["user", "add", "alice"]).await;
    let password = gateway.run(&["user", "password", "alice"]).await.stdout.trim().to_owned();
    let mut alice = logged_in(&gateway, "alice", &password).await;
    let client = registered(&gateway).await;
    let asked = alice.get(&gateway, &authorize(&gateway, &client, &[("scope", "read call admin")])).await;
    assert!(asked.text.contains("run tools") && !asked.text.contains("manage tools"), "{}", asked.text);
    let admin = gateway.request("PATCH", "/v1/users/alice").json(json!({ "role": "admin" }).to_string());
    assert_eq!(gateway.send(admin).await.status, 200);
    let done = alice.post(&gateway, "/oauth/consent", &asked, &[("decision", "allow")]).await;
    let code = done.leads_to(REDIRECT)["code"].clone();
    let given = ask_token(&gateway, &exchange(&client, &code)).await.value();
    assert_eq!(given["scope"], "read call", "the role that came after the page counts for the next one");
}

//! The whole flow, from an empty store to a call, and the metadata that clients read before.

use super::*;

#[tokio::test]
async fn from_the_set_up_link_to_a_call() {
    let (fixture, web) = crate::http_fixture().await;
    let gateway = configured(json!({ "mcpServers": { "web": web }, "server": { "surface": "direct" } })).await;
    let path = setup_path(&gateway).await;
    let mut browser = TestBrowser::default();
    let page = browser.get(&gateway, &path).await;
    let short = browser.post(&gateway, "/setup", &page, &[("name", "kana"), ("password", "short")]).await;
    assert_eq!(short.status, 400, "the link is not used up by a mistake");
    let done = browser.post(&gateway, "/setup", &page, &[("name", "kana"), ("password", PASSWORD)]).await;
    done.leads_to("/ui/start");
    assert!(browser.get(&gateway, "/ui/start").await.text.contains("/mcp</code>"), "where clients connect to");
    assert_eq!(TestBrowser::default().get(&gateway, &path).await.status, 403, "it is used up now");

    // A client without prior knowledge discovers everything.
    let refused = gateway.send(HttpRequest::new("POST", "/mcp")).await;
    let challenge = refused.headers["www-authenticate"].to_str().expect("text").to_owned();
    let (_, metadata) = challenge.split_once("resource_metadata=\"").expect("an address");
    let metadata = metadata.trim_end_matches('"').strip_prefix(&issuer(&gateway)).expect("of ours").to_owned();
    let resource = gateway.send(HttpRequest::new("GET", &metadata)).await.value();
    assert_eq!(resource["resource"], format!("{}/mcp", issuer(&gateway)));
    assert_eq!(resource["authorization_servers"], json!([issuer(&gateway)]));
    let server = gateway.send(HttpRequest::new("GET", "/.well-known/oauth-authorization-server")).await.value();
    assert_eq!(server["issuer"], issuer(&gateway));

    let client = registered(&gateway).await;
    let asked = browser.get(&gateway, &authorize(&gateway, &client, &[])).await;
    assert!(asked.text.contains("http://127.0.0.1") && asked.text.contains("a test"), "{}", asked.text);
    let given = tokens(&gateway, &mut browser, &client, "read call").await;
    assert_eq!(
        (&given["token_type"], &given["expires_in"], &given["scope"]),
        (&json!("Bearer"), &json!(3600), &json!("read call"))
    );

    let who = me(&gateway, access(&given)).await.value();
    assert_eq!((&who["subject"], &who["scopes"]), (&json!("owner"), &json!(["read", "call"])));
    assert!(who["token"].as_str().is_some_and(|id| id.starts_with("grt_")), "{who}");
    let mcp = crate::identity::client(&gateway, "/mcp", access(&given)).await;
    assert!(mcp.names("tools/list").await.contains(&"echo".to_owned()));
    drop((mcp, fixture));
}

#[tokio::test]
async fn whoever_is_not_logged_in_is_sent_to_log_in_and_comes_back() {
    let (gateway, _) = owned_gateway().await;
    let client = registered(&gateway).await;
    let mut browser = TestBrowser::default();
    let page = browser.get(&gateway, &authorize(&gateway, &client, &[])).await;
    let next = page.leads_to("/oauth/login?next=")["next"].clone();
    assert!(next.starts_with("/oauth/authorize?"), "{next}");
    let login = browser.get(&gateway, page.header("location")).await;
    let wrong =
        browser.post(&gateway, "/oauth/login", &login, &[("name", "kana"), ("password", "wrong password")]).await;
    assert_eq!(wrong.status, 403);
    assert!(wrong.text.contains("role=\"alert\""));
    let right = browser.post(&gateway, "/oauth/login", &wrong, &[("name", "Kana "), ("password", PASSWORD)]).await;
    right.leads_to("/oauth/authorize?");
    let asked = browser.get(&gateway, right.header("location")).await;
    let back = browser.post(&gateway, "/oauth/consent", &asked, &[("decision", "allow")]).await;
    let code = back.leads_to(REDIRECT)["code"].clone();
    assert_eq!(ask_token(&gateway, &exchange(&client, &code)).await.status, 200);
    let page = browser.get(&gateway, "/oauth/logout").await;
    assert_eq!(browser.post(&gateway, "/oauth/logout", &page, &[]).await.status, 200);
    browser.get(&gateway, &authorize(&gateway, &client, &[])).await.leads_to("/oauth/login?next=");
}

#[tokio::test]
async fn what_was_allowed_is_not_asked_again_and_more_is() {
    let (gateway, mut browser) = owned_gateway().await;
    let client = with_secret(&gateway).await;
    code(&gateway, &mut browser, &client, &[("scope", "read")]).await;
    let again = browser.get(&gateway, &authorize(&gateway, &client, &[("scope", "read")])).await;
    assert!(again.leads_to(REDIRECT).contains_key("code"));
    for asked in [[("scope", "read call")], [("scope", "read admin")]] {
        assert_eq!(browser.get(&gateway, &authorize(&gateway, &client, &asked)).await.status, 200, "{asked:?}");
    }
    let forced = [("scope", "read"), ("prompt", "consent")];
    assert_eq!(browser.get(&gateway, &authorize(&gateway, &client, &forced)).await.status, 200);
    let other = registered(&gateway).await;
    let page = browser.get(&gateway, &authorize(&gateway, &other, &[("scope", "read")])).await;
    assert_eq!(page.status, 200, "another client is asked about");
    let elsewhere = [("scope", "read"), ("redirect_uri", "http://127.0.0.1:4000/callback")];
    let page = browser.get(&gateway, &authorize(&gateway, &client, &elsewhere)).await;
    assert!(page.leads_to("http://127.0.0.1:4000/callback?").contains_key("code"), "another port of this machine");
}

#[tokio::test]
async fn what_clients_read_first_says_what_there_is() {
    let (gateway, _) = owned_gateway().await;
    let get = async |path: &str, host: &str| {
        let reply = gateway.send(HttpRequest::new("GET", path).header("host", host)).await;
        assert_eq!(reply.status, 200, "{path}");
        reply.value()
    };
    for host in [gateway.address().to_string(), format!("localhost:{}", gateway.address().port())] {
        let base = format!("http://{host}");
        let server = get("/.well-known/oauth-authorization-server", &host).await;
        for (member, value) in [
            ("issuer", json!(base)),
            ("token_endpoint", json!(format!("{base}/oauth/token"))),
            ("registration_endpoint", json!(format!("{base}/oauth/register"))),
            ("code_challenge_methods_supported", json!(["S256"])),
            ("response_types_supported", json!(["code"])),
            ("authorization_response_iss_parameter_supported", json!(true)),
            ("client_id_metadata_document_supported", json!(true)),
        ] {
            assert_eq!(server[member], value, "{member}");
        }
        let openid = get("/.well-known/openid-configuration", &host).await;
        assert_eq!((&openid["issuer"], &openid["jwks_uri"]), (&server["issuer"], &server["jwks_uri"]));
        for (path, resource) in [("", ""), ("/mcp", "/mcp"), ("/mcp/work", "/mcp/work")] {
            let document = get(&format!("/.well-known/oauth-protected-resource{path}"), &host).await;
            assert_eq!(document["resource"], format!("{base}{resource}"));
            assert_eq!(document["authorization_servers"], json!([base]));
        }
    }
    let keys = get("/oauth/jwks", "localhost").await;
    assert_eq!(keys["keys"][0]["kty"], "EC");
    assert!(keys["keys"][0].get("d").is_none());
}

#[tokio::test]
async fn a_restart_changes_nothing_for_who_was_let_in() {
    let (gateway, mut browser) = owned_gateway().await;
    let client = registered(&gateway).await;
    let given = tokens(&gateway, &mut browser, &client, "read call").await;
    let gateway = gateway.restart(json!({})).await;
    assert!(!gateway.stderr().contains("/setup?token="), "there is an owner");
    // Another port is another resource: the access token is bound to the old one, the refresh token to the client.
    assert_eq!(me(&gateway, access(&given)).await.status, 401);
    let refresh = given["refresh_token"].as_str().expect("a token");
    let fields = [("grant_type", "refresh_token"), ("client_id", &client), ("refresh_token", refresh)];
    let next = ask_token(&gateway, &fields).await.value();
    assert_eq!(me(&gateway, access(&next)).await.status, 200);
    assert_eq!(browser.get(&gateway, "/oauth/login").await.status, 200);
}

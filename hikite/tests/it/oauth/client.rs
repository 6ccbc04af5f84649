//! Clients: registered, described by a document, approved, confidential, and with client credentials.

use super::*;

async fn try_register(gateway: &TestGateway, metadata: &Value) -> HttpReply {
    gateway.send(HttpRequest::new("POST", "/oauth/register").json(metadata.to_string())).await
}

#[tokio::test]
async fn only_addresses_that_lead_somewhere_safe_can_be_registered() {
    let (gateway, _) = owned_gateway().await;
    for uri in ["javascript:alert(1)", "data:text/html,x", "http://evil.example/cb", "https://a.example/#x", "/cb", ""]
    {
        refused(&try_register(&gateway, &json!({ "redirect_uris": [uri] })).await, 400, "invalid_redirect_uri");
    }
    let uris = json!([REDIRECT]);
    let method = json!({ "redirect_uris": uris, "token_endpoint_auth_method": "private_key_jwt" });
    refused(&try_register(&gateway, &method).await, 400, "invalid_client_metadata");
    refused(&try_register(&gateway, &json!([])).await, 400, "invalid_client_metadata");
    let many = futures_util::future::join_all(
        (0..70).map(|_| async { try_register(&gateway, &json!({ "redirect_uris": [REDIRECT] })).await.status }),
    );
    let statuses = many.await;
    assert!(statuses.contains(&201) && statuses.contains(&429), "{statuses:?}");
}

#[tokio::test]
async fn a_place_that_nobody_knows_waits_for_an_admin() {
    let (gateway, mut browser) = owned_gateway().await;
    let uri = "https://app.example/cb";
    let metadata = json!({ "client_name": "<b>App</b>", "redirect_uris": [uri], "token_endpoint_auth_method": "none" });
    let id = register(&gateway, &metadata).await["client_id"].as_str().expect("an id").to_owned();
    let path = authorize(&gateway, &id, &[("redirect_uri", uri)]);
    let page = browser.get(&gateway, &path).await;
    assert_eq!(page.status, 403);
    assert!(page.text.contains("https://app.example") && page.text.contains(&format!("hikite client approve {id}")));
    let listed = gateway.send(gateway.request("GET", "/v1/clients")).await.value();
    assert_eq!((&listed["clients"][0]["id"], &listed["clients"][0]["status"]), (&json!(id), &json!("pending")));
    let approved = gateway.send(gateway.request("POST", &format!("/v1/clients/{id}/approve"))).await;
    assert_eq!((approved.status, &approved.value()["status"]), (200, &json!("active")));
    let page = browser.get(&gateway, &path).await;
    assert_eq!(page.status, 200);
    let policy = page.header("content-security-policy");
    assert!(policy.contains("form-action 'self' https://app.example;"), "{policy}");
    let known =
        json!({ "redirect_uris": ["https://claude.ai/api/mcp/auth_callback"], "token_endpoint_auth_method": "none" });
    let id = register(&gateway, &known).await["client_id"].as_str().expect("an id").to_owned();
    let path = authorize(&gateway, &id, &[("redirect_uri", "https://claude.ai/api/mcp/auth_callback")]);
    assert_eq!(browser.get(&gateway, &path).await.status, 200, "a place of a well-known client");
}

#[tokio::test]
async fn a_well_known_client_needs_no_way_out_and_others_none_inside() {
    let (gateway, mut browser) = owned_gateway().await;
    let known = "https://claude.ai/oauth/claude-code-client-metadata";
    let redirect = "http://localhost:3118/callback";
    let page = browser.get(&gateway, &authorize(&gateway, known, &[("redirect_uri", redirect)])).await;
    assert!(page.status == 200 && page.text.contains("Claude Code"), "{}", page.text);
    let back = browser.post(&gateway, "/oauth/consent", &page, &[("decision", "allow")]).await;
    let code = back.leads_to(redirect)["code"].clone();
    let fields: Vec<(&str, &str)> = exchange(known, &code)
        .into_iter()
        .map(|(name, value)| (name, if name == "redirect_uri" { redirect } else { value }))
        .collect();
    assert_eq!(ask_token(&gateway, &fields).await.status, 200);
    // Private addresses are not fetched, no matter which client names them.
    for inside in [
        "https://127.0.0.1:1/client.json",
        "https://localhost/client.json",
        "https://10.0.0.1/client.json",
        "https://169.254.169.254/latest/meta-data",
        "https://[::1]/client.json",
        "https://[::ffff:127.0.0.1]/client.json",
        "https://2130706433/client.json",
    ] {
        let page = browser.get(&gateway, &authorize(&gateway, inside, &[])).await;
        assert_eq!((page.status, page.header("location")), (400, ""), "{inside}");
    }
}

#[tokio::test]
async fn where_addresses_are_no_ids_and_nobody_registers_only_admins_make_clients() {
    let config = json!({ "auth": { "cimd": "off", "registration": "off" } });
    let (gateway, mut browser) = owned_gateway_with(config).await;
    let server = gateway.send(HttpRequest::new("GET", "/.well-known/oauth-authorization-server")).await.value();
    assert_eq!(server["client_id_metadata_document_supported"], false);
    assert!(server.get("registration_endpoint").is_none());
    refused(&try_register(&gateway, &json!({ "redirect_uris": [REDIRECT] })).await, 403, "access_denied");
    let known = "https://claude.ai/oauth/claude-code-client-metadata";
    let path = authorize(&gateway, known, &[("redirect_uri", "http://localhost:1/callback")]);
    assert_eq!(browser.get(&gateway, &path).await.status, 400);
    let made = gateway.run(&["client", "add", "mine", "--redirect", REDIRECT, "--json"]).await;
    let made: Value = serde_json::from_str(&made.stdout).expect("JSON");
    let given = tokens(&gateway, &mut browser, made["id"].as_str().expect("an id"), "read").await;
    assert_eq!(me(&gateway, access(&given)).await.status, 200);
}

#[tokio::test]
async fn a_client_with_a_secret_shows_it_in_either_way() {
    use base64::Engine;
    let (gateway, mut browser) = owned_gateway().await;
    let made = register(&gateway, &json!({ "redirect_uris": [REDIRECT] })).await;
    assert_eq!(made["token_endpoint_auth_method"], "client_secret_basic");
    let (id, secret) = (made["client_id"].as_str().expect("an id"), made["client_secret"].as_str().expect("a secret"));
    let text = code(&gateway, &mut browser, id, &[]).await;
    refused(&ask_token(&gateway, &exchange(id, &text)).await, 401, "invalid_client");
    let fields: Vec<(&str, &str)> = exchange(id, &text).into_iter().filter(|(name, _)| *name != "client_id").collect();
    let basic = |pair: String| format!("Basic {}", base64::prelude::BASE64_STANDARD.encode(pair));
    let ask = |authorization: String| {
        HttpRequest::new("POST", "/oauth/token").form(form(&fields)).header("authorization", &authorization)
    };
    let wrong = gateway.send(ask(basic(format!("{id}:wrong")))).await;
    refused(&wrong, 401, "invalid_client");
    assert_eq!(wrong.headers["www-authenticate"], "Basic realm=\"hikite\"");
    let given = gateway.send(ask(basic(format!("{id}:{secret}")))).await;
    assert_eq!(given.status, 200, "{}", given.text());
    let refresh = given.value()["refresh_token"].as_str().expect("a token").to_owned();
    let by_post =
        [("grant_type", "refresh_token"), ("refresh_token", &refresh), ("client_id", id), ("client_secret", secret)];
    assert_eq!(ask_token(&gateway, &by_post).await.status, 200);
    let own = [("grant_type", "client_credentials"), ("client_id", id), ("client_secret", secret)];
    refused(&ask_token(&gateway, &own).await, 400, "unauthorized_client");
}

#[tokio::test]
async fn a_client_that_an_admin_made_may_come_for_itself() {
    let (gateway, _) = owned_gateway().await;
    let form = json!({ "name": "build server", "clientCredentials": true, "scopes": ["read"] });
    let made = gateway.send(gateway.request("POST", "/v1/clients").json(form.to_string())).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let made = made.value();
    let (id, secret) = (made["id"].as_str().expect("an id"), made["secret"].as_str().expect("a secret"));
    let own = [("grant_type", "client_credentials"), ("client_id", id), ("client_secret", secret)];
    let given = ask_token(&gateway, &own).await.value();
    assert!(given.get("refresh_token").is_none());
    let who = me(&gateway, access(&given)).await.value();
    assert_eq!((&who["subject"], &who["scopes"]), (&json!(format!("client:{id}")), &json!(["read"])));
    let more = [own.as_slice(), &[("scope", "read admin")]].concat();
    refused(&ask_token(&gateway, &more).await, 400, "invalid_scope");
}

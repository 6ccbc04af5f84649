//! Only the owner changes the owner, on every interface, and a transfer of ownership requires fresh authentication.

use super::*;

/// Creates administrators of every kind: a user's token, an independent token, and a browser.
async fn admins(gateway: &TestGateway) -> (Vec<String>, TestBrowser) {
    user(gateway, json!({ "name": "eve", "role": "admin", "password": ALICE })).await;
    let of_user = token(gateway, json!({ "name": "t", "user": "eve", "scopes": ["read", "call", "admin"] })).await;
    let own = token(gateway, json!({ "name": "t", "scopes": ["read", "call", "admin"] })).await;
    (vec![of_user.secret, own.secret], logged_in(gateway, "eve", ALICE).await)
}

#[tokio::test]
async fn an_admin_changes_nothing_of_the_owner() {
    let (_fixture, gateway, mut owner) = gateway_with_alice().await;
    let (secrets, mut browser) = admins(&gateway).await;
    let account = add_account(&gateway, gateway.token(), "mine").await;
    let id = get(&gateway, "/v1/users/kana").await.value()["id"].as_str().expect("an id").to_owned();
    for secret in &secrets {
        for form in [
            json!({ "password": "eve knows this one" }),
            json!({ "permissions": { "allow": [] } }),
            json!({ "permissions": null }),
            json!({ "name": "nobody" }),
            json!({ "removePasskeys": true }),
            json!({ "disabled": true }),
            json!({ "role": "member" }),
            json!({ "project": "team" }),
        ] {
            for named in ["kana", &*id] {
                let reply = patch(&gateway, secret, &format!("/v1/users/{named}"), form.clone()).await;
                assert_eq!(reply.status, 403, "{form} {}", reply.text());
            }
        }
        assert_eq!(delete(&gateway, secret, "/v1/users/kana").await.status, 409);
        for named in ["kana", "owner", &*id] {
            for member in ["user", "subject"] {
                let form = json!({ "name": "t", member: named, "scopes": ["admin"] });
                let request = as_bearer(secret, "POST", "/v1/tokens").json(form.to_string());
                let reply = gateway.send(request).await;
                assert!(matches!(reply.status, 400 | 403), "{form} {}", reply.text());
            }
        }
        let shared = patch(&gateway, secret, &format!("/v1/accounts/{account}"), json!({ "shared": true })).await;
        assert_eq!(shared.status, 403, "{}", shared.text());
        assert_eq!(delete(&gateway, secret, &format!("/v1/accounts/{account}")).await.status, 403);
        for form in [json!({}), json!({ "password": ALICE })] {
            let request = as_bearer(secret, "POST", "/v1/users/eve/handover").json(form.to_string());
            assert_eq!(gateway.send(request).await.status, 403);
        }
        let heir = delete(&gateway, secret, "/v1/users/alice?successor=kana").await;
        assert_eq!(heir.status, 403, "{}", heir.text());
    }
    // Nor does a token that acts for the owner: its holder need not be the owner.
    let acting = token(&gateway, json!({ "name": "t", "user": "owner", "scopes": ["read", "call", "admin"] })).await;
    let reply = patch(&gateway, &acting.secret, "/v1/users/kana", json!({ "password": "a program's own" })).await;
    refused(&reply, 403, "AUTHORIZATION_ERROR", "Only the owner can change the owner.");
    let more = json!({ "name": "t", "user": "kana" });
    let more = gateway.send(as_bearer(&acting.secret, "POST", "/v1/tokens").json(more.to_string())).await;
    assert_eq!(more.status, 403, "{}", more.text());
    let default = patch(&gateway, &acting.secret, &format!("/v1/accounts/{account}"), json!({ "default": true })).await;
    assert_eq!(default.status, 200, "its accounts are the owner's own: {}", default.text());
    let page = browser.get(&gateway, "/ui/access").await;
    let password = [("password", "eve knows this one")];
    let refused = browser.post(&gateway, "/ui/access/users/kana/password", &page, &password).await;
    assert_eq!(refused.status(), 403, "{}", refused.text);
    let handed = browser.post(&gateway, "/ui/access/users/eve/handover", &page, &[]).await;
    assert_eq!(handed.status(), 403, "{}", handed.text);
    logged_in(&gateway, "kana", PASSWORD).await;
    assert_eq!(owner.get(&gateway, "/ui/access").await.status(), 200, "and the owner is still logged in");
    let changed = patch(&gateway, gateway.token(), "/v1/users/kana", json!({ "name": "kanako" })).await;
    assert_eq!(changed.status, 200, "the owner does it: {}", changed.text());
    let again = gateway.run(&["user", "setup-link"]).await;
    assert!(again.code != Some(0) && again.stderr.contains("There is already an owner"), "{}", again.stderr);
}

#[tokio::test]
async fn the_ownership_is_handed_over_after_a_fresh_proof() {
    let (_fixture, gateway, mut browser) = gateway_with_alice().await;
    add_account(&gateway, gateway.token(), "of-kana").await;
    let mine = token_of(&gateway, "kana").await;
    let hand_over = async |form: Value| {
        let request = as_bearer(gateway.token(), "POST", "/v1/users/alice/handover");
        gateway.send(request.json(form.to_string())).await
    };
    let bare = hand_over(json!({})).await;
    refused(&bare, 403, "AUTHORIZATION_ERROR", "This needs a fresh login.");
    assert_eq!(hand_over(json!({ "password": "wrong password" })).await.status, 403);
    let page = browser.get(&gateway, "/ui/access").await;
    let done = browser.post(&gateway, "/ui/access/users/alice/handover", &page, &[]).await;
    done.leads_to("/ui/access");
    let roles = get(&gateway, "/v1/users").await.value();
    let role = |name: &str| {
        let users = roles["users"].as_array().expect("a list");
        users.iter().find(|user| user["name"] == name).expect("a user")["role"].clone()
    };
    assert_eq!((role("kana"), role("alice")), (json!("admin"), json!("owner")));
    let who = get(&gateway, "/v1/me").await.value();
    assert_eq!(who["user"], "alice", "the local token acts for whoever is the owner");
    assert_eq!(accounts(&gateway, gateway.token()).await, [""; 0]);
    assert_eq!(accounts(&gateway, &mine).await, ["of-kana"], "accounts stay with who has them");
    let back = gateway.run(&["user", "handover", "kana", "--yes"]).await;
    assert_eq!(back.code, Some(0), "{}", back.stderr);
    until("the machine's own word counts", async || get(&gateway, "/v1/me").await.value()["user"] == "kana").await;
    let told = gateway.run(&["user", "remove", "kana"]).await;
    assert!(told.code != Some(0) && told.stderr.contains("Hand over ownership first"), "{}", told.stderr);
}

#[tokio::test]
async fn the_default_mask_follows_who_is_the_owner() {
    let (_fixture, web) = crate::http_fixture().await;
    let config = json!({ "mcpServers": { "web": web }, "server": { "surface": "direct" },
        "auth": { "default_permissions": { "deny": ["web:mirror"] } } });
    let (gateway, _browser) = owned_gateway_with(config).await;
    user(&gateway, json!({ "name": "alice", "role": "admin", "password": ALICE })).await;
    let (kana, alice) = (token_of(&gateway, "kana").await, token_of(&gateway, "alice").await);
    let sees = async |secret: &str| {
        let names = client(&gateway, "/mcp", secret).await.names("tools/list").await;
        names.contains(&"mirror".to_owned())
    };
    assert_eq!((sees(&kana).await, sees(&alice).await), (true, false));
    let form = json!({ "password": PASSWORD }).to_string();
    let handed = gateway.send(as_bearer(gateway.token(), "POST", "/v1/users/alice/handover").json(form)).await;
    assert_eq!(handed.status, 200, "{}", handed.text());
    assert_eq!((sees(&kana).await, sees(&alice).await), (false, true));
    assert!(sees(gateway.token()).await, "the local token acts for the new owner");
}

//! Users of an external issuer: removed ones stay removed until an administrator restores them.

use super::*;
use crate::oauth::issuer::{ExternalIssuer, come_back};

#[tokio::test]
async fn whoever_was_removed_comes_again_only_when_that_is_lifted() {
    let issuer = ExternalIssuer::start().await;
    let mut config = issuer.login(&json!({}));
    config["limits"] = json!({ "failed_logins": 0 });
    config["auth"]["issuers"] =
        json!([{ "issuer": issuer.name(), "audience": "https://hikite.example/mcp", "scopes": ["read"] }]);
    let (gateway, mut owner) = owned_gateway_with(config).await;
    let claims = json!({ "preferred_username": "ren" });
    let mut browser = TestBrowser::default();
    come_back(&gateway, &issuer, (&mut browser, None), claims.clone()).await.leads_to("/connect/x");
    let first = get(&gateway, "/v1/users/ren").await.value();
    let theirs = issuer.token(&json!({ "sub": "7" }));
    assert_eq!(me(&gateway, &theirs).await.status, 200);

    patch(&gateway, gateway.token(), "/v1/users/ren", json!({ "disabled": true })).await;
    assert_eq!(me(&gateway, &theirs).await.status, 401, "a token of the issuer opens nothing, either");
    patch(&gateway, gateway.token(), "/v1/users/ren", json!({ "disabled": false })).await;
    assert_eq!(me(&gateway, &theirs).await.status, 200);

    assert_eq!(delete(&gateway, gateway.token(), "/v1/users/ren").await.status, 204);
    assert_eq!(me(&gateway, &theirs).await.status, 401);
    let refused = come_back(&gateway, &issuer, (&mut TestBrowser::default(), None), claims.clone()).await;
    assert_eq!(refused.status(), 403);
    assert!(refused.text.contains("removed"), "{}", refused.text);
    assert_eq!(get(&gateway, "/v1/users/ren").await.status, 404);
    let removals = get(&gateway, "/v1/removals").await.value();
    let removal = &removals["removals"][0];
    assert_eq!((&removal["name"], &removal["issuer"]), (&json!("ren"), &json!(issuer.name())), "{removals}");
    let listed = gateway.run(&["user", "removed"]).await;
    assert!(listed.stdout.contains("ren"), "{}", listed.stdout);
    let page = owner.get(&gateway, "/ui/access").await;
    let id = removal["id"].as_str().expect("an id");
    let path = format!("/ui/access/removals/{id}/revoke");
    assert!(page.text.contains(&path), "{}", page.text);
    owner.post(&gateway, &path, &page, &[]).await.leads_to("/ui/access");
    come_back(&gateway, &issuer, (&mut browser, None), claims).await.leads_to("/connect/x");
    let second = get(&gateway, "/v1/users/ren").await.value();
    assert_ne!(second["id"], first["id"], "as somebody new");
}

#[tokio::test]
async fn a_token_of_another_issuer_does_no_more_than_its_user_and_is_never_the_owner() {
    let issuer = ExternalIssuer::start().await;
    let mut config = issuer.login(&json!({}));
    config["auth"]["issuers"] = json!([{ "issuer": issuer.name(), "audience": "https://hikite.example/mcp",
        "scopes": ["read", "call", "admin"] }]);
    let (gateway, _owner) = owned_gateway_with(config).await;
    let claims = json!({ "preferred_username": "ren" });
    come_back(&gateway, &issuer, (&mut TestBrowser::default(), None), claims).await.leads_to("/connect/x");
    let theirs = issuer.token(&json!({ "sub": "7" }));
    let list = gateway.send(as_bearer(&theirs, "GET", "/v1/users")).await;
    assert_eq!(list.status, 403, "a member administers nothing: {}", list.text());
    let hand_over = json!({ "password": PASSWORD }).to_string();
    let request = as_bearer(gateway.token(), "POST", "/v1/users/ren/handover").json(hand_over);
    let handed = gateway.send(request).await;
    assert_eq!(handed.status, 200, "{}", handed.text());
    assert_eq!(gateway.send(as_bearer(&theirs, "GET", "/v1/users")).await.status, 200, "the owner's token does");
    for form in [json!({ "password": "a program's own" }), json!({ "permissions": { "allow": [] } })] {
        assert_eq!(patch(&gateway, &theirs, "/v1/users/ren", form.clone()).await.status, 403, "{form}");
    }
    let form = json!({ "name": "t", "user": "ren", "scopes": ["admin"] }).to_string();
    assert_eq!(gateway.send(as_bearer(&theirs, "POST", "/v1/tokens").json(form)).await.status, 403);
    let request = as_bearer(&theirs, "POST", "/v1/users/kana/handover").json("{}");
    assert_eq!(gateway.send(request).await.status, 403);
}

//! People who log in with another issuer: removed means removed, until an admin says otherwise.

use super::*;
use crate::oauth::issuer::{Issuer, come_back};

#[tokio::test]
async fn whoever_was_removed_comes_again_only_when_that_is_lifted() {
    let issuer = Issuer::start().await;
    let mut config = issuer.login(&json!({}));
    config["limits"] = json!({ "failed_logins": 0 });
    config["auth"]["issuers"] =
        json!([{ "issuer": issuer.name(), "audience": "https://hikite.example/mcp", "scopes": ["read"] }]);
    let (gateway, mut owner) = house_with(config).await;
    let claims = json!({ "preferred_username": "ren" });
    let mut browser = Browser::default();
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
    let refused = come_back(&gateway, &issuer, (&mut Browser::default(), None), claims.clone()).await;
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

//! Users who are bound to one project, and the default mask of users without their own.

use super::issuer::{ExternalIssuer, come_back};
use super::*;
use crate::identity::{as_bearer, client, project, token};

/// Starts the fixture with a project `work` that has no `mirror` and no members.
async fn with_project(mut config: Value) -> (hikite_testkit::fixture::Fixture, TestGateway, TestBrowser) {
    let (fixture, web) = crate::http_fixture().await;
    config["mcpServers"] = json!({ "web": web });
    config["server"] = json!({ "surface": "direct" });
    let (gateway, browser) = house_with(config).await;
    project(&gateway, "work", json!({ "permissions": { "deny": ["web:mirror"] } })).await;
    project(&gateway, "home", json!({ "members": ["alice"] })).await;
    (fixture, gateway, browser)
}

async fn change(gateway: &TestGateway, user: &str, changes: &Value) -> HttpReply {
    gateway.send(gateway.request("PATCH", &format!("/v1/users/{user}")).json(changes.to_string())).await
}

async fn has_mirror(gateway: &TestGateway, path: &str, token: &str) -> bool {
    client(gateway, path, token).await.names("tools/list").await.contains(&"mirror".to_owned())
}

#[tokio::test]
async fn whatever_a_bound_person_comes_with_opens_their_project_alone() {
    let (fixture, gateway, _) = with_project(json!({})).await;
    let form = json!({ "name": "alice", "role": "admin", "password": PASSWORD, "project": "work" });
    let made = gateway.send(gateway.request("POST", "/v1/users").json(form.to_string())).await;
    assert_eq!((made.status, &made.value()["project"]), (201, &json!("work")), "{}", made.text());
    let mut alice = logged_in(&gateway, "alice", PASSWORD).await;
    let app = registered(&gateway).await;
    let asked = alice.get(&gateway, &authorize(&gateway, &app, &[])).await;
    assert!(asked.text.contains("<strong class=\"project\">work</strong>"), "{}", asked.text);
    let given = tokens(&gateway, &mut alice, &app, "read call admin").await;
    assert_eq!(given["scope"], "read call");
    let personal =
        token(&gateway, json!({ "name": "hers", "subject": "alice", "scopes": ["read", "call", "admin"] })).await;
    for secret in [access(&given), &personal.secret] {
        let me = me(&gateway, secret).await.value();
        assert_eq!((&me["user"], &me["project"]), (&json!("alice"), &json!("work")));
        assert!(!has_mirror(&gateway, "/mcp", secret).await && !has_mirror(&gateway, "/mcp/work", secret).await);
        for path in ["/mcp/home", "/mcp/nowhere"] {
            assert_eq!(gateway.send(as_bearer(secret, "POST", path)).await.status, 404, "{path}");
        }
        assert_eq!(gateway.send(as_bearer(secret, "GET", "/v1/users")).await.status, 403);
        let batch = json!({ "commands": [{ "id": "a", "tool": "web:mirror", "params": {} }] }).to_string();
        let batch = gateway.send(as_bearer(secret, "POST", "/v1/batch").json(batch)).await;
        assert_ne!(batch.status, 200, "{}", batch.text());
    }
    // A token for another project of hers is no longer valid.
    let elsewhere = token(&gateway, json!({ "name": "old", "subject": "alice", "project": "home" })).await;
    assert_eq!(me(&gateway, &elsewhere.secret).await.status, 401);
    let home = format!("{}/mcp/home", issuer(&gateway));
    let refused = alice.get(&gateway, &authorize(&gateway, &app, &[("resource", &home)])).await;
    assert_eq!(refused.leads_to(REDIRECT)["error"], "invalid_target");
    // The pages as well.
    let page = alice.get(&gateway, "/ui/modules/web").await;
    assert!(page.status == 200 && page.text.contains("echo") && !page.text.contains("mirror"), "{}", page.text);
    assert_ne!(alice.get(&gateway, "/ui/access").await.status, 200, "nobody administers from inside a project");

    let session = client(&gateway, "/mcp", &personal.secret).await;
    assert_eq!(change(&gateway, "alice", &json!({ "project": null })).await.status, 200);
    assert!(has_mirror(&gateway, "/mcp", access(&given)).await, "she is free again");
    assert_eq!(me(&gateway, &elsewhere.secret).await.status, 200);
    drop((session, fixture));
}

#[tokio::test]
async fn a_person_is_bound_at_a_terminal_at_once_and_the_owner_never() {
    let (fixture, gateway, _) = with_project(json!({})).await;
    let run = async |words: &[&str]| gateway.run(words).await;
    assert_eq!(run(&["user", "add", "alice"]).await.code, Some(0));
    let hers = token(&gateway, json!({ "name": "hers", "subject": "alice" })).await;
    assert!(has_mirror(&gateway, "/mcp", &hers.secret).await);
    let open = client(&gateway, "/mcp", &hers.secret).await;
    let bound = run(&["user", "project", "alice", "work"]).await;
    assert!(bound.code == Some(0) && bound.stdout.contains("\"project\":\"work\""), "{bound:?}");
    let is_bound = async || me(&gateway, &hers.secret).await.value()["project"] == "work";
    let mut seen = false;
    for _ in 0..500 {
        seen = is_bound().await;
        if seen {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(seen, "the running process follows");
    let message = json!({ "jsonrpc": "2.0", "id": 7, "method": "tools/list" }).to_string();
    let request = as_bearer(&hers.secret, "POST", "/mcp").header("mcp-session-id", &open.session());
    let listed = gateway.send(request.json(message)).await;
    assert!(!listed.text().contains("mirror"), "nor does a session from before: {}", listed.text());
    assert!(run(&["user", "list"]).await.stdout.contains("work"));
    for (words, why) in [
        (&["user", "project", "alice", "nowhere"][..], "There is no project `nowhere`."),
        (&["user", "project", "kana", "work"], "the owner is bound to no project"),
        (&["user", "add", "bob", "--project", "nowhere"], "There is no project `nowhere`."),
    ] {
        let refused = run(words).await;
        assert!(refused.code == Some(1) && refused.stderr.contains(why), "{words:?}: {}", refused.stderr);
    }
    for (user, project, status) in
        [("kana", json!("work"), 400), ("alice", json!("nowhere"), 400), ("alice", json!(7), 400)]
    {
        let reply = change(&gateway, user, &json!({ "project": project })).await;
        assert_eq!(reply.status, status, "{}", reply.text());
    }
    // Deleting a project invalidates everything bound to it.
    assert_eq!(gateway.send(gateway.request("DELETE", "/v1/projects/work")).await.status, 204);
    assert_eq!(me(&gateway, &hers.secret).await.status, 401);
    assert_eq!(run(&["user", "project", "alice", "--none"]).await.code, Some(0));
    drop((open, fixture));
}

#[tokio::test]
async fn an_admin_binds_a_person_on_the_pages() {
    let (fixture, gateway, mut owner) = with_project(json!({})).await;
    let page = owner.get(&gateway, "/ui/access").await;
    let form = [("name", "alice"), ("role", "member"), ("password", PASSWORD), ("project", "work")];
    let made = owner.post(&gateway, "/ui/access/users", &page, &form).await;
    assert!(made.status < 400, "{}", made.text);
    let project = async || {
        let users = gateway.send(gateway.request("GET", "/v1/users/alice")).await;
        users.value()["project"].clone()
    };
    assert_eq!(project().await, "work");
    let page = owner.get(&gateway, "/ui/access").await;
    assert!(page.text.contains("/ui/access/users/alice/bind"), "{}", page.text);
    assert!(!page.text.contains("/ui/access/users/kana/bind"), "the owner is bound to nothing");
    for (name, expected) in [("home", json!("home")), ("", json!(null))] {
        let done = owner.post(&gateway, "/ui/access/users/alice/bind", &page, &[("project", name)]).await;
        done.leads_to("/ui/access");
        assert_eq!(project().await, expected);
    }
    drop(fixture);
}

#[tokio::test]
async fn the_default_mask_is_for_people_without_one_of_their_own() {
    let issuer = ExternalIssuer::start().await;
    let mut config = issuer.login(&json!({}));
    config["auth"]["default_permissions"] = json!({ "deny": ["web:mirror"] });
    config["auth"]["issuers"] = json!([{ "issuer": issuer.name(), "audience": super::issuer::US }]);
    let (fixture, gateway, mut owner) = with_project(config).await;
    let app = registered(&gateway).await;
    let own = tokens(&gateway, &mut owner, &app, "read call").await;
    assert!(has_mirror(&gateway, "/mcp", access(&own)).await, "the owner is exempt");
    assert!(has_mirror(&gateway, "/mcp", gateway.token()).await);
    let machine = token(&gateway, json!({ "name": "ci" })).await;
    assert!(has_mirror(&gateway, "/mcp", &machine.secret).await, "a token that stands for itself is no person");

    gateway.run(&["user", "add", "alice"]).await;
    let alice = token(&gateway, json!({ "name": "hers", "subject": "alice" })).await;
    let guest = token(&gateway, json!({ "name": "guest", "subject": "somebody" })).await;
    let mut browser = TestBrowser::default();
    come_back(&gateway, &issuer, (&mut browser, None), json!({ "sub": "7" })).await.leads_to("/connect/x");
    let federated = tokens(&gateway, &mut browser, &app, "read call").await;
    let stranger = issuer.token(&json!({ "sub": "42" }));
    for (secret, who) in [
        (&*alice.secret, "a user"),
        (&guest.secret, "somebody by name"),
        (access(&federated), "a user of another issuer"),
        (&stranger, "a token of another issuer"),
    ] {
        assert!(!has_mirror(&gateway, "/mcp", secret).await, "{who}");
        let call = json!({ "name": "web:mirror", "parameters": {} }).to_string();
        assert_eq!(gateway.send(as_bearer(secret, "POST", "/v1/tools/call").json(call)).await.status, 404, "{who}");
    }
    let page = browser.get(&gateway, "/ui/modules/web").await;
    assert!(page.text.contains("echo") && !page.text.contains("mirror"), "{}", page.text);

    assert_eq!(change(&gateway, "alice", &json!({ "permissions": { "deny": ["web:echo"] } })).await.status, 200);
    assert!(has_mirror(&gateway, "/mcp", &alice.secret).await, "her own mask takes its place");
    assert_eq!(change(&gateway, "alice", &json!({ "permissions": null })).await.status, 200);
    assert!(!has_mirror(&gateway, "/mcp", &alice.secret).await);
    drop(fixture);
}

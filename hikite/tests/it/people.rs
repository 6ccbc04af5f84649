//! Users who are added and removed: their data is private, and removal takes effect on every interface.

mod owner;
mod reset;
mod stranger;
mod upgrade;

use std::time::{Duration, Instant};

use hikite_testkit::fixture::Fixture;
use hikite_testkit::gateway::{HttpReply, LIMIT, TestGateway};
use serde_json::{Value, json};

use crate::identity::{as_bearer, client, project, token};
use crate::oauth::{PASSWORD, TestBrowser, access, house_with, logged_in, me, registered, tokens};
use crate::rest::{get, post, refused};

pub(crate) const ALICE: &str = "alice's long password";

/// Starts a gateway with an owner, a server, Notion accounts, and a member called alice.
async fn house() -> (Fixture, TestGateway, TestBrowser) {
    let (fixture, web) = crate::http_fixture().await;
    let config = json!({ "mcpServers": { "web": web }, "modules": { "builtin": ["notion"] },
        "server": { "surface": "direct" }, "limits": { "failed_logins": 0 } });
    let (gateway, browser) = house_with(config).await;
    user(&gateway, json!({ "name": "alice", "password": ALICE })).await;
    (fixture, gateway, browser)
}

pub(crate) async fn user(gateway: &TestGateway, form: Value) -> Value {
    let reply = post(gateway, "/v1/users", &form).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.value()
}

async fn patch(gateway: &TestGateway, secret: &str, path: &str, form: Value) -> HttpReply {
    gateway.send(as_bearer(secret, "PATCH", path).json(form.to_string())).await
}

async fn delete(gateway: &TestGateway, secret: &str, path: &str) -> HttpReply {
    gateway.send(as_bearer(secret, "DELETE", path)).await
}

async fn status(gateway: &TestGateway, secret: &str) -> u16 {
    gateway.send(as_bearer(secret, "GET", "/v1/tools")).await.status
}

/// Returns the status of `initialize` over MCP.
async fn mcp_status(gateway: &TestGateway, secret: &str) -> u16 {
    let hello = json!({ "jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": { "name": "t", "version": "1" } } });
    let request = as_bearer(secret, "POST", "/mcp").header("accept", "application/json, text/event-stream");
    gateway.send(request.json(hello.to_string())).await.status
}

async fn add_account(gateway: &TestGateway, secret: &str, name: &str) -> String {
    let form = json!({ "provider": "notion", "name": name, "token": "secret_of_somebody" });
    let reply = gateway.send(as_bearer(secret, "POST", "/v1/accounts").json(form.to_string())).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
    reply.value()["id"].as_str().expect("an id").to_owned()
}

/// Returns the account names of a bearer.
async fn accounts(gateway: &TestGateway, secret: &str) -> Vec<String> {
    let listed = gateway.send(as_bearer(secret, "GET", "/v1/accounts")).await.value();
    let listed = listed["accounts"].as_array().expect("a list").clone();
    listed.iter().map(|account| account["name"].as_str().expect("a name").to_owned()).collect()
}

/// Polls until the condition holds, with a generous limit.
async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let begin = Instant::now();
    while !is_so().await {
        assert!(begin.elapsed() < LIMIT, "{what}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

async fn token_of(gateway: &TestGateway, user: &str) -> String {
    token(gateway, json!({ "name": "t", "user": user })).await.secret
}

#[tokio::test]
async fn whoever_is_locked_out_has_nothing_that_opens_until_they_are_let_in_again() {
    let (_fixture, gateway, _) = house().await;
    let mut browser = logged_in(&gateway, "alice", ALICE).await;
    let own = registered(&gateway).await;
    let given = tokens(&gateway, &mut browser, &own, "read call").await;
    let secret = token_of(&gateway, "alice").await;
    for bearer in [&*secret, access(&given)] {
        assert_eq!((status(&gateway, bearer).await, mcp_status(&gateway, bearer).await), (200, 200));
    }
    let session = client(&gateway, "/mcp", &secret).await;
    assert!(session.names("tools/list").await.contains(&"echo".to_owned()));
    let changed = patch(&gateway, gateway.token(), "/v1/users/alice", json!({ "disabled": true })).await;
    assert_eq!(changed.status, 200, "{}", changed.text());
    for bearer in [&*secret, access(&given)] {
        assert_eq!((status(&gateway, bearer).await, mcp_status(&gateway, bearer).await), (401, 401));
    }
    let refresh = given["refresh_token"].as_str().expect("a token");
    let fields = [("grant_type", "refresh_token"), ("client_id", &*own), ("refresh_token", refresh)];
    assert_eq!(crate::oauth::ask_token(&gateway, &fields).await.status, 400, "it is not refreshed");
    browser.get(&gateway, "/ui").await.leads_to("/oauth/login");
    let sessions = get(&gateway, "/v1/sessions").await.value();
    assert!(!sessions.to_string().contains("usr_"), "their sessions are over: {sessions}");
    let listed = get(&gateway, "/v1/tokens").await.value();
    assert_eq!((&listed["tokens"][0]["user"], &listed["tokens"][0]["active"]), (&json!("alice"), &json!(false)));

    patch(&gateway, gateway.token(), "/v1/users/alice", json!({ "disabled": false })).await;
    assert_eq!(status(&gateway, &secret).await, 200, "what was not taken back is good again");
    browser.get(&gateway, "/ui").await.leads_to("/oauth/login");
}

#[tokio::test]
async fn an_open_stream_ends_with_whoever_it_belongs_to() {
    let (_fixture, gateway, _) = house().await;
    let secret = token_of(&gateway, "alice").await;
    let mut streams = tokio::task::JoinSet::new();
    streams.spawn(as_bearer(&secret, "GET", "/sse").send(gateway.address()));
    let session = client(&gateway, "/mcp", &secret).await;
    until("the session is there", async || {
        get(&gateway, "/v1/sessions").await.value().to_string().contains("\"alice\"")
    })
    .await;
    assert_eq!(delete(&gateway, gateway.token(), "/v1/users/alice").await.status, 204);
    let ended = tokio::time::timeout(LIMIT, streams.join_next()).await;
    ended.expect("the stream ends").expect("there is one").expect("read to its end");
    until("the session is over", async || !get(&gateway, "/v1/sessions").await.value().to_string().contains("usr_"))
        .await;
    drop(session);
}

#[tokio::test]
async fn nothing_of_a_removed_user_is_left_for_the_next_of_that_name() {
    let (_fixture, gateway, _) = house().await;
    let mask = json!({ "permissions": { "allow": ["web:echo"] } });
    patch(&gateway, gateway.token(), "/v1/users/alice", mask).await;
    let secret = token_of(&gateway, "alice").await;
    add_account(&gateway, &secret, "work").await;
    project(&gateway, "team", json!({ "members": ["alice", "kana"] })).await;
    project(&gateway, "alone", json!({ "members": ["alice"] })).await;
    let first = get(&gateway, "/v1/users/alice").await.value();
    assert_eq!(delete(&gateway, gateway.token(), "/v1/users/alice").await.status, 204);
    assert_eq!((status(&gateway, &secret).await, mcp_status(&gateway, &secret).await), (401, 401));
    let all = get(&gateway, "/v1/accounts?all=true").await.value();
    assert_eq!(all["accounts"], json!([]), "the sealed accounts are purged");
    assert_eq!(get(&gateway, "/v1/tokens").await.value()["tokens"], json!([]));
    let team = get(&gateway, "/v1/projects/team").await.value();
    assert_eq!(team["members"], json!(["kana"]));

    let second = user(&gateway, json!({ "name": "alice", "password": ALICE })).await;
    assert_ne!(second["id"], first["id"]);
    assert_eq!(second["permissions"], Value::Null);
    assert_eq!(status(&gateway, &secret).await, 401, "the token of the first alice opens nothing");
    let secret = token_of(&gateway, "alice").await;
    assert_eq!(accounts(&gateway, &secret).await, [""; 0]);
    for name in ["team", "alone"] {
        let inside = as_bearer(&secret, "GET", "/v1/tools").header("hikite-project", name);
        assert_eq!(gateway.send(inside).await.status, 404, "{name}");
    }
    let bound = json!({ "name": "t", "project": "alone", "user": "alice" });
    let alone = post(&gateway, "/v1/tokens", &bound).await;
    assert_eq!(alone.status, 400, "a project that lost its last member is not open: {}", alone.text());
}

#[tokio::test]
async fn accounts_and_memberships_go_to_a_successor_and_nothing_else_does() {
    let (_fixture, gateway, _) = house().await;
    user(&gateway, json!({ "name": "bob" })).await;
    let (alice, bob) = (token_of(&gateway, "alice").await, token_of(&gateway, "bob").await);
    add_account(&gateway, &alice, "work").await;
    add_account(&gateway, &bob, "work").await;
    project(&gateway, "team", json!({ "members": ["alice"] })).await;
    let unknown = delete(&gateway, gateway.token(), "/v1/users/alice?successor=nobody").await;
    refused(&unknown, 404, "NOT_FOUND", "There is no user `nobody`.");
    let own = delete(&gateway, gateway.token(), "/v1/users/alice?successor=alice").await;
    assert_eq!(own.status, 400);
    assert_eq!(status(&gateway, &alice).await, 200, "what was refused changed nothing");
    assert_eq!(delete(&gateway, gateway.token(), "/v1/users/alice?successor=bob").await.status, 204);
    assert_eq!(accounts(&gateway, &bob).await, ["work-2", "work"]);
    assert_eq!(status(&gateway, &alice).await, 401, "tokens are nobody else's");
    let inside = as_bearer(&bob, "GET", "/v1/tools").header("hikite-project", "team");
    assert_eq!(gateway.send(inside).await.status, 200);
}

#[tokio::test]
async fn a_name_is_a_label_and_what_hangs_on_the_user_stays() {
    let (_fixture, gateway, _) = house().await;
    let secret = token_of(&gateway, "alice").await;
    add_account(&gateway, &secret, "work").await;
    project(&gateway, "team", json!({ "members": ["alice"] })).await;
    let before = get(&gateway, "/v1/users/alice").await.value();
    let id = before["id"].as_str().expect("an id");
    let taken = patch(&gateway, gateway.token(), "/v1/users/alice", json!({ "name": "kana" })).await;
    refused(&taken, 409, "CONFLICT", "A user `kana` already exists.");
    for wrong in ["owner", "usr_1", "A B", ""] {
        let reply = patch(&gateway, gateway.token(), "/v1/users/alice", json!({ "name": wrong })).await;
        assert_eq!(reply.status, 400, "{wrong}");
    }
    let renamed = patch(&gateway, gateway.token(), "/v1/users/alice", json!({ "name": "alicia" })).await;
    assert_eq!((renamed.status, &renamed.value()["id"]), (200, &json!(id)), "{}", renamed.text());
    assert_eq!(get(&gateway, "/v1/users/alice").await.status, 404);
    assert_eq!(get(&gateway, &format!("/v1/users/{id}")).await.value()["name"], "alicia", "by its id, too");
    assert_eq!(accounts(&gateway, &secret).await, ["work"]);
    let me = me(&gateway, &secret).await.value();
    assert_eq!((&me["user"], &me["userId"]), (&json!("alicia"), &json!(id)));
    let inside = as_bearer(&secret, "GET", "/v1/tools").header("hikite-project", "team");
    assert_eq!(gateway.send(inside).await.status, 200, "a project names its members as they are called now");
    logged_in(&gateway, "alicia", ALICE).await;
    user(&gateway, json!({ "name": "alice" })).await;
    let second = token_of(&gateway, "alice").await;
    assert_eq!(accounts(&gateway, &second).await, [""; 0], "another alice inherits nothing");
    let inside = as_bearer(&second, "GET", "/v1/tools").header("hikite-project", "team");
    assert_eq!(gateway.send(inside).await.status, 404);
}

#[tokio::test]
async fn a_label_of_a_token_is_never_somebody() {
    let (_fixture, gateway, _) = house().await;
    let made = token(&gateway, json!({ "name": "t", "subject": "robot" })).await;
    add_account(&gateway, &made.secret, "work").await;
    user(&gateway, json!({ "name": "robot", "permissions": { "allow": [] } })).await;
    let own = token_of(&gateway, "robot").await;
    assert_eq!(accounts(&gateway, &own).await, [""; 0]);
    assert_eq!(accounts(&gateway, &made.secret).await, ["work"]);
    assert_eq!(delete(&gateway, gateway.token(), "/v1/users/robot").await.status, 204);
    assert_eq!((status(&gateway, &made.secret).await, status(&gateway, &own).await), (200, 401));
    let old = token(&gateway, json!({ "name": "t", "subject": "alice" })).await;
    assert_eq!(me(&gateway, &old.secret).await.value()["user"], "alice", "the old member names a user as it did");
    let twice = post(&gateway, "/v1/tokens", &json!({ "name": "t", "subject": "x", "user": "alice" })).await;
    assert_eq!(twice.status, 400, "{}", twice.text());
    let nobody = post(&gateway, "/v1/tokens", &json!({ "name": "t", "user": "nobody" })).await;
    assert_eq!(nobody.status, 400, "{}", nobody.text());
    let more = json!({ "name": "t", "user": "alice", "scopes": ["admin"] });
    assert_eq!(post(&gateway, "/v1/tokens", &more).await.status, 400, "no more than the user may");
}

#[tokio::test]
async fn a_token_of_the_terminal_acts_for_the_user_that_it_names() {
    let (_fixture, gateway, _) = house().await;
    let out = gateway.run(&["token", "create", "--user", "owner", "--json"]).await;
    let made: Value = serde_json::from_str(&out.stdout).expect("JSON");
    assert_eq!((&made["user"], &made["subject"]), (&json!("kana"), &json!("owner")), "{made}");
    add_account(&gateway, gateway.token(), "mine").await;
    let secret = made["secret"].as_str().expect("a secret").to_owned();
    until("the token is known", async || status(&gateway, &secret).await == 200).await;
    assert_eq!(accounts(&gateway, &secret).await, ["mine"], "the owner's accounts are there");
    let old = gateway.run(&["token", "create", "--subject", "bot", "--json"]).await;
    assert!(old.stderr.contains("`--subject` is deprecated"), "{}", old.stderr);
    let wrong = gateway.run(&["token", "create", "--user", "nobody"]).await;
    assert!(wrong.code != Some(0) && wrong.stderr.contains("There is no user `nobody`."), "{}", wrong.stderr);
}

#[tokio::test]
async fn the_pages_name_people_and_remove_them_with_a_successor() {
    let (_fixture, gateway, mut browser) = house().await;
    user(&gateway, json!({ "name": "bob" })).await;
    let alice = token_of(&gateway, "alice").await;
    let bob = token_of(&gateway, "bob").await;
    add_account(&gateway, &alice, "work").await;
    let page = browser.get(&gateway, "/ui/access").await;
    for word in ["/ui/access/users/alice/rename", "/ui/access/users/alice/password", "name=\"successor\""] {
        assert!(page.text.contains(word), "{word}");
    }
    let renamed = browser.post(&gateway, "/ui/access/users/alice/rename", &page, &[("name", "alicia")]).await;
    renamed.leads_to("/ui/access");
    let gone = [("successor", "bob")];
    browser.post(&gateway, "/ui/access/users/alicia/revoke", &page, &gone).await.leads_to("/ui/access");
    assert_eq!(accounts(&gateway, &bob).await, ["work"]);
    assert_eq!(status(&gateway, &alice).await, 401);
}

#[tokio::test]
async fn the_audit_names_people_by_id_and_by_name() {
    let (_fixture, gateway, _) = house().await;
    let secret = token_of(&gateway, "alice").await;
    let id = get(&gateway, "/v1/users/alice").await.value()["id"].as_str().expect("an id").to_owned();
    let call = json!({ "name": "web:echo", "parameters": { "text": "hi" } });
    let reply = gateway.send(as_bearer(&secret, "POST", "/v1/tools/call").json(call.to_string())).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    until("the call is recorded", async || {
        let records = get(&gateway, "/v1/audit?kind=call").await.value();
        let records = records["records"].as_array().cloned().unwrap_or_default();
        records.iter().any(|record| record["subject"] == *id && record["user"] == "alice")
    })
    .await;
    assert_eq!(delete(&gateway, gateway.token(), &format!("/v1/users/{id}")).await.status, 204);
    until("the removal is recorded", async || {
        let records = get(&gateway, "/v1/audit").await.text().to_owned();
        records.contains("user.delete") && records.contains(&format!("alice ({id})"))
    })
    .await;
}

#[tokio::test]
async fn a_session_in_a_project_ends_with_its_membership() {
    let (_fixture, gateway, _) = house().await;
    project(&gateway, "team", json!({ "members": ["alice"] })).await;
    let secret = token_of(&gateway, "alice").await;
    let (inside, outside) = (client(&gateway, "/mcp/team", &secret).await, client(&gateway, "/mcp", &secret).await);
    let left = patch(&gateway, gateway.token(), "/v1/projects/team", json!({ "members": ["bob"] })).await;
    assert_eq!(left.status, 200, "{}", left.text());
    until("the session in the project is over", async || {
        !get(&gateway, "/v1/sessions").await.value().to_string().contains("\"team\"")
    })
    .await;
    assert!(!outside.names("tools/list").await.is_empty(), "the other one goes on");
    drop(inside);
}

#[tokio::test]
async fn whoever_is_bound_to_a_project_changes_their_password_there() {
    let (_fixture, gateway, _) = house().await;
    project(&gateway, "team", json!({ "members": ["alice"] })).await;
    let secret = token_of(&gateway, "alice").await;
    let bound = patch(&gateway, gateway.token(), "/v1/users/alice", json!({ "project": "team" })).await;
    assert_eq!(bound.status, 200, "{}", bound.text());
    let form = json!({ "current": ALICE, "password": "another long password" }).to_string();
    let changed = gateway.send(as_bearer(&secret, "POST", "/v1/me/password").json(form)).await;
    assert_eq!(changed.status, 204, "{}", changed.text());
    logged_in(&gateway, "alice", "another long password").await;
}

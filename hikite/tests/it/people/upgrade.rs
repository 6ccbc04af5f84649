//! A store written by version 0.1.0: every user is there with their data and gets an id.

use hikite_testkit::gateway::{HttpRequest, TestGateway};
use hikite_testkit::postgres;

use super::*;
use crate::PROGRAMS;
use crate::oauth::ask_token;

/// Written by version 0.1.0: the owner kana, alice with a mask, an account, a login, a passkey, a client, a consent and a
/// grant, bob who is disabled, a token of each, a token with the label `robot`, a client that acts for itself, a project,
/// pins and audit records. The second file is the same store in PostgreSQL.
const STORE: &[u8] = include_bytes!("../../../../hikite-store/fixtures/store-0.1.0.db");
const POSTGRES: &str = include_str!("../../../../hikite-store/fixtures/store-0.1.0.postgres.sql");
const ALICE_S: &str = "hk_dvaulGi9Yjasa3HhAIx0zeanxZgw1aLogIdps7NRJtW";
const BOB_S: &str = "hk_WpysoLguxSmQrFEOiYQ4y8TPusvFCg4mOdXBjPqatlC";
const ROBOT_S: &str = "hk_L8iOddQFpLvAfrN50rlcrO8Qnxhqb1ST9L10NrDIfPb";
const COOKIE: &str = "hikite=8493b58be5aa7391bf5835a787ca16edb8da795ad6efe20e485f1fa87c69c5bb";
const EDITOR: &str = "hkc_6cc50ee4523f5f1a8302d730";
const REFRESH: &str = "hkr_Z3J0XzljYjBmNGM1Mjk4ZWExNzM2ODk2NTJlYSAy.H4ZK0oL8CFY_4HRsrsX4dA";
const OWN: &str = "hkc_cada5f85d602e4bacc97ae6f";
const OWN_SECRET: &str = "hks_d44cef6ebace5dcfc0a7391bda4f3ea9ab4b93aff0fbfc5cd66d358ee3e150f9";

#[tokio::test]
async fn a_store_of_the_first_version_goes_on_with_ids() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hikite.db");
    std::fs::write(&file, STORE).expect("written");
    upgraded(&format!("sqlite:{}", file.display())).await;
    let copy = std::fs::read(folder.path().join("hikite.db.v5")).expect("a copy beside it");
    assert!(copy.starts_with(b"SQLite format 3"));
}

#[tokio::test]
async fn a_postgres_store_of_the_first_version_goes_on_with_ids() {
    if postgres::is_excluded() {
        return;
    }
    let gateway = upgraded(&postgres::database_with(POSTGRES)).await;
    let copy = gateway.folder().path().join("data/postgres-store.db.v5");
    let copy = std::fs::read(copy).expect("a copy in the data folder");
    assert!(copy.starts_with(b"SQLite format 3"));
}

async fn upgraded(store: &str) -> TestGateway {
    let (_fixture, web) = crate::http_fixture().await;
    let config = json!({ "data": "data", "store": { "url": store },
        "mcpServers": { "web": web }, "modules": { "builtin": ["notion"] }, "server": { "listen": "127.0.0.1:0", "surface": "direct" } });
    let variables = [("HIKITE_VAULT_KEY", "42".repeat(32))];
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let gateway = TestGateway::start_by_file_with(&PROGRAMS, config, &variables).await;
    gateway.wait_for_stderr("the store was backed up to").await;

    // The login, the grant and the client's own grant go on.
    let page = gateway.send(HttpRequest::new("GET", "/ui/password").header("cookie", COOKIE)).await;
    assert_eq!(page.status, 200, "{}", page.text());
    let refresh = [("grant_type", "refresh_token"), ("client_id", EDITOR), ("refresh_token", REFRESH)];
    let pair = ask_token(&gateway, &refresh).await;
    assert_eq!(pair.status, 200, "{}", pair.text());
    let access = pair.value()["access_token"].as_str().expect("a token").to_owned();
    assert_eq!(status(&gateway, &access).await, 200);
    assert_eq!(accounts(&gateway, &access).await, ["of-alice"]);
    let own = [("grant_type", "client_credentials"), ("client_id", OWN), ("client_secret", OWN_SECRET)];
    assert_eq!(ask_token(&gateway, &own).await.status, 200);
    let consents = get(&gateway, "/v1/consents").await.value();
    assert_eq!(
        (&consents["consents"][0]["client"], &consents["consents"][0]["user"]),
        (&json!(EDITOR), &json!("alice")),
        "{consents}"
    );

    let users = get(&gateway, "/v1/users").await.value();
    let users = users["users"].as_array().expect("a list");
    let facts: Vec<(&str, &str, bool)> = users
        .iter()
        .map(|user| {
            assert!(user["id"].as_str().is_some_and(|id| id.starts_with("usr_")), "{user}");
            let text = |name: &str| user[name].as_str().expect("text");
            (text("name"), text("role"), user["disabled"] == true)
        })
        .collect();
    assert_eq!(facts, [("kana", "owner", false), ("alice", "member", false), ("bob", "member", true)]);
    logged_in(&gateway, "kana", PASSWORD).await;
    logged_in(&gateway, "alice", ALICE).await;
    assert_eq!(accounts(&gateway, ALICE_S).await, ["of-alice"]);
    assert_eq!(accounts(&gateway, ROBOT_S).await, ["of-robot"]);
    assert_eq!(accounts(&gateway, gateway.token()).await, ["of-owner"]);
    assert_eq!(status(&gateway, BOB_S).await, 401, "locked out means the token, too");
    let hidden = gateway.send(as_bearer(ALICE_S, "GET", "/v1/tools/web:mirror")).await;
    assert_eq!(hidden.status, 404, "the mask is in force");
    let inside = as_bearer(ALICE_S, "GET", "/v1/tools").header("hikite-project", "team");
    assert_eq!(gateway.send(inside).await.status, 200);
    assert_eq!(get(&gateway, "/v1/audit/verify").await.value()["intact"], true, "old records are as they were");

    // The old key of a renamed user is no valid label, and a new user of that name gets nothing of theirs.
    patch(&gateway, gateway.token(), "/v1/users/alice", json!({ "name": "alicia" })).await;
    let label = post(&gateway, "/v1/tokens", &json!({ "name": "t", "subject": "alice" })).await;
    assert_eq!(label.status, 400, "{}", label.text());
    user(&gateway, json!({ "name": "alice" })).await;
    let second = token_of(&gateway, "alice").await;
    assert_eq!(accounts(&gateway, &second).await, [""; 0]);
    assert_eq!(accounts(&gateway, ALICE_S).await, ["of-alice"]);
    assert_eq!(delete(&gateway, gateway.token(), "/v1/users/alicia").await.status, 204);
    assert_eq!(status(&gateway, ALICE_S).await, 401);
    assert_eq!((status(&gateway, &second).await, status(&gateway, ROBOT_S).await), (200, 200));
    gateway
}

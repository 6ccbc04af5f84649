//! A store written by version 0.1.0: every user is there with their data and gets an id.

use hikite_testkit::gateway::TestGateway;

use super::*;
use crate::PROGRAMS;

/// Written by version 0.1.0: the owner kana, alice with a mask and an account, bob who is disabled, a token of each, a
/// token with the label `robot`, and a project.
const STORE: &[u8] = include_bytes!("store-0.1.0.db");
const ALICE_S: &str = "hk_dvaulGi9Yjasa3HhAIx0zeanxZgw1aLogIdps7NRJtW";
const BOB_S: &str = "hk_WpysoLguxSmQrFEOiYQ4y8TPusvFCg4mOdXBjPqatlC";
const ROBOT_S: &str = "hk_L8iOddQFpLvAfrN50rlcrO8Qnxhqb1ST9L10NrDIfPb";

#[tokio::test]
async fn a_store_of_the_first_version_goes_on_with_ids() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("hikite.db");
    std::fs::write(&file, STORE).expect("written");
    let (_fixture, web) = crate::http_fixture().await;
    let config = json!({ "data": "data", "store": { "url": format!("sqlite:{}", file.display()) },
        "mcpServers": { "web": web }, "modules": { "builtin": ["notion"] }, "server": { "surface": "direct" } });
    let variables = [("HIKITE_VAULT_KEY", "42".repeat(32))];
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let gateway = TestGateway::start_by_file_with(&PROGRAMS, config, &variables).await;
    gateway.wait_for_stderr("the store was backed up to").await;
    let copy = std::fs::read(folder.path().join("hikite.db.v5")).expect("a copy beside it");
    assert!(copy.starts_with(b"SQLite format 3"));

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
}

//! A new password ends what the old one gave access to.

use super::*;
use crate::oauth::ask_token;

async fn refreshes(gateway: &TestGateway, client: &str, given: &Value) -> u16 {
    let refresh = given["refresh_token"].as_str().expect("a token");
    let fields = [("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", refresh)];
    ask_token(gateway, &fields).await.status
}

#[tokio::test]
async fn a_password_reset_ends_logins_and_grants() {
    let (_fixture, gateway, mut owner) = gateway_with_alice().await;
    let own = registered(&gateway).await;
    let page = owner.get(&gateway, "/ui/access").await;
    for number in 0..3 {
        let (before, after) = (format!("{ALICE}{number}"), format!("{ALICE}{}", number + 1));
        patch(&gateway, gateway.token(), "/v1/users/alice", json!({ "password": before })).await;
        let mut browser = logged_in(&gateway, "alice", &before).await;
        let given = tokens(&gateway, &mut browser, &own, "read call").await;
        let secret = token_of(&gateway, "alice").await;
        assert_eq!(status(&gateway, access(&given)).await, 200);
        match number {
            0 => {
                let reply = patch(&gateway, gateway.token(), "/v1/users/alice", json!({ "password": after })).await;
                assert_eq!(reply.status, 200, "{}", reply.text());
            }
            1 => {
                let fields = [("password", &*after)];
                let done = owner.post(&gateway, "/ui/access/users/alice/password", &page, &fields).await;
                done.leads_to("/ui/access");
            }
            _ => {
                let out = gateway.run(&["user", "password", "alice", "--remove-passkeys"]).await;
                assert_eq!(out.code, Some(0), "{}", out.stderr);
                until("another process did it", async || status(&gateway, access(&given)).await == 401).await;
            }
        }
        assert_eq!(status(&gateway, access(&given)).await, 401, "{number}: the access token is over");
        assert_eq!(refreshes(&gateway, &own, &given).await, 400, "{number}: the refresh token, too");
        browser.get(&gateway, "/ui").await.leads_to("/oauth/login");
        assert_eq!(status(&gateway, &secret).await, 200, "{number}: a personal token is no login");
    }
}

#[tokio::test]
async fn whoever_changes_their_own_password_stays_where_they_sit() {
    let (_fixture, gateway, _) = gateway_with_alice().await;
    let (mut here, mut there) = (logged_in(&gateway, "alice", ALICE).await, logged_in(&gateway, "alice", ALICE).await);
    let page = here.get(&gateway, "/ui/password").await;
    let wrong = [("current", "not the password"), ("password", "another long one")];
    assert_eq!(here.post(&gateway, "/ui/password", &page, &wrong).await.status(), 403);
    let right = [("current", ALICE), ("password", "another long one")];
    here.post(&gateway, "/ui/password", &page, &right).await.leads_to("/ui");
    assert_eq!(here.get(&gateway, "/ui/password").await.status(), 200);
    there.get(&gateway, "/ui").await.leads_to("/oauth/login");
    logged_in(&gateway, "alice", "another long one").await;
    let secret = token_of(&gateway, "alice").await;
    let form = json!({ "password": "yet another one" });
    let reply = gateway.send(as_bearer(&secret, "POST", "/v1/me/password").json(form.to_string())).await;
    refused(&reply, 403, "AUTHORIZATION_ERROR", "This needs a fresh login.");
    let form = json!({ "current": "another long one", "password": "yet another one" });
    let reply = gateway.send(as_bearer(&secret, "POST", "/v1/me/password").json(form.to_string())).await;
    assert_eq!(reply.status, 204, "{}", reply.text());
    here.get(&gateway, "/ui").await.leads_to("/oauth/login");
}

/// Attempts a login with this password; returns the browser, logged in or not.
async fn tried(gateway: &TestGateway, password: &str) -> TestBrowser {
    let mut browser = TestBrowser::default();
    let page = browser.get(gateway, "/oauth/login").await;
    let fields = [("name", "alice"), ("password", password)];
    let done = browser.post(gateway, "/oauth/login", &page, &fields).await;
    assert!(matches!(done.status(), 303 | 403), "{}", done.status());
    browser
}

#[tokio::test]
async fn no_login_by_the_old_password_outlives_a_reset_or_a_lock() {
    let (_fixture, gateway, _) = gateway_with_alice().await;
    let change = async |form: Value| {
        let reply = patch(&gateway, gateway.token(), "/v1/users/alice", form).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
    };
    for round in 0..4 {
        let old = format!("{ALICE}{round}");
        change(json!({ "password": old, "disabled": false })).await;
        let all = futures_util::future::join_all((0..12).map(|_| tried(&gateway, &old)));
        let is_locked = round % 2 == 1;
        let end = async {
            let form = if is_locked { json!({ "disabled": true }) } else { json!({ "password": ALICE }) };
            change(form).await;
        };
        let (browsers, ()) = futures_util::future::join(all, end).await;
        if is_locked {
            change(json!({ "disabled": false })).await;
        }
        for mut browser in browsers {
            browser.get(&gateway, "/ui").await.leads_to("/oauth/login");
        }
    }
}

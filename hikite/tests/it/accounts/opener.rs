//! Connect links work only for the person they name, whatever the way of authentication.

use std::process::Stdio;

use hikite_testkit::gateway::{HttpRequest, TestGateway};
use hikite_testkit::provider::MockProvider;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};

use super::{ConnectLink, body, go_on, link, path_of, to, visit, with};
use crate::PROGRAMS;
use crate::identity::{as_bearer, token};
use crate::oauth::{PASSWORD, TestBrowser, logged_in, set_up};

/// Creates a link for the bearer of this token and returns its path.
async fn link_for(gateway: &TestGateway, secret: &str) -> String {
    let form = json!({ "provider": "notion" }).to_string();
    let reply = gateway.send(as_bearer(secret, "POST", "/v1/accounts/connect").json(form)).await;
    let made = reply.value();
    assert_eq!(made.get("code"), None, "a code is for the terminal alone");
    path_of(made["url"].as_str().expect("an address"))
}

async fn accounts_of(gateway: &TestGateway, secret: &str) -> usize {
    let reply = gateway.send(as_bearer(secret, "GET", "/v1/accounts")).await.value();
    reply["accounts"].as_array().expect("a list").len()
}

#[tokio::test]
async fn nobody_is_sent_to_the_login_first_and_somebody_else_is_refused() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({})).await;
    let mut owner = set_up(&gateway).await;
    let form = json!({ "name": "alice", "password": PASSWORD }).to_string();
    assert_eq!(gateway.send(gateway.request("POST", "/v1/users").json(form)).await.status, 201);
    let hers = token(&gateway, json!({ "name": "hers", "subject": "alice" })).await;
    let path = link_for(&gateway, &hers.secret).await;

    // The attack: somebody who is not logged in would connect their own account for alice.
    for method in ["GET", "POST"] {
        let reply = visit(&gateway, method, &path, None).await;
        assert!(to(&reply).starts_with("/oauth/login?next=%2Fconnect%2Fnotion%3Flink%3D"), "{method} {}", to(&reply));
    }
    let proofs = [hers.secret.as_str(), gateway.token(), "", "AAAA-AAAA"];
    for proof in proofs {
        assert!(to(&go_on(&gateway, &path, proof).await).starts_with("/oauth/login"), "people log in here: {proof}");
    }
    let refused = owner.get(&gateway, &path).await;
    assert_eq!(refused.status, 404, "{}", refused.text);
    assert_eq!(owner.post(&gateway, &path, &refused, &[]).await.status, 404);
    assert_eq!(provider.requests(), 0);

    // She logs in and continues from there.
    let mut alice = TestBrowser::default();
    let sent = alice.get(&gateway, &path).await;
    let login = alice.get(&gateway, sent.header("location")).await;
    let done = alice.post(&gateway, "/oauth/login", &login, &[("name", "alice"), ("password", PASSWORD)]).await;
    done.leads_to(&path);
    let page = alice.get(&gateway, &path).await;
    assert!(
        page.status == 200 && page.text.contains("alice") && !page.text.contains("name=\"proof\""),
        "{}",
        page.text
    );
    let away = alice.post(&gateway, &path, &page, &[]).await;
    let (code, state) = provider.consent(away.header("location"));
    let back = format!("/connect/callback?code={code}&state={state}");
    // Another person's callback connects nothing, even from the same browser.
    let connect = alice.cookie("hikite_connect").expect("a cookie");
    owner.give("hikite_connect", &connect);
    assert_eq!(owner.get(&gateway, &back).await.status, 404);
    let connected = alice.get(&gateway, &back).await;
    assert_eq!(connected.status, 200, "{}", connected.text);
    assert_eq!((accounts_of(&gateway, &hers.secret).await, accounts_of(&gateway, gateway.token()).await), (1, 0));
}

#[tokio::test]
async fn the_code_of_the_terminal_stands_for_a_login() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({ "limits": { "failed_logins": 0 } })).await;
    let ConnectLink { path, code, .. } = link(&gateway, "default").await;
    let page = visit(&gateway, "GET", &path, None).await;
    let text = String::from_utf8_lossy(&page.body).into_owned();
    assert!(page.status == 200 && text.contains("name=\"proof\"") && text.contains("/oauth/login?next="), "{text}");
    assert!(!text.contains(&code));
    for wrong in ["", "AAAA-AAAA", gateway.token()] {
        assert_eq!(go_on(&gateway, &path, wrong).await.status, 403, "{wrong}");
    }
    let plain = code.replace('-', "").to_lowercase();
    assert!(to(&go_on(&gateway, &path, &plain).await).starts_with(&provider.url("/authorize")));

    // A few wrong codes use a link up.
    let ConnectLink { path, code, .. } = link(&gateway, "default").await;
    for _ in 0..4 {
        assert_eq!(go_on(&gateway, &path, "AAAA-AAAA").await.status, 403);
    }
    assert_eq!(go_on(&gateway, &path, "AAAA-AAAA").await.status, 404);
    assert_eq!(go_on(&gateway, &path, &code).await.status, 404);

    // A program that acts for somebody gets no code, whatever its scopes.
    let admin = token(&gateway, json!({ "name": "a", "scopes": ["read", "call", "admin"] })).await;
    let form = json!({ "provider": "notion", "terminal": true }).to_string();
    let refused = gateway.send(as_bearer(&admin.secret, "POST", "/v1/accounts/connect").json(form)).await;
    assert_eq!((refused.status, &body(&refused)["code"]), (403, &json!("AUTHORIZATION_ERROR")), "{}", refused.text());

    // Another logged-in person is rejected, with or without a code.
    set_up(&gateway).await;
    let form = json!({ "name": "alice", "password": PASSWORD }).to_string();
    gateway.send(gateway.request("POST", "/v1/users").json(form)).await;
    let mut alice = logged_in(&gateway, "alice", PASSWORD).await;
    let ConnectLink { path, code, .. } = link(&gateway, "default").await;
    let page = alice.get(&gateway, &path).await;
    assert_eq!(page.status, 404);
    assert_eq!(alice.post(&gateway, &path, &page, &[("proof", &code)]).await.status, 404);
}

#[tokio::test]
async fn the_terminal_prints_the_link_and_its_code() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({})).await;
    let mut command = tokio::process::Command::from(PROGRAMS.hikite(gateway.folder().path()));
    let address = gateway.address().to_string();
    command.args(["account", "connect", "notion", "--no-browser", "--json", "--listen", &address]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut child = command.spawn().expect("hikite");
    let mut lines = BufReader::new(child.stderr.take().expect("a pipe")).lines();
    let (mut url, mut code) = (String::new(), String::new());
    while code.is_empty() {
        let line = lines.next_line().await.expect("text").expect("it says more");
        if line.contains("/connect/notion?link=") {
            url = line.trim().to_owned();
        } else if let Some((_, shown)) = line.split_once("logged in there: ") {
            code = shown.trim().to_owned();
        }
    }
    let away = go_on(&gateway, &path_of(&url), &code).await;
    let (code, state) = provider.consent(&to(&away));
    let back = format!("/connect/callback?code={code}&state={state}");
    let done = visit(&gateway, "GET", &back, Some(&super::cookie_of(&away))).await;
    assert_eq!(done.status, 200, "{}", done.text());
    let ended = child.wait_with_output().await.expect("an end");
    let told: Value = serde_json::from_slice(&ended.stdout).expect("JSON");
    assert_eq!((ended.status.code(), &told["state"]), (Some(0), &json!("connected")));
}

#[tokio::test]
async fn where_nobody_can_log_in_a_token_of_the_person_is_asked_for() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({ "auth": { "mode": "token" }, "limits": { "failed_logins": 0 } })).await;
    let hers = token(&gateway, json!({ "name": "hers", "subject": "alice" })).await;
    let reads = token(&gateway, json!({ "name": "r", "subject": "alice", "scopes": ["read"] })).await;
    let away = provider.url("/authorize");
    for (owner, wrong) in [(gateway.token(), &hers.secret[..]), (&hers.secret, gateway.token())] {
        let path = link_for(&gateway, owner).await;
        let page = visit(&gateway, "GET", &path, None).await;
        let text = page.text().to_owned();
        assert!(page.status == 200 && text.contains("name=\"proof\"") && !text.contains("/oauth/"), "{text}");
        for wrong in ["", "hk_wrong", wrong, &reads.secret] {
            assert_eq!(go_on(&gateway, &path, wrong).await.status, 403, "{wrong}");
        }
        assert_eq!(visit(&gateway, "POST", &path, None).await.status, 403, "nothing at all");
        assert!(to(&go_on(&gateway, &path, owner).await).starts_with(&away));
    }
    let ConnectLink { path, code, .. } = link(&gateway, "default").await;
    assert!(to(&go_on(&gateway, &path, &code).await).starts_with(&away), "the terminal's code does as well");
}

#[tokio::test]
async fn where_everybody_is_the_owner_a_link_for_somebody_else_needs_their_token() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({ "auth": { "mode": "none" } })).await;
    let form = json!({ "provider": "notion" }).to_string();
    let reply = gateway.send(HttpRequest::new("POST", "/v1/accounts/connect").json(form)).await;
    let path = path_of(reply.value()["url"].as_str().expect("an address"));
    assert!(to(&visit(&gateway, "POST", &path, None).await).starts_with(&provider.url("/authorize")));
    let made = json!({ "name": "hers", "subject": "alice" }).to_string();
    let hers = gateway.send(HttpRequest::new("POST", "/v1/tokens").json(made)).await.value();
    let hers = hers["secret"].as_str().expect("a secret");
    let path = link_for(&gateway, hers).await;
    assert_eq!(visit(&gateway, "POST", &path, None).await.status, 403);
    assert!(to(&go_on(&gateway, &path, hers).await).starts_with(&provider.url("/authorize")));
}

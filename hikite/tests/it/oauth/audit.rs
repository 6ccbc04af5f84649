//! Audit of logins, attempts, grants and revocations: each leaves one record, and no record contains a secret.

use std::time::Instant;

use hikite_testkit::gateway::LIMIT;

use super::issuer::{ExternalIssuer, come_back};
use super::*;

/// A password typed into the wrong field.
const TYPED: &str = "my-password-in-the-wrong-field";

/// Waits for this many records of an action and returns them.
async fn records(gateway: &TestGateway, action: &str, count: usize) -> Vec<Value> {
    let begin = Instant::now();
    loop {
        let all = crate::audit::records(gateway, "kind=identity").await;
        let mut found: Vec<Value> = all.into_iter().filter(|record| record["method"] == action).collect();
        if found.len() >= count || begin.elapsed() > LIMIT {
            found.sort_by_key(|record| record["seq"].as_u64());
            assert_eq!(found.len(), count, "{action}: {found:#?}");
            return found;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
}

#[track_caller]
fn is(record: &Value, subject: &str, outcome: &str, what: &str) {
    let text = |name: &str| record[name].as_str().unwrap_or_default();
    assert_eq!((text("subject"), text("outcome"), text("what")), (subject, outcome, what), "{record:#}");
    let decision = if outcome == "ok" { "allowed" } else { "refused" };
    assert_eq!(text("decision"), decision, "{record:#}");
    assert!(!text("requestId").is_empty(), "{record:#}");
}

#[tokio::test]
async fn logins_and_log_outs_are_recorded_and_nothing_that_was_typed() {
    let (gateway, mut owner) = owned_gateway().await;
    is(&records(&gateway, "owner.create", 1).await[0], "owner", "ok", "kana");
    let mut browser = TestBrowser::default();
    let page = browser.get(&gateway, "/oauth/login").await;
    for (name, password) in [("kana", "a wrong password"), (TYPED, "x"), ("kana", PASSWORD)] {
        let fields = [("name", name), ("password", password)];
        browser.post(&gateway, "/oauth/login", &page, &fields).await;
    }
    let logins = records(&gateway, "login.password", 3).await;
    is(&logins[0], "owner", "AUTHENTICATION_ERROR", "");
    is(&logins[1], "", "AUTHENTICATION_ERROR", "");
    is(&logins[2], "owner", "ok", "");
    let page = owner.get(&gateway, "/oauth/logout").await;
    let gone = owner.post(&gateway, "/oauth/logout", &page, &[]).await;
    assert_eq!(gone.status, 200);
    is(&records(&gateway, "logout", 1).await[0], "owner", "ok", "");
    let all = gateway.run(&["audit", "export"]).await.stdout;
    assert!(all.contains("login.password") && !all.contains(PASSWORD) && !all.contains(TYPED), "{all}");
    assert!(!gateway.stderr().contains(TYPED) && !gateway.stderr().contains(PASSWORD));
    let listed = gateway.run(&["audit", "list"]).await.stdout;
    assert!(listed.contains("login.password") && listed.contains("owner.create kana"), "{listed}");
}

#[tokio::test]
async fn a_passkey_that_is_made_used_or_wrong_is_recorded() {
    let (gateway, mut owner) = owned_gateway().await;
    let mut authenticator = passkey::registered(&gateway, &mut owner).await;
    let made = records(&gateway, "passkey.register", 2).await;
    is(&made[0], "owner", "ok", "");
    is(&made[1], "owner", "AUTHENTICATION_ERROR", "");
    let mut browser = TestBrowser::default();
    for is_right in [false, true] {
        let page = browser.get(&gateway, "/oauth/login").await;
        let token = passkey::token(&page);
        let path = "/oauth/passkey/login/options";
        let options = passkey::post(&mut browser, &gateway, path, json!({ "token": token })).await;
        let mut answer = authenticator.get(&options.value());
        if !is_right {
            answer["response"]["signature"] = json!("AAAA");
        }
        let body = json!({ "token": token, "answer": answer });
        passkey::post(&mut browser, &gateway, "/oauth/passkey/login", body).await;
    }
    let logins = records(&gateway, "login.passkey", 2).await;
    assert_eq!((&logins[0]["decision"], &logins[0]["subject"]), (&json!("refused"), &Value::Null));
    is(&logins[1], "owner", "ok", "");
}

#[tokio::test]
async fn a_login_with_another_issuer_is_recorded_with_its_name() {
    let issuer = ExternalIssuer::start().await;
    let (gateway, _) = owned_gateway_with(issuer.login(&json!({}))).await;
    let mut browser = TestBrowser::default();
    come_back(&gateway, &issuer, (&mut browser, None), json!({ "nonce": "another" })).await;
    come_back(&gateway, &issuer, (&mut browser, None), json!({})).await.leads_to("/connect/x");
    let logins = records(&gateway, "login.federated", 2).await;
    is(&logins[0], "", "AUTHENTICATION_ERROR", "other");
    let subject = logins[1]["subject"].as_str().expect("a subject").to_owned();
    assert!(subject.ends_with("#7"), "{subject}");
    is(&logins[1], &subject, "ok", "other");
}

#[tokio::test]
async fn what_a_client_is_given_and_loses_is_recorded() {
    let (gateway, mut browser) = owned_gateway().await;
    let client = registered(&gateway).await;
    is(&records(&gateway, "client.register", 1).await[0], "", "ok", &client);
    let page = browser.get(&gateway, &authorize(&gateway, &client, &[])).await;
    browser.post(&gateway, "/oauth/consent", &page, &[("decision", "deny")]).await;
    is(&records(&gateway, "consent.deny", 1).await[0], "owner", "ok", &client);
    let text = code(&gateway, &mut browser, &client, &[]).await;
    is(&records(&gateway, "consent.allow", 1).await[0], "owner", "ok", &client);
    let first = ask_token(&gateway, &exchange(&client, &text)).await.value();
    ask_token(&gateway, &exchange(&client, &text)).await;
    let replay = records(&gateway, "code.replay", 1).await.remove(0);
    is(&replay, "owner", "AUTHENTICATION_ERROR", &client);
    assert!(replay["token"].as_str().is_some_and(|grant| grant.starts_with("grt_")), "{replay:#}");

    let second = tokens(&gateway, &mut browser, &client, "read").await;
    let mut token = second["refresh_token"].as_str().expect("a token").to_owned();
    let oldest = token.clone();
    let refresh = async |token: &str| {
        let fields = [("grant_type", "refresh_token"), ("client_id", &client), ("refresh_token", token)];
        ask_token(&gateway, &fields).await.value()
    };
    for _ in 0..2 {
        token = refresh(&token).await["refresh_token"].as_str().expect("a token").to_owned();
    }
    assert_eq!(refresh(&oldest).await["error"], "invalid_grant");
    is(&records(&gateway, "refresh.replay", 1).await[0], "owner", "AUTHENTICATION_ERROR", &client);

    let third = tokens(&gateway, &mut browser, &client, "read").await;
    let given_back = form(&[("client_id", &client), ("token", access(&third))]);
    gateway.send(HttpRequest::new("POST", "/oauth/revoke").form(given_back)).await;
    is(&records(&gateway, "grant.revoke", 1).await[0], "owner", "ok", &client);
    let all = gateway.run(&["audit", "export"]).await.stdout;
    for secret in [&text, access(&first), access(&second), access(&third), &oldest, &token] {
        assert!(!all.contains(secret), "{all}");
    }
}

#[tokio::test]
async fn a_new_key_signs_and_a_lost_one_is_believed_no_more() {
    let (gateway, mut browser) = owned_gateway_with(json!({ "limits": { "failed_logins": 0 } })).await;
    let client = registered(&gateway).await;
    let old = tokens(&gateway, &mut browser, &client, "read").await;
    let rotated = gateway.run(&["vault", "rotate-signing-key", "--json"]).await;
    assert_eq!(rotated.code, Some(0), "{}", rotated.stderr);
    assert_eq!(me(&gateway, access(&old)).await.status, 200, "the old key signed it");
    let lost = gateway.run(&["vault", "rotate-signing-key", "--lost", "--json"]).await;
    let kid = serde_json::from_str::<Value>(&lost.stdout).expect("JSON")["key"].clone();
    let begin = Instant::now();
    while me(&gateway, access(&old)).await.status != 401 {
        assert!(begin.elapsed() < LIMIT * 3, "the running process never learnt of it");
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    let keys = gateway.send(HttpRequest::new("GET", "/oauth/jwks")).await.value();
    assert_eq!((keys["keys"].as_array().map(Vec::len), &keys["keys"][0]["kid"]), (Some(1), &kid));
    let fresh = tokens(&gateway, &mut browser, &client, "read").await;
    assert_eq!(me(&gateway, access(&fresh)).await.status, 200);
    let admin = crate::audit::records(&gateway, "kind=admin").await;
    assert_eq!(admin.iter().filter(|record| record["method"] == "signing-key.rotate").count(), 2);
}

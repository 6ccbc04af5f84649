//! `hikite provider` and `hikite call --account`: the OAuth client to use, and the account of a call.

use hikite_testkit::gateway::TestGateway;
use hikite_testkit::provider::{CLIENT_ID, CLIENT_SECRET, MockProvider};
use serde_json::{Value, json};

use super::{body, connect, post, with};
use crate::vault::run;

/// Starts a hikite that knows the provider's endpoints but has no OAuth client.
async fn no_app(provider: &MockProvider) -> TestGateway {
    let oauth =
        json!({ "authorize_url": provider.url("/authorize"), "token_url": provider.url("/token"), "pkce": true });
    with(provider, json!({ "providers": { "notion": { "api": provider.url(""), "oauth": oauth } } })).await
}

async fn of_notion(gateway: &TestGateway) -> Value {
    let listed = gateway.run(&["provider", "list", "--json"]).await;
    assert_eq!(listed.code, Some(0), "{}", listed.stderr);
    let all: Value = serde_json::from_str(&listed.stdout).expect("JSON");
    all.as_array().expect("a list").iter().find(|one| one["name"] == "notion").expect("Notion").clone()
}

#[tokio::test]
async fn an_app_is_told_from_a_terminal_and_its_secret_never_comes_out() {
    let provider = MockProvider::start().await;
    let gateway = no_app(&provider).await;
    assert_eq!(of_notion(&gateway).await["connectable"], false);
    let form = json!({ "provider": "notion" });
    let refused = body(&post(&gateway, "/v1/accounts/connect", &form).await);
    assert!(refused["hint"].to_string().contains("hikite provider set notion"), "{refused}");
    let set = ["provider", "set", "notion", "--client-id", CLIENT_ID, "--client-secret-stdin"];
    let (code, told) = run(&gateway, &set, &format!("{CLIENT_SECRET}\n")).await;
    assert!(code == 0 && told.contains("hikite account connect notion") && !told.contains(CLIENT_SECRET), "{told}");
    let listed = of_notion(&gateway).await;
    assert_eq!((&listed["clientId"], &listed["managedByFile"]), (&json!(CLIENT_ID), &json!(false)));
    let shown = gateway.run(&["provider", "list"]).await.stdout;
    assert!(shown.contains("from store") && !shown.contains(CLIENT_SECRET), "{shown}");
    // The running process picks it up by itself.
    let mut link = Value::Null;
    for _ in 0..100 {
        link = body(&post(&gateway, "/v1/accounts/connect", &form).await);
        if link["url"].is_string() {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert!(link["url"].is_string(), "{link}");
    connect(&gateway, &provider, "default").await;
    let gone = gateway.run(&["provider", "remove", "notion"]).await;
    assert_eq!(gone.code, Some(0), "{}", gone.stderr);
    assert_eq!(of_notion(&gateway).await["connectable"], false);
    let again = gateway.run(&["provider", "remove", "notion"]).await;
    assert!(again.code == Some(1) && again.stderr.contains("No app is stored"), "{}", again.stderr);
    let (code, told) = run(&gateway, &["provider", "set", "nobody", "--client-id", "x"], "").await;
    assert!(code == 1 && told.contains("There is no provider `nobody`."), "{told}");
    let records = gateway.run(&["audit", "export"]).await.stdout;
    assert!(records.contains("provider.set") && records.contains("provider.remove"), "{records}");
    assert!(!records.contains(CLIENT_SECRET) && !gateway.stderr().contains(CLIENT_SECRET));
}

#[tokio::test]
async fn a_call_from_a_terminal_says_with_which_account() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({})).await;
    connect(&gateway, &provider, "work").await;
    connect(&gateway, &provider, "home").await;
    for (account, family) in [(None, 0), (Some("work"), 0), (Some("home"), 1)] {
        let mut arguments = vec!["call", "notion:search", "--param", "query=x", "--format", "raw"];
        arguments.extend(account.iter().flat_map(|account| ["--account", account]));
        let called = gateway.run(&arguments).await;
        assert_eq!(called.code, Some(0), "{}{}", called.stdout, called.stderr);
        let answer: Value = serde_json::from_str(&called.stdout).expect("JSON");
        assert_eq!(answer["family"], family, "{account:?}: {answer}");
    }
    let wrong = gateway.run(&["call", "notion:search", "--param", "query=x", "--account", "club"]).await;
    assert!(wrong.code == Some(1) && wrong.stderr.contains("club"), "{}", wrong.stderr);
}

#[tokio::test]
async fn the_doctor_opens_the_vault_and_names_accounts_that_wait() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({})).await;
    connect(&gateway, &provider, "work").await;
    let well = gateway.run(&["doctor", "--wait", "120"]).await;
    assert!(well.code == Some(0) && well.stdout.contains("ok      vault: the key is in"), "{}", well.stdout);
    assert!(!well.stdout.contains("must be connected again"), "{}", well.stdout);
    provider.revoke_grants();
    provider.revoke_access();
    let call = json!({ "name": "notion:search", "parameters": { "query": "x" } });
    assert_eq!(body(&post(&gateway, "/v1/tools/call", &call).await)["code"], "ACCOUNT_REQUIRED");
    let lost = gateway.run(&["doctor", "--wait", "120"]).await;
    assert!(lost.stdout.contains("warning account work with notion: must be connected again"), "{}", lost.stdout);
    assert!(lost.stdout.contains("Run `hikite account connect notion --name work`."), "{}", lost.stdout);
    let key = gateway.folder().path().join("data/vault.key");
    let right = std::fs::read_to_string(&key).expect("a key");
    std::fs::write(&key, "0".repeat(64)).expect("written");
    let closed = gateway.run(&["doctor", "--wait", "120"]).await;
    assert!(closed.code == Some(1) && closed.stdout.contains("error   vault: "), "{}", closed.stdout);
    assert!(closed.stdout.contains("its previous key"), "{}", closed.stdout);
    std::fs::remove_file(&key).expect("removed");
    let gone = gateway.run(&["doctor", "--wait", "120"]).await;
    assert!(gone.code == Some(1) && gone.stdout.contains("does not exist"), "{}", gone.stdout);
    assert!(!key.exists(), "no key is made in place of one that is missing");
    std::fs::write(&key, right).expect("written");
}

//! A failure of one account affects that account only: a vendor's rate limit, a failing token endpoint, a revoked
//! grant.

use hikite_testkit::gateway::TestGateway;
use hikite_testkit::provider::MockProvider;
use serde_json::{Value, json};

use super::{body, connect, family, post, search, with};
use crate::error_of;

fn rest(account: &str) -> Value {
    let options = json!({ "account": account });
    json!({ "name": "notion:search", "parameters": { "query": "x" }, "options": options })
}

async fn over_rest(gateway: &TestGateway, account: &str) -> Value {
    body(&post(gateway, "/v1/tools/call", &rest(account)).await)
}

#[tokio::test]
async fn a_vendor_that_limits_one_account_serves_the_other() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({})).await;
    connect(&gateway, &provider, "work").await;
    connect(&gateway, &provider, "home").await;
    provider.limit(0, 60);
    let client = gateway.client("").await;
    let limited = error_of(&client.call("call", search(Some("work"))).await);
    assert_eq!(limited["code"], "RATE_LIMIT_EXCEEDED", "{limited}");
    for _ in 0..3 {
        assert_eq!(family(&client.call("call", search(Some("home"))).await), 1);
        let told = over_rest(&gateway, "home").await;
        assert_eq!(told["success"], true, "{told}");
    }
    // The rate-limited account sends nothing more to the vendor.
    let calls = provider.calls(0);
    let limited = error_of(&client.call("call", search(Some("work"))).await);
    assert_eq!(limited["code"], "RATE_LIMIT_EXCEEDED", "{limited}");
    assert_eq!(over_rest(&gateway, "work").await["code"], "RATE_LIMIT_EXCEEDED");
    assert_eq!(provider.calls(0), calls);
}

#[tokio::test]
async fn a_token_endpoint_that_fails_for_one_account_stops_that_account() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({ "limits": { "breaker_failures": 2 } })).await;
    provider.life(0);
    connect(&gateway, &provider, "work").await;
    provider.life(3600);
    connect(&gateway, &provider, "home").await;
    provider.fail_tokens_of(0);
    for _ in 0..2 {
        let failed = over_rest(&gateway, "work").await;
        assert_eq!(failed["code"], "UPSTREAM_UNAVAILABLE", "{failed}");
    }
    let asked = provider.requests();
    let paused = over_rest(&gateway, "work").await;
    assert!(paused["error"].to_string().contains("because of repeated failures with this account"), "{paused}");
    assert_eq!(provider.requests(), asked, "nobody is asked meanwhile");
    let client = gateway.client("").await;
    assert_eq!(family(&client.call("call", search(Some("home"))).await), 1);
    assert_eq!(over_rest(&gateway, "home").await["success"], true);
    let module = gateway.send(gateway.request("GET", "/v1/modules/notion")).await.value();
    assert_eq!(module["breaker"], "open", "{module}");
    assert_eq!(module["accounts"], json!([{ "account": "notion/work", "breaker": "open" }]), "{module}");
}

#[tokio::test]
async fn a_short_failure_of_the_token_endpoint_is_not_noticed() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({})).await;
    provider.life(0);
    connect(&gateway, &provider, "work").await;
    provider.life(3600);
    let asked = provider.requests();
    provider.fail_tokens(2);
    let told = over_rest(&gateway, "work").await;
    assert_eq!(told["success"], true, "{told}");
    assert_eq!(provider.requests() - asked, 3);
}

#[tokio::test]
async fn a_refresh_token_that_was_refused_is_not_shown_again_until_somebody_connects() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({})).await;
    provider.life(0);
    connect(&gateway, &provider, "work").await;
    provider.life(3600);
    provider.revoke_grants();
    for _ in 0..3 {
        let lost = over_rest(&gateway, "work").await;
        assert_eq!(lost["code"], "ACCOUNT_REQUIRED", "{lost}");
        assert!(lost["hint"].to_string().contains("/connect/notion?link="), "{lost}");
    }
    assert_eq!(provider.refused(), 1);
    connect(&gateway, &provider, "work").await;
    let told = over_rest(&gateway, "work").await;
    assert_eq!(told["success"], true, "{told}");
}

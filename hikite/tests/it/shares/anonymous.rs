//! Anonymous client registration: limits on the number of unused clients, on the rate, and on the size.

use hikite_testkit::gateway::{HttpReply, HttpRequest, TestGateway};
use serde_json::{Value, json};

use crate::configured;
use crate::oauth::{REDIRECT, setup_path};
use crate::rest::get;

async fn limited_gateway(limits: Value) -> TestGateway {
    let gateway = configured(json!({ "limits": limits })).await;
    setup_path(&gateway).await;
    gateway
}

async fn register(gateway: &TestGateway, redirect: &str) -> HttpReply {
    let metadata =
        json!({ "client_name": "a test", "redirect_uris": [redirect], "token_endpoint_auth_method": "none" });
    gateway.send(HttpRequest::new("POST", "/oauth/register").json(metadata.to_string())).await
}

#[tokio::test]
async fn registrations_that_nobody_uses_give_way_and_have_a_rate() {
    let gateway = limited_gateway(json!({ "unused_clients": 8 })).await;
    let mut ids = Vec::new();
    for number in 0..30 {
        let reply = register(&gateway, REDIRECT).await;
        assert_eq!(reply.status, 201, "{number}: {}", reply.text());
        ids.push(reply.value()["client_id"].as_str().expect("an id").to_owned());
    }
    let listed = get(&gateway, "/v1/clients").await.value();
    let listed = listed["clients"].as_array().expect("clients").clone();
    assert_eq!(listed.len(), 4, "{listed:?}");
    assert_eq!(listed.last().map(|client| &client["id"]), Some(&json!(ids[29])), "the newest are there");
    let refused = register(&gateway, REDIRECT).await;
    assert_eq!(refused.status, 429, "{}", refused.text());
    assert!(refused.headers.contains_key("retry-after"));
    let told = get(&gateway, "/metrics").await.text().to_owned();
    for line in [
        "hikite_share_held{resource=\"unused_clients\",caller=\"127.0.0.1\"} 4",
        "hikite_share_evicted_total{resource=\"unused_clients\",caller=\"127.0.0.1\"} 26",
        "hikite_share_refused_total{resource=\"unused_clients\",caller=\"127.0.0.1\"} 1",
    ] {
        assert!(told.lines().any(|told| told == line), "{line}");
    }
}

#[tokio::test]
async fn a_registration_is_small() {
    let gateway = limited_gateway(json!({})).await;
    let long = format!("http://127.0.0.1:1/{}", "x".repeat(1900));
    let metadata = |uris: Vec<String>| json!({ "redirect_uris": uris, "token_endpoint_auth_method": "none" });
    for uris in [vec![long.clone(); 5], vec![long.clone(); 20]] {
        let body = metadata(uris).to_string();
        let reply = gateway.send(HttpRequest::new("POST", "/oauth/register").json(body)).await;
        assert_eq!(reply.status, 400, "{}", reply.text());
    }
    let reply = gateway.send(HttpRequest::new("POST", "/oauth/register").json(metadata(vec![long]).to_string())).await;
    assert_eq!(reply.status, 201, "{}", reply.text());
}

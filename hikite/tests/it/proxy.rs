//! Reverse proxies: forwarded headers count only from proxies named in the config. No header of a client changes its
//! address.

use hikite_testkit::gateway::{HttpReply, HttpRequest, TestGateway};
use serde_json::json;

use crate::configured;

async fn wrong(gateway: &TestGateway, from: &str) -> u16 {
    let request = HttpRequest::new("GET", "/v1/me")
        .header("authorization", "Bearer a-wrong-token-of-somebody")
        .header("x-forwarded-for", from);
    gateway.send(request).await.status
}

async fn use_up(gateway: &TestGateway, from: &str) {
    for _ in 0..3 {
        assert_eq!(wrong(gateway, from).await, 401);
    }
    assert_eq!(wrong(gateway, from).await, 429, "{from} has tried too often");
}

#[tokio::test]
async fn a_client_cannot_say_that_it_is_somebody_else() {
    let gateway = configured(json!({ "limits": { "failed_logins": 3 } })).await;
    use_up(&gateway, "192.0.2.1").await;
    assert_eq!(wrong(&gateway, "192.0.2.2").await, 429, "another name is not another client");
}

#[tokio::test]
async fn a_trusted_proxy_says_who_it_speaks_for() {
    let server = json!({ "trusted_proxies": ["127.0.0.1", "10.0.0.0/8"] });
    let gateway = configured(json!({ "server": server, "limits": { "failed_logins": 3 } })).await;
    use_up(&gateway, "192.0.2.1").await;
    assert_eq!(wrong(&gateway, "198.51.100.9, 192.0.2.1, 10.1.2.3").await, 429, "what it wrote before is its own");
    assert_eq!(wrong(&gateway, "192.0.2.2").await, 401, "somebody else may still try");
}

#[tokio::test]
async fn a_proxy_that_is_not_named_is_a_client_like_any() {
    let server = json!({ "trusted_proxies": ["10.0.0.0/8"] });
    let gateway = configured(json!({ "server": server, "limits": { "failed_logins": 3 } })).await;
    use_up(&gateway, "192.0.2.1").await;
    assert_eq!(wrong(&gateway, "192.0.2.2").await, 429);
}

#[tokio::test]
async fn the_host_that_a_proxy_was_asked_for_must_be_ours_and_makes_its_pages_ours() {
    let through = async |gateway: &TestGateway, host: &str, origin: &str| -> HttpReply {
        let request = HttpRequest::new("GET", "/health").header("x-forwarded-host", host).header("origin", origin);
        gateway.send(request).await
    };
    let server = json!({ "trusted_proxies": ["127.0.0.1"], "allowed_hosts": ["mcp.example"] });
    let gateway = configured(json!({ "server": server })).await;
    assert_eq!(through(&gateway, "mcp.example", "https://mcp.example").await.status, 200);
    assert_eq!(through(&gateway, "evil.example", "https://mcp.example").await.status, 403);
    assert_eq!(through(&gateway, "mcp.example", "https://evil.example").await.status, 403);
    let direct = configured(json!({})).await;
    assert_eq!(through(&direct, "evil.example", "http://localhost").await.status, 200, "nobody reads it");
    assert_eq!(through(&direct, "evil.example", "https://evil.example").await.status, 403);
}

#[tokio::test]
async fn no_header_makes_a_caller() {
    let server = json!({ "trusted_proxies": ["127.0.0.1"] });
    let gateway = configured(json!({ "server": server })).await;
    for name in [
        "hikite-subject",
        "hikite-caller",
        "hikite-admin",
        "hikite-node",
        "x-hikite-subject",
        "x-hikite-user",
        "x-hikite-scopes",
        "x-forwarded-user",
        "x-forwarded-email",
        "x-remote-user",
        "remote-user",
        "x-user",
        "x-authenticated-user",
        "x-auth-request-user",
        "x-webauth-user",
        "x-real-ip",
        "x-original-url",
        "x-rewrite-url",
        "x-forwarded-access-token",
    ] {
        for value in ["owner", "admin", "127.0.0.1", "/health", gateway.token()] {
            let request = HttpRequest::new("GET", "/v1/me").header(name, value);
            assert_eq!(gateway.send(request).await.status, 401, "{name}: {value}");
        }
    }
}

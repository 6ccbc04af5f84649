//! A public URL without TLS, as in a container whose port is published on this machine: accepted for loopback names only,
//! and then no other Host is served, whatever the listen address.

use hikite_testkit::gateway::{HttpRequest, TestGateway};
use serde_json::{Value, json};

use crate::PROGRAMS;

/// Listens on all addresses, as in a container, with the server settings.
async fn started(server: Value) -> TestGateway {
    let mut config = json!({ "data": "data", "server": server });
    config["server"]["listen"] = "0.0.0.0:0".into();
    TestGateway::start_by_file(&PROGRAMS, config).await
}

async fn status(gateway: &TestGateway, host: &str, token: &str) -> u16 {
    let bearer = format!("Bearer {token}");
    gateway.send(HttpRequest::new("GET", "/v1/me").header("host", host).header("authorization", &bearer)).await.status
}

#[tokio::test]
async fn only_loopback_names_are_served_without_tls() {
    for url in ["http://localhost:7300", "http://127.0.0.1:7300", "http://[::1]:7300"] {
        let gateway = started(json!({ "public_url": url })).await;
        for host in ["localhost:7300", "127.0.0.1", "[::1]:8080"] {
            assert_eq!(status(&gateway, host, gateway.token()).await, 200, "{url} {host}");
            assert_eq!(status(&gateway, host, "a-wrong-token-of-somebody").await, 401, "{url} {host}");
        }
        for host in ["192.0.2.1:7300", "0.0.0.0:7300", "hikite:7300", "localhost.evil.example"] {
            assert_eq!(status(&gateway, host, gateway.token()).await, 403, "{url} {host}");
        }
    }
    // The address of a TLS proxy makes every address of this machine a good name.
    let gateway = started(json!({ "public_url": "https://hikite.example" })).await;
    assert_eq!(status(&gateway, "192.0.2.1:7300", gateway.token()).await, 200);
}

#[tokio::test]
async fn clients_log_in_under_the_loopback_name_that_they_use() {
    let gateway = started(json!({ "public_url": "http://localhost:8080" })).await;
    let metadata = async |host: &str| {
        let request = HttpRequest::new("GET", "/.well-known/oauth-authorization-server").header("host", host);
        gateway.send(request).await.value()["issuer"].clone()
    };
    assert_eq!(metadata("localhost:8080").await, "http://localhost:8080");
    assert_eq!(metadata("127.0.0.1:8080").await, "http://127.0.0.1:8080");
    let document = gateway.send(HttpRequest::new("GET", "/oauth/client.json").header("host", "localhost")).await;
    assert_eq!(document.status, 404, "a client metadata document needs https");
}

#[tokio::test]
async fn what_contradicts_a_public_url_without_tls_is_refused() {
    let refused = async |config: Value, expected: &str| {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("hikite.json"), config.to_string()).expect("a file");
        let run = PROGRAMS.run(folder.path(), &["config", "check"]).await;
        assert!(run.code == Some(2) && run.stderr.contains(expected), "{config}: {}", run.stderr);
    };
    for url in ["http://hikite.example", "http://localhost.example", "http://192.0.2.1:7300", "http://0.0.0.0:7300"] {
        refused(json!({ "server": { "public_url": url } }), "is not https").await;
    }
    let local = "http://localhost:7300";
    for (key, value) in [("allowed_hosts", json!(["hikite"])), ("node_url", json!("http://10.0.0.5:7300"))] {
        let mut server = json!({ "public_url": local, "listen": "0.0.0.0:7300" });
        server[key] = value;
        refused(json!({ "server": server }), &format!("`server.{key}` is for others")).await;
    }
    let open = json!({ "public_url": local, "listen": "0.0.0.0:7300" });
    refused(json!({ "server": open, "auth": { "mode": "none" } }), "is reachable from other machines").await;
}

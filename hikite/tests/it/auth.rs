//! Authentication on every route: Host and Origin first, then the token, then the method.

use hikite_testkit::gateway::HttpRequest;
use serde_json::json;

use crate::{configured, gateway};

const METHODS: [&str; 7] = ["GET", "POST", "DELETE", "PUT", "PATCH", "OPTIONS", "HEAD"];
const PROTECTED: [&str; 10] = [
    "/mcp",
    "/mcp/project",
    "/v1/me",
    "/mcp?surface=direct",
    "/sse",
    "/messages",
    "/messages?sessionId=x",
    "/nowhere",
    "/mcp/",
    "/health/",
];
const PUBLIC: [&str; 2] = ["/", "/health"];

#[tokio::test]
async fn without_the_token_nothing_but_health_is_answered() {
    let gateway = configured(json!({ "limits": { "failed_logins": 0 } })).await;
    let token = gateway.token().to_owned();
    let wrong = [
        None,
        Some(String::new()),
        Some("Bearer".into()),
        Some("Bearer ".into()),
        Some("Bearer wrong".into()),
        Some(format!("Bearer {token}x")),
        Some(format!("Bearer {}", &token[..token.len() - 1])),
        Some(token.clone()),
        Some(format!("Basic {token}")),
    ];
    for path in PROTECTED {
        for method in METHODS {
            for sent in &wrong {
                let mut request = HttpRequest::new(method, path);
                if let Some(sent) = sent {
                    request = request.header("authorization", sent);
                }
                let reply = gateway.send(request).await;
                assert_eq!(reply.status, 401, "{method} {path} {sent:?}");
                let challenge = reply.headers["www-authenticate"].to_str().expect("text");
                assert!(challenge.starts_with("Bearer realm=\"hikite\""), "{challenge}");
                let is_told = challenge.contains(", error=\"invalid_token\"");
                assert_eq!(is_told, sent.is_some(), "{challenge}");
                assert!(method == "HEAD" || reply.value()["code"] == "AUTHENTICATION_ERROR");
            }
        }
    }
    for path in PUBLIC {
        let reply = gateway.send(HttpRequest::new("GET", path)).await;
        assert_eq!(
            (reply.status, &reply.value()["status"], &reply.value()["name"]),
            (200, &json!("ok"), &json!("hikite"))
        );
        assert_eq!(gateway.send(HttpRequest::new("POST", path)).await.status, 405);
    }
}

#[tokio::test]
async fn with_the_token_a_wrong_method_is_405_and_a_wrong_path_404() {
    let gateway = gateway(json!({})).await;
    for (method, path, status) in [
        ("PUT", "/mcp", 405),
        ("PATCH", "/mcp", 405),
        ("POST", "/sse", 405),
        ("GET", "/messages", 405),
        ("GET", "/nowhere", 404),
        ("POST", "/mcp/", 404),
    ] {
        assert_eq!(gateway.send(gateway.request(method, path)).await.status, status, "{method} {path}");
    }
}

#[tokio::test]
async fn a_token_in_the_address_is_not_accepted() {
    let gateway = gateway(json!({})).await;
    let path = format!("/mcp?token={0}&access_token={0}", gateway.token());
    assert_eq!(gateway.send(HttpRequest::new("GET", &path)).await.status, 401);
}

#[tokio::test]
async fn a_foreign_host_or_origin_is_refused_on_every_route_before_anything_else() {
    let gateway = gateway(json!({})).await;
    for path in PROTECTED.into_iter().chain(PUBLIC) {
        for method in METHODS {
            for (header, value) in [
                ("host", "evil.example"),
                ("host", "localhost.evil.example"),
                ("host", "10.0.0.1"),
                ("host", "127.0.0.1.nip.io:80"),
                ("origin", "http://evil.example"),
                ("origin", "null"),
                ("origin", "https://localhost.evil.example"),
            ] {
                let reply = gateway.send(gateway.request(method, path).header(header, value)).await;
                assert_eq!(reply.status, 403, "{method} {path} {header}: {value}");
                let bare = gateway.send(HttpRequest::new(method, path).header(header, value)).await;
                assert_eq!(bare.status, 403, "{method} {path} {header}: {value}, no token");
            }
        }
    }
    let local =
        gateway.request("GET", "/health").header("host", "localhost:1").header("origin", "http://localhost:5173");
    assert_eq!(gateway.send(local).await.status, 200);
}

#[tokio::test]
async fn hosts_and_origins_of_the_config_are_let_in() {
    let server = json!({ "allowed_hosts": ["hikite.example"], "allowed_origins": ["https://app.example"] });
    let gateway = configured(json!({ "server": server })).await;
    for (host, origin, status) in [
        ("hikite.example", "https://app.example", 200),
        ("hikite.example:8443", "https://app.example", 200),
        ("other.example", "https://app.example", 403),
        ("hikite.example", "http://app.example", 403),
        ("hikite.example", "https://app.example:1", 403),
    ] {
        let request = HttpRequest::new("GET", "/health").header("host", host).header("origin", origin);
        assert_eq!(gateway.send(request).await.status, status, "{host} {origin}");
    }
}

#[tokio::test]
async fn a_token_of_the_config_takes_the_place_of_the_local_one() {
    let gateway = configured(json!({ "auth": { "token": "a-long-enough-token-of-mine" } })).await;
    let ask = |token: &str| {
        HttpRequest::new("GET", "/mcp")
            .header("accept", "text/event-stream")
            .header("authorization", &format!("Bearer {token}"))
    };
    assert_eq!(gateway.send(ask("a-long-enough-token-of-mine")).await.status, 400);
    assert_eq!(gateway.send(ask("another-long-enough-token")).await.status, 401);
    assert!(!gateway.folder().path().join("data/token").exists());
    assert!(
        !gateway.stderr().contains("a-long-enough-token-of-mine"),
        "the owner knows it, the log need not:\n{}",
        gateway.stderr()
    );
}

#[tokio::test]
async fn mode_none_lets_everyone_on_this_machine_in_and_nobody_else() {
    let gateway = configured(json!({ "auth": { "mode": "none" } })).await;
    let request = HttpRequest::new("GET", "/mcp").header("accept", "text/event-stream");
    assert_eq!(gateway.send(request).await.status, 400);
    assert!(!gateway.folder().path().join("data/token").exists());
    for listen in ["0.0.0.0:0", "[::]:0"] {
        let run = gateway.run(&["serve", "--listen", listen]).await;
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        let expected = format!(
            "error: `auth.mode` is \"none\" and {listen} is reachable from other machines\nhint: Remove `auth.mode`, or listen on 127.0.0.1.\n"
        );
        assert_eq!(run.stderr, expected);
    }
}

#[tokio::test]
async fn the_local_token_is_kept_for_its_owner_and_survives_a_restart() {
    use std::os::unix::fs::PermissionsExt;
    let gateway = gateway(json!({})).await;
    let path = gateway.folder().path().join("data/token");
    let mode = |path: &std::path::Path| std::fs::metadata(path).expect("there").permissions().mode() & 0o777;
    assert_eq!((mode(&path), mode(path.parent().expect("a folder"))), (0o600, 0o700));
    let token = gateway.token().to_owned();
    assert!(token.starts_with("hk_local_") && token.len() == 9 + 64, "{token}");
    let gateway = gateway.restart(json!({})).await;
    assert_eq!(gateway.token(), token);
}

//! Public and protected routes: what is open to everybody, the responses to unauthenticated requests, and unknown
//! paths.

use super::*;

const PUBLIC: [(&str, &str); 13] = [
    ("GET", "/.well-known/oauth-authorization-server"),
    ("GET", "/.well-known/openid-configuration"),
    ("GET", "/.well-known/oauth-protected-resource"),
    ("GET", "/.well-known/oauth-protected-resource/mcp"),
    ("GET", "/oauth/jwks"),
    ("GET", "/oauth/page.css"),
    ("GET", "/oauth/authorize"),
    ("GET", "/oauth/login"),
    ("GET", "/oauth/logout"),
    ("POST", "/oauth/token"),
    ("POST", "/oauth/revoke"),
    ("POST", "/oauth/register"),
    ("GET", "/setup"),
];

#[tokio::test]
async fn where_nobody_logs_in_there_is_nothing() {
    for config in [json!({ "auth": { "mode": "token" } }), json!({ "auth": { "mode": "none" } })] {
        let is_open = config["auth"]["mode"] == "none";
        let gateway = configured(config).await;
        for (method, path) in PUBLIC {
            let bare = gateway.send(HttpRequest::new(method, path)).await;
            assert_eq!(bare.status, if is_open { 404 } else { 401 }, "{method} {path}");
            let known = gateway.send(gateway.request(method, path)).await;
            assert_eq!((known.status, &known.value()["code"]), (404, &json!("NOT_FOUND")), "{method} {path}");
        }
        assert!(!gateway.stderr().contains("/setup?token="));
        if !is_open {
            let refused = gateway.send(HttpRequest::new("GET", "/mcp")).await;
            assert_eq!(refused.headers["www-authenticate"], "Bearer realm=\"hikite\"");
        }
    }
}

#[tokio::test]
async fn a_foreign_host_or_page_is_refused_here_too() {
    let (gateway, _) = owned_gateway().await;
    for (method, path) in PUBLIC {
        let own = gateway.send(HttpRequest::new(method, path)).await;
        assert!(own.status != 401 && own.status != 404, "{method} {path} is open: {}", own.status);
        for (header, value) in [("host", "evil.example"), ("origin", "http://evil.example"), ("origin", "null")] {
            let foreign = gateway.send(HttpRequest::new(method, path).header(header, value)).await;
            assert_eq!(foreign.status, 403, "{method} {path} {header}: {value}");
        }
        let wrong = gateway.send(HttpRequest::new("DELETE", path)).await;
        assert_eq!(wrong.status, 405, "{path}");
    }
}

#[tokio::test]
async fn whoever_comes_without_a_token_is_told_where_to_get_one() {
    let (gateway, _) = owned_gateway().await;
    let base = issuer(&gateway);
    for (path, description) in [("/mcp", "/mcp"), ("/mcp/work", "/mcp/work"), ("/v1/me", "/mcp"), ("/nowhere", "/mcp")]
    {
        for method in ["GET", "POST", "PUT"] {
            let reply = gateway.send(HttpRequest::new(method, path)).await;
            let expected = format!(
                "Bearer realm=\"hikite\", resource_metadata=\"{base}/.well-known/oauth-protected-resource{description}\""
            );
            let told = reply.headers["www-authenticate"].to_str().expect("text");
            assert_eq!((reply.status, told), (401, &*expected), "{method} {path}");
        }
    }
    let host = format!("localhost:{}", gateway.address().port());
    let reply = gateway.send(HttpRequest::new("POST", "/mcp").header("host", &host)).await;
    let challenge = reply.headers["www-authenticate"].to_str().expect("text");
    assert!(challenge.contains(&format!("http://{host}/.well-known/")), "{challenge}");
    let metrics = gateway.send(HttpRequest::new("GET", "/metrics")).await;
    assert_eq!(metrics.status, 401);
    assert!(metrics.headers.contains_key("www-authenticate"));
}

#[tokio::test]
async fn users_and_clients_are_kept_from_a_terminal_and_over_rest() {
    let (gateway, _) = owned_gateway().await;
    let form = json!({ "name": "alice", "role": "admin", "password": "alice's password" });
    let made = gateway.send(gateway.request("POST", "/v1/users").json(form.to_string())).await;
    assert_eq!((made.status, made.value().get("password")), (201, None), "a password goes in and never out");
    logged_in(&gateway, "alice", "alice's password").await;
    let change = json!({ "role": "member", "permissions": { "deny": ["risk:destructive"] } });
    let changed = gateway.send(gateway.request("PATCH", "/v1/users/alice").json(change.to_string())).await;
    assert_eq!((changed.status, &changed.value()["role"]), (200, &json!("member")));
    let listed = gateway.run(&["user", "list"]).await;
    assert!(listed.stdout.contains("kana") && listed.stdout.contains("masked"), "{}", listed.stdout);
    let listed: Value = serde_json::from_str(&gateway.run(&["user", "list", "--json"]).await.stdout).expect("JSON");
    assert_eq!((&listed[0]["subject"], &listed[1]["name"]), (&json!("owner"), &json!("alice")));
    assert!(!listed.to_string().contains("argon2"));
    let mask = gateway.run(&["user", "mask", "alice", "--allow", "web", "--deny", "web:delete_*"]).await;
    assert_eq!(mask.code, Some(0), "{}", mask.stderr);
    let shown = gateway.run(&["user", "mask", "alice", "--none"]).await.stdout;
    assert!(shown.contains("\"permissions\":null"), "{shown}");
    let link = gateway.run(&["user", "setup-link"]).await;
    assert_eq!((link.code, link.stdout.as_str()), (Some(1), ""), "there is an owner already");
    let removed = gateway.send(gateway.request("DELETE", "/v1/users/alice")).await;
    assert_eq!(removed.status, 204);
    assert_eq!(gateway.run(&["user", "remove", "alice"]).await.code, Some(1));
    let records = gateway.run(&["audit", "tail"]).await;
    assert!(records.stdout.contains("user.") || records.code != Some(0), "{}", records.stdout);
}

//! Access to the REST API: authentication of each route, CORS, rate limits, request ids, legacy paths, and the OpenAPI
//! document with its page.

use hikite_testkit::gateway::{HttpRequest, TestGateway};
use serde_json::{Value, json};

use crate::rest::{get, post, refused};
use crate::{configured, gateway, stdio};

/// Every route of the API that requires a token.
const PROTECTED: [(&str, &str); 24] = [
    ("GET", "/v1/tools"),
    ("POST", "/v1/tools"),
    ("GET", "/v1/tools/a:echo"),
    ("DELETE", "/v1/tools/a:echo"),
    ("POST", "/v1/tools/a:echo/enable"),
    ("POST", "/v1/tools/a:echo/disable"),
    ("POST", "/v1/tools/call"),
    ("POST", "/v1/tools/search"),
    ("POST", "/catalog/search"),
    ("GET", "/v1/modules"),
    ("GET", "/v1/categories"),
    ("GET", "/tools"),
    ("POST", "/tools/call"),
    ("GET", "/v1/me"),
    ("GET", "/v1/projects"),
    ("POST", "/v1/projects"),
    ("GET", "/v1/projects/p"),
    ("PATCH", "/v1/projects/p"),
    ("DELETE", "/v1/projects/p"),
    ("GET", "/v1/tokens"),
    ("POST", "/v1/tokens"),
    ("DELETE", "/v1/tokens/tok_1"),
    ("GET", "/v1/audit"),
    ("GET", "/v1/audit/verify"),
];
const PUBLIC: [&str; 7] =
    ["/", "/health", "/v1/openapi.json", "/docs", "/docs/page.css", "/docs/page.js", "/docs/words.js"];

#[tokio::test]
async fn every_route_needs_the_token_and_none_but_the_enumerated_is_public() {
    let config = json!({ "mcpServers": { "a": stdio(&[]) }, "limits": { "failed_logins": 0 } });
    let gateway = configured(config).await;
    let others = [
        ("GET", "/v1"),
        ("GET", "/v1/"),
        ("GET", "/v1/nothing"),
        ("GET", "/docs/"),
        ("GET", "/docs/x"),
        ("PUT", "/v1/tools"),
    ];
    for (method, path) in PROTECTED.into_iter().chain(others) {
        for sent in [None, Some("Bearer wrong"), Some("Basic x")] {
            let mut request = HttpRequest::new(method, path).json("{}");
            if let Some(sent) = sent {
                request = request.header("authorization", sent);
            }
            let reply = gateway.send(request).await;
            let challenge = reply.headers["www-authenticate"].to_str().expect("text");
            assert!(challenge.starts_with("Bearer realm=\"hikite\""), "{method} {path} {challenge}");
            refused(&reply, 401, "AUTHENTICATION_ERROR", "A valid bearer token is required.");
        }
        for (header, value) in [("host", "evil.example"), ("origin", "https://evil.example")] {
            let reply = gateway.send(gateway.request(method, path).json("{}").header(header, value)).await;
            assert_eq!((reply.status, &reply.value()["code"]), (403, &json!("AUTHORIZATION_ERROR")), "{method} {path}");
        }
    }
    for path in PUBLIC {
        assert_eq!(gateway.send(HttpRequest::new("GET", path)).await.status, 200, "{path}");
        let foreign = HttpRequest::new("GET", path).header("host", "evil.example");
        assert_eq!(gateway.send(foreign).await.status, 403, "{path}");
        let wrong = gateway.send(HttpRequest::new("POST", path)).await;
        refused(&wrong, 405, "METHOD_NOT_ALLOWED", "This address does not support this method.");
        assert_eq!(wrong.headers["allow"], "GET,HEAD", "{path}");
    }
}

#[tokio::test]
async fn wrong_methods_and_addresses_have_the_one_shape() {
    let gateway = gateway(json!({})).await;
    for (method, path, allow) in [
        ("PUT", "/v1/tools", ["GET", "HEAD", "POST"].as_slice()),
        ("GET", "/v1/tools/call", &["POST"]),
        ("DELETE", "/v1/tools/search", &["POST"]),
        ("POST", "/v1/tools/x", &["GET", "HEAD", "PATCH", "DELETE"]),
        ("GET", "/v1/tools/x/enable", &["POST"]),
        ("POST", "/v1/modules", &["GET", "HEAD"]),
        ("POST", "/tools", &["GET", "HEAD"]),
    ] {
        let reply = gateway.send(gateway.request(method, path)).await;
        refused(&reply, 405, "METHOD_NOT_ALLOWED", "This address does not support this method.");
        let mut told: Vec<&str> = reply.headers["allow"].to_str().expect("text").split(',').collect();
        let mut expected = allow.to_vec();
        told.sort_unstable();
        expected.sort_unstable();
        assert_eq!(told, expected, "{method} {path}");
    }
    for path in ["/v1", "/v1/nothing", "/v2/tools", "/v1/tools/a/b", "/v1/tools/"] {
        refused(&get(&gateway, path).await, 404, "NOT_FOUND", "There is nothing at this address.");
    }
    let head = gateway.send(gateway.request("HEAD", "/v1/tools")).await;
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[tokio::test]
async fn a_request_keeps_its_own_id_or_is_given_one() {
    let gateway = gateway(json!({})).await;
    let ask = async |request: HttpRequest| gateway.send(request).await;
    for (method, path, body) in [
        ("GET", "/health", ""),
        ("GET", "/v1/tools", ""),
        ("GET", "/v1/nothing", ""),
        ("POST", "/v1/tools/call", "{}"),
        ("POST", "/mcp", "{}"),
        ("PUT", "/mcp", ""),
    ] {
        let request = || gateway.request(method, path).json(body);
        let kept = ask(request().header("x-request-id", "job-7/3")).await;
        assert_eq!(kept.headers["x-request-id"], "job-7/3", "{method} {path}");
        for wrong in [None, Some("has space"), Some("")] {
            let reply = ask(match wrong {
                Some(id) => request().header("x-request-id", id),
                None => request(),
            })
            .await;
            let id = reply.headers["x-request-id"].to_str().expect("text");
            assert!(id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit()), "{method} {path}: {id}");
        }
    }
    let denied = ask(HttpRequest::new("GET", "/v1/tools").header("x-request-id", "mine")).await;
    assert_eq!((denied.status, &denied.value()["requestId"]), (401, &json!("mine")));
}

#[tokio::test]
async fn addresses_of_old_lead_to_the_new_ones() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    let list = get(&gateway, "/tools?limit=1&module=a").await;
    assert_eq!((list.status, list.headers["location"].to_str().expect("text")), (307, "/v1/tools?limit=1&module=a"));
    let call = post(&gateway, "/tools/call", &json!({ "name": "a:echo" })).await;
    assert_eq!((call.status, call.headers["location"].to_str().expect("text")), (307, "/v1/tools/call"));
}

#[tokio::test]
async fn how_often_one_caller_may_come_is_told_and_kept() {
    let gateway = configured(json!({ "server": { "rate_limit": { "max": 3, "timeWindow": 3_600_000 } } })).await;
    for left in ["2", "1", "0"] {
        let reply = get(&gateway, "/v1/tools").await;
        assert_eq!(reply.status, 200);
        assert_eq!(reply.headers["ratelimit-limit"], "3");
        assert_eq!(reply.headers["ratelimit-remaining"], left);
        assert_eq!(reply.headers["ratelimit-policy"], "3;w=3600");
        let reset: u64 = reply.headers["ratelimit-reset"].to_str().expect("text").parse().expect("seconds");
        assert!((1..=3600).contains(&reset), "{reset}");
    }
    for (method, path) in PROTECTED.into_iter().chain([("POST", "/mcp"), ("GET", "/v1/nothing"), ("PUT", "/v1/tools")])
    {
        let reply = gateway.send(gateway.request(method, path).json("{}")).await;
        let wait: u64 = reply.headers["retry-after"].to_str().expect("text").parse().expect("seconds");
        assert!((1..=1200).contains(&wait), "{wait}");
        assert_eq!(reply.headers["ratelimit-remaining"], "0");
        refused(&reply, 429, "RATE_LIMIT_EXCEEDED", "Rate limit exceeded: at most 3 requests in 3600s.");
    }
    for path in PUBLIC {
        assert_eq!(gateway.send(HttpRequest::new("GET", path)).await.status, 200, "{path} is not counted");
    }
    let stranger = gateway.send(HttpRequest::new("GET", "/v1/tools")).await;
    assert_eq!((stranger.status, stranger.headers.get("ratelimit-limit")), (401, None));
    let unlimited = self::gateway(json!({})).await;
    assert_eq!(get(&unlimited, "/v1/tools").await.headers.get("ratelimit-limit"), None);
}

/// Returns the status of a preflight, of the request itself, and the allowed origin.
async fn page(gateway: &TestGateway, origin: &str) -> (u16, u16, Option<String>) {
    let first = HttpRequest::new("OPTIONS", "/v1/tools/a:b")
        .header("origin", origin)
        .header("access-control-request-method", "DELETE")
        .header("access-control-request-headers", "authorization");
    let first = gateway.send(first).await;
    let reply = gateway.send(gateway.request("GET", "/v1/tools").header("origin", origin)).await;
    let allowed =
        reply.headers.get("access-control-allow-origin").map(|value| value.to_str().expect("text").to_owned());
    assert_eq!(first.headers.get("access-control-allow-origin"), reply.headers.get("access-control-allow-origin"));
    for reply in [&first, &reply] {
        assert_eq!(reply.headers.get("access-control-allow-credentials"), None, "never with credentials");
    }
    if first.status == 204 {
        assert_eq!(first.headers["access-control-allow-methods"], "GET, POST, PUT, PATCH, DELETE");
        let headers = first.headers["access-control-allow-headers"].to_str().expect("text");
        for name in ["authorization", "content-type", "x-request-id", "mcp-session-id", "mcp-protocol-version"] {
            assert!(headers.contains(name), "{headers}");
        }
        let exposed = reply.headers["access-control-expose-headers"].to_str().expect("text");
        for name in ["ratelimit-limit", "ratelimit-remaining", "ratelimit-reset", "retry-after", "x-request-id"] {
            assert!(exposed.contains(name), "{exposed}");
        }
    }
    (first.status, reply.status, allowed)
}

#[tokio::test]
async fn web_pages_are_let_in_as_the_config_says() {
    let own = |origin: &str| (204, 200, Some(origin.to_owned()));
    let (mine, other, local) = ("https://app.example", "https://other.example", "http://localhost:5173");
    let out = (403, 403, None);
    let any = (204, 200, Some("*".to_owned()));
    for (server, expected) in [
        (json!({}), [out.clone(), out.clone(), own(local), out.clone()]),
        (json!({ "cors": { "enabled": false, "origin": "*" } }), [out.clone(), out.clone(), own(local), out.clone()]),
        (json!({ "cors": { "enabled": true, "origin": mine } }), [own(mine), out.clone(), own(local), out.clone()]),
        (
            json!({ "cors": { "enabled": true, "origin": [mine, other] } }),
            [own(mine), own(other), own(local), out.clone()],
        ),
        (json!({ "cors": { "enabled": true, "origin": "*" } }), [any.clone(), any.clone(), any.clone(), any.clone()]),
        (json!({ "allowed_origins": [mine] }), [own(mine), out.clone(), own(local), out.clone()]),
    ] {
        let gateway = configured(json!({ "server": server })).await;
        for (origin, expected) in [mine, other, local, "null"].into_iter().zip(expected) {
            assert_eq!(page(&gateway, origin).await, expected, "{server} {origin}");
        }
        let foreign = HttpRequest::new("GET", "/health").header("host", "evil.example").header("origin", mine);
        assert_eq!(gateway.send(foreign).await.status, 403, "the Host is checked whatever the page");
    }
}

#[tokio::test]
async fn every_page_and_no_token_is_refused_as_exposed() {
    let gateway = gateway(json!({})).await;
    gateway.write_config(&json!({ "auth": { "mode": "none" }, "server": { "cors": { "enabled": true } } }));
    let run = gateway.run(&["serve", "--listen", "127.0.0.1:0"]).await;
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("any page could use your tools"), "{}", run.stderr);
}

#[tokio::test]
async fn the_description_names_every_route_and_the_page_asks_nobody_else() {
    let gateway = gateway(json!({})).await;
    let reply = gateway.send(HttpRequest::new("GET", "/v1/openapi.json")).await;
    let document: Value = reply.value();
    assert_eq!(
        (reply.headers["content-type"].to_str().expect("text"), &document["openapi"]),
        ("application/json", &json!("3.1.0"))
    );
    for (method, path) in PROTECTED.into_iter().filter(|(_, path)| path.starts_with("/v1")) {
        let path = path.replace("a:echo", "{key}");
        let path = path.replace("projects/p", "projects/{name}").replace("tok_1", "{id}");
        let operation = &document["paths"][path.as_str()][method.to_lowercase()];
        assert!(operation["responses"]["401"].is_object(), "{method} {path}");
    }
    assert_eq!(document["components"]["securitySchemes"]["bearer"]["scheme"], "bearer");
    let codes =
        document["components"]["schemas"]["Error"]["properties"]["code"]["enum"].as_array().expect("codes").len();
    assert!(codes >= 17);
    for path in PUBLIC.into_iter().filter(|path| path.starts_with("/docs")) {
        let reply = gateway.send(HttpRequest::new("GET", path)).await;
        let policy = reply.headers["content-security-policy"].to_str().expect("text");
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(reply.headers["x-content-type-options"], "nosniff");
        assert!(!reply.text().contains("://"), "{path} names another place");
        for stored in ["localStorage", "sessionStorage", "document.cookie", "innerHTML"] {
            assert!(!reply.text().contains(stored), "{path}: {stored}");
        }
    }
}

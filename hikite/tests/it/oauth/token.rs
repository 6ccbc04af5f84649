//! Codes, refresh tokens and access tokens over HTTP: what each permits, and what not.

use hikite_testkit::gateway::eventually;

use super::*;

async fn refresh(gateway: &TestGateway, client: &str, token: &str) -> HttpReply {
    let fields = [("grant_type", "refresh_token"), ("client_id", client), ("refresh_token", token)];
    ask_token(gateway, &fields).await
}

fn refresh_of(tokens: &Value) -> String {
    tokens["refresh_token"].as_str().expect("a token").to_owned()
}

#[tokio::test]
async fn a_code_is_exchanged_by_its_client_with_its_verifier_once() {
    let (gateway, mut browser) = owned_gateway().await;
    let (client, other) = (registered(&gateway).await, registered(&gateway).await);
    let text = code(&gateway, &mut browser, &client, &[]).await;
    let right = exchange(&client, &text);
    let with = |name: &str, value: &'static str| -> Vec<(&str, &str)> {
        right.iter().map(|(own, kept)| (*own, if *own == name { value } else { *kept })).collect()
    };
    for (fields, status, word) in [
        (with("code_verifier", "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXK"), 400, "invalid_grant"),
        (with("code_verifier", ""), 400, "invalid_request"),
        (with("redirect_uri", "http://127.0.0.1:3999/other"), 400, "invalid_grant"),
        (with("code", "x"), 400, "invalid_grant"),
        (with("grant_type", "password"), 400, "unsupported_grant_type"),
        (with("client_id", "hkc_none"), 401, "invalid_client"),
        ([with("", ""), vec![("resource", "https://evil.example/mcp")]].concat(), 400, "invalid_target"),
        ([with("", ""), vec![("client_secret", "x")]].concat(), 401, "invalid_client"),
        (exchange(&other, &text), 400, "invalid_grant"),
    ] {
        refused(&ask_token(&gateway, &fields).await, status, word);
    }
    let first = ask_token(&gateway, &right).await;
    assert_eq!((first.status, &first.headers["cache-control"]), (200, &"no-store".parse().expect("a value")));
    let first = first.value();
    assert_eq!(me(&gateway, access(&first)).await.status, 200);
    refused(&ask_token(&gateway, &right).await, 400, "invalid_grant");
    assert_eq!(me(&gateway, access(&first)).await.status, 401, "what the code gave is taken back");
    refused(&refresh(&gateway, &client, &refresh_of(&first)).await, 400, "invalid_grant");
}

#[tokio::test]
async fn two_hundred_refreshes_at_once_are_one() {
    let (gateway, mut browser) = owned_gateway().await;
    let client = registered(&gateway).await;
    let first = refresh_of(&tokens(&gateway, &mut browser, &client, "read call").await);
    let all = (0..200).map(|_| refresh(&gateway, &client, &first));
    let replies = futures_util::future::join_all(all).await;
    let mut pairs: Vec<(String, String)> = Vec::new();
    for reply in &replies {
        assert_eq!(reply.status, 200, "{}", reply.text());
        let value = reply.value();
        pairs.push((access(&value).to_owned(), refresh_of(&value)));
    }
    pairs.sort();
    pairs.dedup();
    assert_eq!(pairs.len(), 1, "all got the same pair");
    assert_eq!(me(&gateway, &pairs[0].0).await.status, 200);
    let next = refresh(&gateway, &client, &pairs[0].1).await;
    assert_eq!(next.status, 200);
    // The first one is two generations old, so it counts as stolen.
    refused(&refresh(&gateway, &client, &first).await, 400, "invalid_grant");
    refused(&refresh(&gateway, &client, &refresh_of(&next.value())).await, 400, "invalid_grant");
    assert_eq!(me(&gateway, access(&next.value())).await.status, 401, "the family is over");
}

#[tokio::test]
async fn a_token_that_is_given_back_opens_nothing_in_any_process() {
    let (gateway, mut browser) = owned_gateway().await;
    let client = registered(&gateway).await;
    let given = tokens(&gateway, &mut browser, &client, "read call").await;
    let revoke = async |token: &str| {
        let fields = form(&[("client_id", &client), ("token", token)]);
        gateway.send(HttpRequest::new("POST", "/oauth/revoke").form(fields)).await.status
    };
    assert_eq!((revoke("nothing").await, me(&gateway, access(&given)).await.status), (200, 200));
    assert_eq!((revoke(&refresh_of(&given)).await, me(&gateway, access(&given)).await.status), (200, 401));
    // A revocation by another process reaches this one.
    let given = tokens(&gateway, &mut browser, &client, "read call").await;
    assert_eq!(me(&gateway, access(&given)).await.status, 200);
    assert_eq!(gateway.run(&["client", "remove", &client]).await.code, Some(0));
    let mut gone = false;
    for _ in 0..200 {
        gone = me(&gateway, access(&given)).await.status == 401;
        if gone {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    assert!(gone && eventually(|| true).await);
}

#[tokio::test]
async fn tokens_of_others_and_tokens_that_were_changed_open_nothing() {
    let (gateway, mut browser) = owned_gateway_with(json!({ "limits": { "failed_logins": 0 } })).await;
    let (other, mut stranger) = owned_gateway().await;
    let client = registered(&gateway).await;
    let good = access(&tokens(&gateway, &mut browser, &client, "read").await).to_owned();
    let parts: Vec<&str> = good.split('.').collect();
    let decoded =
        |part: &str| -> Value { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON") };
    let encoded = |value: &Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let with = |part: &str, member: &str, value: &str| {
        let mut whole = decoded(part);
        whole[member] = value.into();
        encoded(&whole)
    };
    assert_eq!(decoded(parts[0])["typ"], "at+jwt");
    assert_eq!(decoded(parts[1])["aud"], format!("{}/mcp", issuer(&gateway)));
    let foreign = registered(&other).await;
    let foreign = access(&tokens(&other, &mut stranger, &foreign, "read").await).to_owned();
    for wrong in [
        foreign,
        format!("{}.{}.{}", with(parts[0], "alg", "none"), parts[1], parts[2]),
        format!("{}.{}.", with(parts[0], "alg", "none"), parts[1]),
        format!("{}.{}.{}", with(parts[0], "alg", "HS256"), parts[1], parts[2]),
        format!("{}.{}.{}", parts[0], with(parts[1], "scope", "read call admin"), parts[2]),
        format!("{}.{}.{}", parts[0], with(parts[1], "sub", "root"), parts[2]),
        format!("{}.{}", parts[0], parts[1]),
        format!("{good}."),
        twin(&good),
    ] {
        let reply = me(&gateway, &wrong).await;
        assert_eq!(reply.status, 401, "{wrong}");
        let challenge = reply.headers["www-authenticate"].to_str().expect("text");
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
    }
    for path in [format!("/v1/me?access_token={good}"), format!("/mcp?access_token={good}&token={good}")] {
        assert_eq!(gateway.send(HttpRequest::new("GET", &path)).await.status, 401, "{path}");
    }
    assert_eq!(me(&gateway, &good).await.status, 200);
}

#[tokio::test]
async fn a_token_that_allows_too_little_is_told_what_to_ask_for() {
    let (fixture, web) = crate::http_fixture().await;
    let config = json!({ "mcpServers": { "web": web }, "server": { "surface": "direct" } });
    let (gateway, mut browser) = owned_gateway_with(config).await;
    let client = registered(&gateway).await;
    let reader = tokens(&gateway, &mut browser, &client, "read").await;
    let ask = |path: &str, method: &str| crate::identity::as_bearer(access(&reader), method, path);
    let challenge = |reply: &HttpReply| reply.headers["www-authenticate"].to_str().expect("text").to_owned();

    let users = gateway.send(ask("/v1/users", "GET")).await;
    assert_eq!(users.status, 403);
    assert!(
        challenge(&users).starts_with("Bearer error=\"insufficient_scope\", scope=\"read admin\", resource_metadata=")
    );
    let call = json!({ "name": "echo", "parameters": {} }).to_string();
    let called = gateway.send(ask("/v1/tools/call", "POST").json(call)).await;
    assert_eq!(called.status, 403, "{}", called.text());
    assert!(challenge(&called).contains("scope=\"read call\""), "{}", challenge(&called));

    let mcp = crate::identity::client(&gateway, "/mcp", access(&reader)).await;
    assert!(!mcp.names("tools/list").await.is_empty(), "it may look");
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": { "name": "echo", "arguments": { "text": "hi" } } });
    let request = ask("/mcp", "POST").json(message.to_string()).header("mcp-session-id", &mcp.session());
    let called = gateway.send(request).await;
    assert_eq!((called.status, &called.value()["result"]["isError"]), (403, &json!(true)), "{}", called.text());
    assert!(challenge(&called).contains("scope=\"read call\""), "{}", challenge(&called));

    let more = tokens(&gateway, &mut browser, &client, "read call admin").await;
    let users = gateway.send(crate::identity::as_bearer(access(&more), "GET", "/v1/users")).await;
    assert_eq!((users.status, &users.value()["users"][0]["name"]), (200, &json!("kana")));

    // A user who cannot have the scope gets no challenge for it.
    gateway.run(&["user", "add", "alice"]).await;
    let password = gateway.run(&["user", "password", "alice"]).await.stdout.trim().to_owned();
    let mut alice = logged_in(&gateway, "alice", &password).await;
    let hers = tokens(&gateway, &mut alice, &client, "read call admin").await;
    assert_eq!(hers["scope"], "read call");
    let refused = gateway.send(crate::identity::as_bearer(access(&hers), "GET", "/v1/users")).await;
    assert_eq!((refused.status, refused.headers.get("www-authenticate")), (403, None));
    drop(fixture);
}

//! From a call without an account to a call with one, and every rejected step on the way.

use hikite_testkit::gateway::ClientOptions;
use hikite_testkit::provider::MockProvider;
use serde_json::json;

use super::{ConnectLink, body, connect, cookie_of, family, go_on, link, path_of, post, search, to, visit, with};
use crate::error_of;
use crate::oauth::set_up;

#[tokio::test]
async fn a_call_without_an_account_gives_an_address_and_works_once_it_was_used() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({})).await;
    let client = gateway.client("modules").await;
    let error = error_of(&client.call("call", search(None)).await);
    assert_eq!(error["code"], "ACCOUNT_REQUIRED");
    let hint = error["hint"].as_str().expect("a hint");
    let path = path_of(hint.split_whitespace().last().expect("an address"));
    assert!(path.starts_with("/connect/notion?link="), "{hint}");
    let mut browser = set_up(&gateway).await;
    let page = browser.get(&gateway, &path).await;
    let text = &page.text;
    assert!(page.status == 200 && text.contains("Connect Notion") && text.contains("kana"), "{text}");
    assert!(page.header("content-security-policy").contains("frame-ancestors 'none'"));
    let away = browser.post(&gateway, &path, &page, &[]).await;
    let (code, state) = provider.consent(away.header("location"));
    let done = browser.get(&gateway, &format!("/connect/callback?code={code}&state={state}")).await;
    assert!(done.text.contains("Connected"), "{done:?}");
    assert_eq!(family(&client.call("call", search(None)).await), 0);
    let accounts = body(&gateway.send(gateway.request("GET", "/v1/accounts")).await);
    assert_eq!(accounts["accounts"][0]["details"]["workspace_name"], "Acme");
    assert_eq!(accounts["accounts"][0]["state"], "connected");
}

#[tokio::test]
async fn several_accounts_are_told_apart_by_the_call_the_project_and_the_default() {
    let provider = MockProvider::start().await;
    let more = json!({ "projects": { "work": { "accounts": { "notion": "second" } } } });
    let gateway = with(&provider, more).await;
    connect(&gateway, &provider, "first").await;
    let second = connect(&gateway, &provider, "second").await;
    let client = gateway.client("modules").await;
    assert_eq!(family(&client.call("call", search(None)).await), 0, "the first is the default");
    assert_eq!(family(&client.call("call", search(Some("second"))).await), 1);
    let error = error_of(&client.call("call", search(Some("third"))).await);
    assert_eq!(error["code"], "VALIDATION_ERROR");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("first, second")), "{error}");
    let rest = post(
        &gateway,
        "/v1/tools/call",
        &json!({ "name": "notion:search", "parameters": { "query": "x" }, "options": { "account": "second" } }),
    )
    .await;
    assert_eq!(body(&rest)["result"]["family"], 1, "{rest:?}");
    let direct = gateway.client("direct").await;
    let meta = json!({ "name": "search", "arguments": { "query": "x" }, "_meta": { "hikite/account": "second" } });
    assert_eq!(family(&direct.request("tools/call", meta).await.expect("a result")), 1);
    let batch = json!({ "commands": [
        { "id": "a", "module": "notion", "tool": "search", "params": { "query": "x" }, "account": "second", "raw_output": true },
    ] });
    let batch = client.call("batch", batch).await;
    assert!(batch.to_string().contains(r#"family\":1"#), "{batch}");
    let inside = gateway.request("POST", "/v1/tools/call").header("hikite-project", "work");
    let call = json!({ "name": "notion:search", "parameters": { "query": "x" } });
    assert_eq!(body(&gateway.send(inside.json(call.to_string())).await)["result"]["family"], 1, "the project's rule");
    let marked = gateway.run(&["account", "default", "second", "--json"]).await;
    assert!(marked.code == Some(0) && marked.stdout.contains(&second), "{marked:?}");
    for _ in 0..40 {
        if family(&client.call("call", search(None)).await) == 1 {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("the running hikite does not follow");
}

#[tokio::test]
async fn whatever_is_wrong_with_the_way_back_connects_nothing() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({})).await;
    let ConnectLink { path, code: proof, .. } = link(&gateway, "default").await;
    assert_eq!(go_on(&gateway, &path.replace("notion", "github"), &proof).await.status, 404, "another provider");
    assert_eq!(go_on(&gateway, &format!("{path}x"), &proof).await.status, 404, "a wrong link");
    let away = go_on(&gateway, &path, &proof).await;
    let cookie = cookie_of(&away);
    assert_eq!(go_on(&gateway, &path, &proof).await.status, 404, "a link is good once");
    assert_eq!(visit(&gateway, "GET", &path, None).await.status, 404);
    let (code, state) = provider.consent(&to(&away));
    let back = |code: &str, state: &str| format!("/connect/callback?code={code}&state={state}");
    for (path, cookie, why) in [
        (back(&code, &state), None, "no browser"),
        (back(&code, &state), Some("hikite_connect=other"), "another browser"),
        (back(&code, &format!("{state}x")), Some(&*cookie), "another state"),
        (back(&code, ""), Some(&*cookie), "no state"),
        ("/connect/callback".to_owned(), Some(&*cookie), "nothing"),
        (format!("{}&state=x", back(&code, &state)), Some(&*cookie), "two states"),
    ] {
        let reply = visit(&gateway, "GET", &path, cookie).await;
        assert_eq!(reply.status, 404, "{why}");
        assert!(!String::from_utf8_lossy(&reply.body).contains("canary"), "{why}");
    }
    assert_eq!(provider.requests(), 0, "nothing was asked for");
    assert_eq!(visit(&gateway, "GET", &back(&code, &state), Some(&cookie)).await.status, 200);
    assert_eq!(visit(&gateway, "GET", &back(&code, &state), Some(&cookie)).await.status, 404, "a replay");
    assert_eq!(provider.requests(), 1);
}

#[tokio::test]
async fn a_user_who_says_no_is_told_so_and_so_is_whoever_waits() {
    let provider = MockProvider::start().await;
    provider.deny_consent();
    let gateway = with(&provider, json!({})).await;
    let ConnectLink { id, path, code } = link(&gateway, "default").await;
    let away = go_on(&gateway, &path, &code).await;
    let state = to(&away).split("state=").nth(1).expect("a state").split('&').next().expect("one").to_owned();
    let back = format!("/connect/callback?error=access_denied&state={state}");
    let reply = visit(&gateway, "GET", &back, Some(&cookie_of(&away))).await;
    assert!(String::from_utf8_lossy(&reply.body).contains("access_denied"), "{reply:?}");
    let at = gateway.send(gateway.request("GET", &format!("/v1/accounts/connect/{id}"))).await;
    assert_eq!(body(&at)["state"], "failed");
    let accounts = body(&gateway.send(gateway.request("GET", "/v1/accounts")).await);
    assert_eq!(accounts["accounts"], json!([]));
}

#[tokio::test]
async fn a_client_that_can_show_addresses_is_asked() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({})).await;
    let hello = ClientOptions { capabilities: json!({ "elicitation": { "url": {} } }), ..ClientOptions::default() };
    let client = gateway.client_with("modules", hello).await;
    let call = client.begin_call("call", search(None));
    let question = client.asked().await;
    assert_eq!(question.params["mode"], "url");
    let path = path_of(question.params["url"].as_str().expect("an address"));
    client.answer(&question, json!({ "action": "accept" })).await;
    let mut browser = set_up(&gateway).await;
    let page = browser.get(&gateway, &path).await;
    let away = browser.post(&gateway, &path, &page, &[]).await;
    let (code, state) = provider.consent(away.header("location"));
    let done = browser.get(&gateway, &format!("/connect/callback?code={code}&state={state}")).await;
    assert_eq!(done.status, 200, "{}", done.text);
    assert_eq!(family(&call.answer().await.expect("a result")), 0);
}

#[tokio::test]
async fn what_the_service_refuses_is_renewed_and_what_its_provider_refuses_is_told() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({})).await;
    connect(&gateway, &provider, "default").await;
    let client = gateway.client("modules").await;
    provider.revoke_access();
    assert_eq!(family(&client.call("call", search(None)).await), 0, "401, a new token, and again");
    assert_eq!(provider.requests(), 2);
    provider.revoke_grants();
    let error = error_of(&client.call("call", search(None)).await);
    assert_eq!(error["code"], "ACCOUNT_REQUIRED");
    assert!(error["hint"].as_str().is_some_and(|hint| hint.contains("/connect/notion?link=")), "{error}");
    let accounts = body(&gateway.send(gateway.request("GET", "/v1/accounts")).await);
    assert_eq!(accounts["accounts"][0]["state"], "reconnect");
    connect(&gateway, &provider, "default").await;
    assert_eq!(family(&client.call("call", search(None)).await), 1, "the same account, connected again");
    let accounts = body(&gateway.send(gateway.request("GET", "/v1/accounts")).await);
    assert_eq!(accounts["accounts"].as_array().expect("a list").len(), 1);
}

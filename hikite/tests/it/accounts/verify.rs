//! An account is reported as connected only after its vendor accepted the credential: over REST, in a terminal, in a
//! browser and in the UI, in English and Japanese.

use hikite_testkit::api::{MockApi, MockResponse};
use hikite_testkit::gateway::TestGateway;
use hikite_testkit::provider::MockProvider;
use serde_json::{Value, json};

use super::{ConnectLink, body, cookie_of, go_on, link, post, to, visit, with};
use crate::configured;
use crate::oauth::owned_gateway_with;
use crate::vault::run;

const PROBE: &str = "/v1/users/me";

fn wrong_key() -> MockResponse {
    let body = json!({ "code": "unauthorized", "message": "API token is <b>invalid</b>." });
    MockResponse::json(&body).with_status(401)
}

fn config(api: &MockApi) -> Value {
    json!({ "modules": { "builtin": ["notion"] }, "providers": { "notion": { "api": api.url(""), "oauth": {} } } })
}

async fn accounts(gateway: &TestGateway) -> Value {
    gateway.send(gateway.request("GET", "/v1/accounts")).await.value()["accounts"].clone()
}

fn new(name: &str) -> Value {
    json!({ "provider": "notion", "name": name, "token": "ntn_key" })
}

#[tokio::test]
async fn a_wrong_key_is_refused_in_the_vendors_words_and_not_kept() {
    let api = MockApi::start().await;
    api.answer(PROBE, wrong_key());
    let gateway = configured(config(&api)).await;
    let refused = post(&gateway, "/v1/accounts", &new("work")).await;
    let told = body(&refused);
    assert_eq!((refused.status, &told["code"]), (400, &json!("VALIDATION_ERROR")), "{told}");
    assert!(told["error"].to_string().contains("API token is <b>invalid</b>."), "{told}");
    assert!(!told.to_string().contains("ntn_key"), "{told}");
    let (code, text) = run(&gateway, &["account", "add", "notion", "--token-stdin"], "ntn_key\n").await;
    assert!(code == 1 && text.contains("API token is") && !text.contains("ntn_key"), "{text}");
    assert_eq!(accounts(&gateway).await, json!([]));
    api.answer(PROBE, MockResponse::json(&json!({ "object": "user" })));
    let added = body(&post(&gateway, "/v1/accounts", &new("work")).await);
    assert_eq!((&added["state"], &added["problem"]), (&json!("connected"), &Value::Null), "{added}");
    assert!(added["verifiedAt"].is_string(), "{added}");
    assert_eq!(api.last_of(PROBE).header("authorization"), Some("Bearer ntn_key"));
}

#[tokio::test]
async fn a_vendor_that_cannot_be_reached_leaves_an_account_that_is_checked_later() {
    let api = MockApi::start().await;
    let down = MockResponse::json(&json!({ "message": "maintenance" })).with_status(503).header("retry-after", "120");
    api.answer(PROBE, down);
    let gateway = configured(config(&api)).await;
    let added = body(&post(&gateway, "/v1/accounts", &new("work")).await);
    assert_eq!(added["state"], "unverified", "{added}");
    assert!(added["problem"].to_string().contains("maintenance"), "{added}");
    let path = format!("/v1/accounts/{}/verify", added["id"].as_str().expect("an id"));
    let again = body(&post(&gateway, &path, &json!({})).await);
    assert_eq!(again["state"], "unverified", "{again}");
    let listed = gateway.run(&["account", "list"]).await;
    assert!(listed.stdout.contains("unverified") && listed.stderr.contains("maintenance"), "{listed:?}");
    api.answer(PROBE, MockResponse::json(&json!({})));
    let checked = gateway.run(&["account", "verify", "work", "--json"]).await;
    assert_eq!(checked.code, Some(0), "{checked:?}");
    let checked: Value = serde_json::from_str(&checked.stdout).expect("JSON");
    assert_eq!((&checked[0]["state"], &checked[0]["problem"]), (&json!("connected"), &Value::Null));
    api.answer(PROBE, wrong_key());
    let lost = body(&post(&gateway, &path, &json!({})).await);
    assert_eq!(lost["state"], "reconnect", "{lost}");
    assert!(lost["problem"].to_string().contains("invalid"), "{lost}");
}

#[tokio::test]
async fn a_browser_that_comes_back_with_a_grant_the_vendor_refuses_connects_nothing() {
    let provider = MockProvider::start().await;
    let gateway = with(&provider, json!({})).await;
    provider.set_api_status(403);
    let ConnectLink { id, path, code } = link(&gateway, "work").await;
    let away = go_on(&gateway, &path, &code).await;
    let (code, state) = provider.consent(&to(&away));
    let back = format!("/connect/callback?code={code}&state={state}");
    let done = visit(&gateway, "GET", &back, Some(&cookie_of(&away))).await;
    let page = String::from_utf8_lossy(&done.body).into_owned();
    assert!(page.contains("Not connected") && page.contains("this app may not come in"), "{page}");
    let at = gateway.send(gateway.request("GET", &format!("/v1/accounts/connect/{id}"))).await.value();
    assert_eq!(at["state"], "failed", "{at}");
    assert!(at["error"].to_string().contains("this app may not come in"), "{at}");
    assert_eq!(accounts(&gateway).await, json!([]));
    provider.set_api_status(503);
    let ConnectLink { id, path, code } = link(&gateway, "work").await;
    let away = go_on(&gateway, &path, &code).await;
    let (code, state) = provider.consent(&to(&away));
    let back = format!("/connect/callback?code={code}&state={state}");
    let done = visit(&gateway, "GET", &back, Some(&cookie_of(&away))).await;
    let page = String::from_utf8_lossy(&done.body).into_owned();
    assert!(page.contains("Not verified yet"), "{page}");
    let at = gateway.send(gateway.request("GET", &format!("/v1/accounts/connect/{id}"))).await.value();
    assert_eq!((&at["state"], &at["accountState"]), (&json!("connected"), &json!("unverified")), "{at}");
}

#[tokio::test]
async fn an_account_of_the_file_is_not_called_connected_before_it_is_proven() {
    let api = MockApi::start().await;
    api.answer(PROBE, wrong_key());
    let providers = json!({ "notion": { "api": api.url(""), "token": "ntn_key" } });
    let gateway = configured(json!({ "modules": { "builtin": ["notion"] }, "providers": providers })).await;
    assert_eq!(accounts(&gateway).await[0]["state"], "unverified");
    let verify = |gateway: TestGateway| async move {
        let told = body(&post(&gateway, "/v1/accounts/file:notion/verify", &json!({})).await);
        (gateway, told)
    };
    let (gateway, refused) = verify(gateway).await;
    assert_eq!(refused["state"], "reconnect", "{refused}");
    assert!(refused["problem"].to_string().contains("invalid"), "{refused}");
    // A successful call verifies it as well.
    api.answer("/v1/search", MockResponse::json(&json!({ "results": [] })));
    let call = json!({ "name": "notion:search", "parameters": { "query": "x" } });
    assert_eq!(body(&post(&gateway, "/v1/tools/call", &call).await)["success"], true);
    assert_eq!(accounts(&gateway).await[0]["state"], "connected");
}

#[tokio::test]
async fn a_module_file_names_its_probe_or_leaves_the_account_unverified() {
    let api = MockApi::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let module = |name: &str, verify: &str| {
        let text = format!(
            "module: {name}\ntitle: {name}\ndescription: {{ en: A shop, ja: 店 }}\nprovider: {name}\n\
             base: https://{name}.example\n{verify}tools:\n  list_things:\n    risk: read\n    \
             description: {{ en: Things, ja: 品 }}\n    request: {{ GET: /things }}\n    \
             out: {{ table: things, rows: \".[]\", columns: {{ name: .name }} }}\n"
        );
        std::fs::write(folder.path().join(format!("{name}.yaml")), text).expect("a file");
    };
    module("shop", "verify: { GET: /me, query: { short: 1 } }\n");
    module("stall", "");
    let modules = json!({ "builtin": [], "dir": folder.path() });
    let gateway = configured(json!({ "modules": modules })).await;
    let add = |provider: &str| json!({ "provider": provider, "token": "key", "api": api.url("") });
    let shop = body(&post(&gateway, "/v1/accounts", &add("shop")).await);
    assert_eq!(shop["state"], "connected", "{shop}");
    assert_eq!((api.last().path.as_str(), api.last().query.as_str()), ("/me", "short=1"));
    let stall = body(&post(&gateway, "/v1/accounts", &add("stall")).await);
    assert_eq!((&stall["state"], &stall["problem"]), (&json!("unverified"), &Value::Null), "{stall}");
}

#[tokio::test]
async fn the_pages_show_the_state_and_the_vendors_words_in_both_languages() {
    let api = MockApi::start().await;
    let mut config = config(&api);
    config["providers"]["notion"]["oauth"] = json!({ "client_id": "app", "client_secret": "shh" });
    let (gateway, mut browser) = owned_gateway_with(config).await;
    api.answer(PROBE, wrong_key());
    let page = browser.get(&gateway, "/ui/accounts").await;
    assert_eq!(page.status, 200, "{}", page.text);
    let fields = [("provider", "notion"), ("name", "work"), ("token", "ntn_key")];
    let token = page.text.split("name=\"form_token\" value=\"").nth(1).and_then(|rest| rest.split('"').next());
    let token = token.expect("a token").to_owned();
    let empty = browser.get(&gateway, "/health").await;
    let with_token = [&fields[..], &[("form_token", token.as_str())]].concat();
    let refused = browser.post(&gateway, "/ui/accounts", &empty, &with_token).await;
    assert_eq!(refused.status, 400, "{}", refused.text);
    assert!(
        refused.text.contains("API token is &#60;b&#62;invalid")
            || refused.text.contains("API token is &lt;b&gt;invalid"),
        "{}",
        refused.text
    );
    let down = MockResponse::json(&json!({ "message": "maintenance" })).with_status(503).header("retry-after", "120");
    api.answer(PROBE, down);
    let kept = browser.post(&gateway, "/ui/accounts", &empty, &with_token).await;
    assert_eq!(kept.status, 303, "{}", kept.text);
    for (language, word, button) in [("en", "Not verified", "Check again"), ("ja", "未確認", "再確認")] {
        let page = browser.get_in(&gateway, "/ui/accounts", language).await;
        assert!(page.text.contains(word) && page.text.contains(button), "{}", page.text);
        assert!(page.text.contains("maintenance"), "{}", page.text);
    }
}

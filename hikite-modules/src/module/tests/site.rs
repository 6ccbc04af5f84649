//! Tests of accounts with one site, several or none, and their base URLs.

use hikite_core::error::ErrorKind;
use hikite_testkit::api::{MockApi, MockResponse};

use super::*;

const SITES: &str = "/oauth/token/accessible-resources";

fn jira(accounts: Vec<Credential>) -> Service {
    let (_, file) = crate::BUILTIN.into_iter().find(|(name, _)| *name == "jira").expect("jira");
    Service::read(file, &settings_with(accounts, TextLanguage::English)).expect("a service")
}

fn site(id: &str, host: &str) -> Value {
    json!({ "id": id, "url": format!("https://{host}"), "name": host })
}

#[tokio::test]
async fn the_only_site_is_meant_and_looked_up_once() {
    let api = MockApi::start().await;
    // Listed once per product.
    api.answer(SITES, MockResponse::json(&json!([site("c-1", "one.atlassian.net"), site("c-1", "one.atlassian.net")])));
    let service = jira(vec![bearer("t", Some(api.url("")))]);
    for _ in 0..2 {
        call(&service, "get_myself", json!({})).await.expect("an answer");
        assert_eq!(api.last().path, "/ex/jira/c-1/rest/api/3/myself");
    }
    assert_eq!(api.count_of(SITES), 1);
}

#[tokio::test]
async fn of_several_sites_the_caller_says_which() {
    let api = MockApi::start().await;
    api.answer(SITES, MockResponse::json(&json!([site("c-1", "one.atlassian.net"), site("c-2", "two.atlassian.net")])));
    let service = jira(vec![bearer("t", Some(api.url("")))]);
    let error = call(&service, "get_myself", json!({})).await.expect_err("a question");
    assert_eq!(error.kind, ErrorKind::Validation);
    assert!(
        error.hint.as_deref().unwrap_or_default().contains("`one.atlassian.net`, `two.atlassian.net`"),
        "{error:?}"
    );
    for name in ["two.atlassian.net", "two", "https://two.atlassian.net/", "c-2"] {
        call(&service, "get_myself", json!({ "site": name })).await.expect("an answer");
        assert_eq!(api.last().path, "/ex/jira/c-2/rest/api/3/myself", "{name}");
    }
    let error = call(&service, "get_myself", json!({ "site": "../c-1" })).await.expect_err("a refusal");
    assert_eq!(error.kind, ErrorKind::Validation);
}

#[tokio::test]
async fn an_account_may_say_its_site_itself() {
    let api = MockApi::start().await;
    api.answer(SITES, MockResponse::json(&json!([site("c-1", "one.atlassian.net"), site("c-2", "two.atlassian.net")])));
    let mut two = bearer("t", Some(api.url("")));
    two.details.insert("site".into(), "two.atlassian.net".into());
    call(&jira(vec![two]), "get_myself", json!({})).await.expect("an answer");
    assert_eq!(api.last().path, "/ex/jira/c-2/rest/api/3/myself");
    let mut known = bearer("t", Some(api.url("")));
    known.details.insert("cloud_id".into(), "c-9".into());
    call(&jira(vec![known]), "get_myself", json!({})).await.expect("an answer");
    assert_eq!((api.last().path.as_str(), api.count_of(SITES)), ("/ex/jira/c-9/rest/api/3/myself", 1));
}

#[tokio::test]
async fn a_token_with_its_user_goes_to_the_site_itself() {
    let api = MockApi::start().await;
    let mut basic = Credential { scheme: AuthScheme::Basic, ..bearer("YTpi", Some(api.url(""))) };
    let error = call(&jira(vec![basic.clone()]), "get_myself", json!({})).await.expect_err("no site");
    assert_eq!(error.kind, ErrorKind::AccountRequired);
    basic.details.insert("site".into(), "one.atlassian.net".into());
    call(&jira(vec![basic.clone()]), "get_myself", json!({})).await.expect("an answer");
    assert_eq!(api.last().path, "/rest/api/3/myself");
    assert_eq!(api.last().header("authorization"), Some("Basic YTpi"));
    basic.details.insert("site".into(), "evil.example/x?".into());
    let error = call(&jira(vec![basic]), "get_myself", json!({})).await.expect_err("no host");
    assert_eq!(error.kind, ErrorKind::Validation);
}

#[tokio::test]
async fn a_stale_token_is_renewed_by_the_very_first_question() {
    let api = MockApi::start().await;
    api.script(SITES, [MockResponse::status(401), MockResponse::json(&json!([site("c-1", "one.atlassian.net")]))]);
    let both = vec![bearer("old", Some(api.url(""))), bearer("new", Some(api.url("")))];
    call(&jira(both), "get_myself", json!({})).await.expect("an answer");
    let sent: Vec<String> =
        api.seen().iter().filter_map(|seen| seen.header("authorization").map(str::to_owned)).collect();
    assert_eq!(sent, ["Bearer old", "Bearer new", "Bearer new"]);
}

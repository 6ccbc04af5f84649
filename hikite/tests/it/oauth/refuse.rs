//! Invalid authorization requests and forged forms.

use super::*;

#[tokio::test]
async fn who_asks_and_where_it_is_answered_is_never_told_elsewhere() {
    let (gateway, mut browser) = owned_gateway().await;
    let client = registered(&gateway).await;
    for other in [
        [("client_id", "hkc_none")],
        [("client_id", "")],
        [("client_id", "https://127.0.0.1/client.json")],
        [("redirect_uri", "")],
        [("redirect_uri", "https://evil.example/cb")],
        [("redirect_uri", "http://127.0.0.1:3999/other")],
        [("redirect_uri", "http://127.0.0.1.evil.example/callback")],
        [("redirect_uri", "javascript:alert(1)")],
        [("redirect_uri", "//evil.example")],
    ] {
        for more in [None, Some(("response_type", "token")), Some(("resource", "https://evil.example/"))] {
            let fields: Vec<(&str, &str)> = other.into_iter().chain(more).collect();
            let page = browser.get(&gateway, &authorize(&gateway, &client, &fields)).await;
            assert_eq!((page.status, page.header("location")), (400, ""), "{fields:?}");
        }
    }
    let twice = format!("{}&client_id=hkc_x", authorize(&gateway, &client, &[]));
    assert_eq!(browser.get(&gateway, &twice).await.status, 400);
}

#[tokio::test]
async fn everything_else_is_told_the_client_with_our_name() {
    let (gateway, mut browser) = owned_gateway().await;
    let client = registered(&gateway).await;
    for (other, word) in [
        ([("response_type", "")], "invalid_request"),
        ([("response_type", "token")], "unsupported_response_type"),
        ([("code_challenge", "")], "invalid_request"),
        ([("code_challenge", "short")], "invalid_request"),
        ([("code_challenge_method", "")], "invalid_request"),
        ([("code_challenge_method", "plain")], "invalid_request"),
        ([("resource", "https://evil.example/mcp")], "invalid_target"),
        ([("response_mode", "fragment")], "invalid_request"),
        ([("request", "x")], "request_not_supported"),
    ] {
        let answer = browser.get(&gateway, &authorize(&gateway, &client, &other)).await.leads_to(REDIRECT);
        let told = (answer["error"].as_str(), answer["state"].as_str(), answer["iss"].as_str());
        assert_eq!(told, (word, "s+1", &*issuer(&gateway)), "{other:?}");
        assert!(!answer.contains_key("code"));
    }
    let silent = authorize(&gateway, &client, &[("prompt", "none")]);
    let answer = browser.get(&gateway, &silent).await.leads_to(REDIRECT);
    assert_eq!(answer["error"], "consent_required");
    let answer = TestBrowser::default().get(&gateway, &silent).await.leads_to(REDIRECT);
    assert_eq!(answer["error"], "login_required");
}

#[tokio::test]
async fn who_says_no_is_sent_to_the_client_and_to_nobody_else() {
    let (gateway, mut browser) = owned_gateway().await;
    let client = registered(&gateway).await;
    let page = browser.get(&gateway, &authorize(&gateway, &client, &[])).await;
    let denied = browser.post(&gateway, "/oauth/consent", &page, &[("decision", "deny")]).await;
    assert_eq!(denied.leads_to(REDIRECT)["error"], "access_denied");
    for (name, value) in [("redirect_uri", "https://evil.example/"), ("client_id", "hkc_none")] {
        let (_, query) = authorize(&gateway, &client, &[(name, value)])
            .split_once('?')
            .map(|(a, b)| (a.to_owned(), b.to_owned()))
            .expect("a query");
        let forged = TestPage { fields: forge(&page, "request", &query), ..TestPage::of_nothing() };
        for decision in ["deny", "allow"] {
            let answer = browser.post(&gateway, "/oauth/consent", &forged, &[("decision", decision)]).await;
            assert_eq!((answer.status, answer.header("location")), (400, ""), "{name} {decision}");
        }
    }
}

#[tokio::test]
async fn a_login_leads_only_to_places_of_ours() {
    let (gateway, mut browser) = owned_gateway().await;
    for next in ["https://evil.example/", "//evil.example", "/\\evil.example", "/oauth/logout", "javascript:x"] {
        let path = format!("/oauth/login?next={}", quoted(next));
        assert_eq!(browser.get(&gateway, &path).await.header("location"), "", "{next}");
        let mut visitor = TestBrowser::default();
        let page = visitor.get(&gateway, &path).await;
        let forged = TestPage { fields: forge(&page, "next", next), ..TestPage::of_nothing() };
        let done = visitor.post(&gateway, "/oauth/login", &forged, &[("name", "kana"), ("password", PASSWORD)]).await;
        assert_eq!((done.status, done.header("location")), (303, "/ui"), "{next}");
    }
}

#[tokio::test]
async fn a_form_counts_only_from_our_page_in_the_browser_it_was_made_for() {
    let (gateway, mut browser) = owned_gateway().await;
    gateway.run(&["user", "add", "alice"]).await;
    let password = gateway.run(&["user", "password", "alice"]).await.stdout.trim().to_owned();
    let mut alice = logged_in(&gateway, "alice", &password).await;
    let client = registered(&gateway).await;
    let page = browser.get(&gateway, &authorize(&gateway, &client, &[])).await;
    assert_eq!(page.status, 200);
    let decision = [("decision", "allow")];

    let replayed = alice.post(&gateway, "/oauth/consent", &page, &decision).await;
    assert_eq!(replayed.status, 403, "made for another user");
    let bare = TestBrowser::default().post(&gateway, "/oauth/consent", &page, &decision).await;
    assert_eq!(bare.status, 403, "No user is logged in.");
    for token in ["", "x", "Zm9ybQ.AAAAAAAAAAAAAAAAAAAAAA"] {
        let forged = TestPage { fields: forge(&page, "token", token), ..TestPage::of_nothing() };
        assert_eq!(browser.post(&gateway, "/oauth/consent", &forged, &decision).await.status, 403, "{token}");
    }
    let fields: Vec<(&str, &str)> = page.fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    let whole: Vec<(&str, &str)> = fields.into_iter().chain(decision).collect();
    for origin in ["http://localhost:5173", "http://evil.example", "null"] {
        let request = HttpRequest::new("POST", "/oauth/consent").form(form(&whole)).header("origin", origin);
        assert_eq!(browser.send(&gateway, request).await.status, 403, "{origin}");
    }
    let as_json = HttpRequest::new("POST", "/oauth/consent").json("{}");
    assert_eq!(browser.send(&gateway, as_json).await.status, 400);
    let page = browser.get(&gateway, &authorize(&gateway, &client, &[])).await;
    assert_eq!(page.status, 200, "nothing of it was an answer");
    browser.post(&gateway, "/oauth/consent", &page, &decision).await.leads_to(REDIRECT);
}

#[tokio::test]
async fn wrong_passwords_are_throttled_by_name_and_by_place() {
    let (gateway, _) = owned_gateway_with(json!({ "limits": { "failed_logins": 3 } })).await;
    let mut browser = TestBrowser::default();
    let page = browser.get(&gateway, "/oauth/login").await;
    let mut statuses = Vec::new();
    for _ in 0..5 {
        let tried = [("name", "kana"), ("password", "a wrong password")];
        statuses.push(browser.post(&gateway, "/oauth/login", &page, &tried).await.status);
    }
    assert_eq!(statuses, [403, 403, 403, 429, 429]);
    let right = [("name", "kana"), ("password", PASSWORD)];
    assert_eq!(browser.post(&gateway, "/oauth/login", &page, &right).await.status, 429, "also the right one waits");
    assert_eq!(me(&gateway, gateway.token()).await.status, 200, "the local token does not");
}

impl TestPage {
    fn of_nothing() -> Self {
        Self { status: 0, text: String::new(), headers: http::HeaderMap::new(), fields: Vec::new() }
    }
}

/// Returns the fields of a page with one of them changed.
fn forge(page: &TestPage, name: &str, value: &str) -> Vec<(String, String)> {
    let other =
        |(own, kept): &(String, String)| (own.clone(), if own == name { value.to_owned() } else { kept.clone() });
    page.fields.iter().map(other).collect()
}

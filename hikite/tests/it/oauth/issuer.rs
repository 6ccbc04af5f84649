//! Tokens of an external issuer, and login with one, whose documents and responses the test controls.

use hikite_testkit::api::{MockApi, MockResponse};
use hikite_testkit::gateway::{HttpRequest, TestGateway};
use hikite_vault::SigningKey;
use serde_json::{Value, json};

use super::{TestBrowser, owned_gateway_with};
use crate::configured;

pub(super) const US: &str = "https://hikite.example/mcp";

pub(crate) struct ExternalIssuer {
    pub(crate) api: MockApi,
    key: SigningKey,
}

fn now() -> u64 {
    let now = std::time::UNIX_EPOCH.elapsed().expect("after 1970");
    now.as_secs()
}

impl ExternalIssuer {
    pub(crate) async fn start() -> Self {
        let issuer = Self { api: MockApi::start().await, key: SigningKey::random().expect("random") };
        let url = |path: &str| issuer.api.url(path);
        let document = json!({
            "issuer": issuer.name(),
            "jwks_uri": url("/keys"),
            "authorization_endpoint": url("/authorize"),
            "token_endpoint": url("/token"),
        });
        issuer.api.answer("/.well-known/openid-configuration", MockResponse::json(&document));
        issuer.api.answer("/keys", MockResponse::json(&json!({ "keys": [issuer.key.jwk()] })));
        issuer
    }

    pub(crate) fn name(&self) -> String {
        self.api.url("").trim_end_matches('/').to_owned()
    }

    pub(crate) fn token(&self, other: &Value) -> String {
        let mut claims = json!({ "iss": self.name(), "aud": US, "sub": "42", "exp": now() + 600, "iat": now() });
        for (name, value) in other.as_object().expect("members") {
            claims[name] = value.clone();
        }
        self.key.sign("JWT", &claims).expect("signed")
    }

    pub(crate) fn login(&self, more: &Value) -> Value {
        let mut login = json!({ "issuer": self.name(), "client_id": "us", "client_secret": "s3cret+/&" });
        for (name, value) in more.as_object().expect("members") {
            login[name] = value.clone();
        }
        json!({ "auth": { "login": { "other": login } } })
    }
}

async fn me(gateway: &TestGateway, token: &str) -> (u16, Value) {
    let request = HttpRequest::new("GET", "/v1/me").header("authorization", &format!("Bearer {token}"));
    let reply = gateway.send(request).await;
    (reply.status, reply.value())
}

#[tokio::test]
async fn whoever_has_a_token_of_a_named_issuer_for_us_is_let_in() {
    let issuer = ExternalIssuer::start().await;
    let rule = json!({ "issuer": issuer.name(), "audience": US, "scopes": ["read"] });
    let config = json!({ "auth": { "issuers": [rule] }, "limits": { "failed_logins": 0 } });
    let gateway = configured(config).await;
    let (status, told) = me(&gateway, &issuer.token(&json!({}))).await;
    assert_eq!((status, &told["subject"]), (200, &json!(format!("{}#42", issuer.name()))), "{told}");
    assert_eq!(told["scopes"], json!(["read"]));
    // Other issuers may use either of the two valid signatures.
    assert_eq!(me(&gateway, &super::twin(&issuer.token(&json!({})))).await.0, 200);
    for wrong in [
        json!({ "aud": "https://other.example" }),
        json!({ "aud": null }),
        json!({ "iss": "https://evil.example" }),
        json!({ "exp": now() - 120 }),
        json!({ "nbf": now() + 600 }),
        json!({ "sub": null }),
    ] {
        assert_eq!(me(&gateway, &issuer.token(&wrong)).await.0, 401, "{wrong}");
    }
    let admin = gateway.send(
        HttpRequest::new("GET", "/v1/tokens")
            .header("authorization", &format!("Bearer {}", issuer.token(&json!({ "scope": "admin" })))),
    );
    assert_eq!(admin.await.status, 403, "nobody is made an admin by a claim");
    let before = issuer.api.count();
    for _ in 0..100 {
        let stranger = SigningKey::random().expect("random");
        let claims = json!({ "iss": issuer.name(), "aud": US, "sub": "42", "exp": now() + 600 });
        assert_eq!(me(&gateway, &stranger.sign("JWT", &claims).expect("signed")).await.0, 401);
    }
    assert!(issuer.api.count() <= before + 2, "unknown keys are not asked for again and again");
}

#[tokio::test]
async fn a_token_of_an_issuer_that_is_not_named_or_names_another_opens_nothing() {
    let issuer = ExternalIssuer::start().await;
    let gateway = configured(json!({})).await;
    assert_eq!(me(&gateway, &issuer.token(&json!({}))).await.0, 401);
    assert_eq!(issuer.api.count(), 0, "nobody is asked whom nobody named");
    let document = json!({ "issuer": "https://evil.example", "jwks_uri": issuer.api.url("/keys") });
    issuer.api.answer("/.well-known/openid-configuration", MockResponse::json(&document));
    let rule = json!({ "issuer": issuer.name(), "audience": US });
    let gateway = configured(json!({ "auth": { "issuers": [rule] } })).await;
    assert_eq!(me(&gateway, &issuer.token(&json!({}))).await.0, 401);
    gateway.wait_for_stderr("describes an issuer other than").await;
}

/// Performs a login at the issuer; the identity claims and the returning browser can be changed.
pub(crate) async fn come_back(
    gateway: &TestGateway,
    issuer: &ExternalIssuer,
    (there, back): (&mut TestBrowser, Option<&mut TestBrowser>),
    claims: Value,
) -> super::TestPage {
    let sent = there.get(gateway, "/oauth/federated/other?next=/connect/x").await;
    let asked = sent.leads_to(&issuer.api.url("/authorize"));
    assert_eq!((&*asked["response_type"], &*asked["code_challenge_method"]), ("code", "S256"));
    let callback = format!("http://{}/oauth/federated/other/callback", gateway.address());
    assert_eq!(asked["redirect_uri"], callback);
    let mut identity = json!({ "aud": "us", "nonce": asked["nonce"], "sub": "7" });
    for (name, value) in claims.as_object().expect("members") {
        identity[name] = value.clone();
    }
    let answer = json!({ "access_token": "x", "token_type": "Bearer", "id_token": issuer.token(&identity) });
    issuer.api.answer("/token", MockResponse::json(&answer));
    let path = format!("/oauth/federated/other/callback?code=c1&state={}", asked["state"]);
    back.unwrap_or(there).get(gateway, &path).await
}

#[tokio::test]
async fn somebody_logs_in_with_another_issuer_and_is_somebody_of_their_own() {
    let issuer = ExternalIssuer::start().await;
    let (gateway, _) = owned_gateway_with(issuer.login(&json!({}))).await;
    let page = TestBrowser::default().get(&gateway, "/oauth/login").await;
    assert!(page.text.contains("/oauth/federated/other?next="), "{}", page.text);
    let mut browser = TestBrowser::default();
    let claims = json!({ "email": "kana", "email_verified": true, "preferred_username": "kana" });
    let done = come_back(&gateway, &issuer, (&mut browser, None), claims.clone()).await;
    done.leads_to("/connect/x");
    let sent = issuer.api.last_of("/token");
    assert_eq!(sent.header("authorization"), Some("Basic dXM6czNjcmV0JTJCJTJGJTI2"));
    let users = gateway.send(gateway.request("GET", "/v1/users")).await.value();
    let shown = users.to_string();
    assert!(shown.contains(&format!("{}#7", issuer.name())), "{shown}");
    let page = browser.get(&gateway, "/oauth/login").await;
    assert!(page.text.contains("<p>other-7</p>"), "the owner is called kana, and stays who they are: {}", page.text);
    let mut again = TestBrowser::default();
    come_back(&gateway, &issuer, (&mut again, None), claims).await.leads_to("/connect/x");
    let users_now = gateway.send(gateway.request("GET", "/v1/users")).await.value();
    assert_eq!(users_now, users, "the same person comes again");
}

#[tokio::test]
async fn an_identity_that_is_not_for_this_login_is_refused() {
    let issuer = ExternalIssuer::start().await;
    let mut config = issuer.login(&json!({ "allow": ["*@example.com"] }));
    config["limits"] = json!({ "failed_logins": 0 });
    let (gateway, _) = owned_gateway_with(config).await;
    let good = json!({ "email": "a@example.com", "email_verified": true });
    let with = |name: &str, value: Value| {
        let mut claims = good.clone();
        claims[name] = value;
        claims
    };
    for (claims, status) in [
        (with("nonce", json!("of another time")), 401),
        (with("nonce", json!(null)), 401),
        (with("aud", json!("somebody else")), 401),
        (with("aud", json!(["us", "them"])), 401),
        (with("azp", json!("them")), 401),
        (with("iss", json!("https://evil.example")), 401),
        (with("exp", json!(now() - 120)), 401),
        (with("email_verified", json!(false)), 403),
        (with("email", json!("a@evil.example")), 403),
    ] {
        let page = come_back(&gateway, &issuer, (&mut TestBrowser::default(), None), claims.clone()).await;
        assert_eq!(page.status, status, "{claims} {}", page.text);
    }
    let mut other = TestBrowser::default();
    other.get(&gateway, "/oauth/login").await;
    let page = come_back(&gateway, &issuer, (&mut TestBrowser::default(), Some(&mut other)), good.clone()).await;
    assert_eq!(page.status, 401, "the state of another browser: {}", page.text);
    let mut browser = TestBrowser::default();
    come_back(&gateway, &issuer, (&mut browser, None), good).await.leads_to("/connect/x");
    for path in [
        "/oauth/federated/other/callback?code=c1&state=made-up",
        "/oauth/federated/other/callback?code=c1",
        "/oauth/federated/other/callback?error=access_denied",
    ] {
        assert_eq!(browser.get(&gateway, path).await.status, 401, "{path}");
    }
    assert_eq!(browser.get(&gateway, "/oauth/federated/nobody").await.status, 404);
}

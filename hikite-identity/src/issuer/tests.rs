//! Issuers that serve their documents from a table, and every kind of token that must be rejected.

use hikite_core::error::{Error, ErrorKind};
use hikite_core::fetch::{AddressTrust, FetchResponse, FormBody};
use hikite_core::source::BoxFuture;
use hikite_vault::SigningKey;
use parking_lot::Mutex;
use serde_json::json;

use super::*;

const ISSUER: &str = "https://i.example/realm";
const US: &str = "https://h.example/mcp";
const NOW: u64 = 1_000_000_000;

/// A `DocumentFetcher` that answers from a table and records the requests.
#[derive(Debug, Default)]
struct FetchTable {
    documents: Mutex<HashMap<String, Value>>,
    asked: Mutex<Vec<(String, AddressTrust)>>,
}

impl FetchTable {
    fn put(&self, url: &str, document: Value) {
        self.documents.lock().insert(url.into(), document);
    }

    fn asked(&self) -> Vec<(String, AddressTrust)> {
        self.asked.lock().clone()
    }
}

impl DocumentFetcher for FetchTable {
    fn get<'a>(&'a self, url: &'a str, word: AddressTrust) -> BoxFuture<'a, Result<Value, Error>> {
        self.asked.lock().push((url.into(), word));
        let found = self.documents.lock().get(url).cloned();
        let missing = || Error::new(ErrorKind::UpstreamUnavailable, "there is nothing");
        Box::pin(std::future::ready(found.ok_or_else(missing)))
    }

    fn post<'a>(&'a self, _: &'a str, _: AddressTrust, _: FormBody) -> BoxFuture<'a, Result<FetchResponse, Error>> {
        Box::pin(std::future::ready(Err(Error::new(ErrorKind::Internal, "nobody posts here"))))
    }
}

struct IssuerFixture {
    table: Arc<FetchTable>,
    key: SigningKey,
    issuers: Issuers,
}

fn rule() -> IssuerRule {
    IssuerRule {
        issuer: ISSUER.into(),
        audience: US.into(),
        jwks_url: None,
        subject_claim: "sub".into(),
        scopes: Scopes::DEFAULT,
        scope_claim: None,
        allow: Vec::new(),
        trust_email: false,
        project: None,
    }
}

fn fixture(rule: IssuerRule) -> IssuerFixture {
    let (table, key) = (Arc::new(FetchTable::default()), SigningKey::random().expect("random"));
    let document = json!({ "issuer": ISSUER, "jwks_uri": "https://i.example/keys" });
    table.put("https://i.example/realm/.well-known/openid-configuration", document);
    table.put("https://i.example/keys", json!({ "keys": [key.jwk()] }));
    let issuers = Issuers::new(Arc::clone(&table) as Arc<dyn DocumentFetcher>);
    issuers.follow(vec![rule]);
    IssuerFixture { table, key, issuers }
}

fn claims() -> Value {
    json!({ "iss": ISSUER, "aud": US, "sub": "42", "exp": NOW / 1000 + 600, "iat": NOW / 1000 })
}

impl IssuerFixture {
    fn token(&self, change: impl FnOnce(&mut Value)) -> String {
        let mut claims = claims();
        change(&mut claims);
        self.key.sign("JWT", &claims).expect("signed")
    }

    async fn bearer(&self, token: &str) -> Option<Caller> {
        self.issuers.look_at(token, NOW).await;
        self.issuers.bearer_at(token, NOW)
    }
}

fn forged(header: &Value, claims: &Value, signature: &str) -> String {
    use base64::Engine;
    let encode = |value: &Value| base64::prelude::BASE64_URL_SAFE_NO_PAD.encode(value.to_string());
    format!("{}.{}.{signature}", encode(header), encode(claims))
}

#[tokio::test]
async fn whoever_has_a_token_for_us_is_known_by_issuer_and_subject() {
    let fixture = fixture(rule());
    let caller = fixture.bearer(&fixture.token(|_| {})).await.expect("let in");
    assert_eq!(&*caller.subject, "https://i.example/realm#42");
    assert_eq!((caller.scopes, caller.project, caller.token), (Scopes::DEFAULT, None, None));
    let asked = fixture.table.asked();
    assert_eq!(asked.len(), 2, "{asked:?}");
    assert!(fixture.bearer(&fixture.token(|claims| claims["sub"] = json!("43"))).await.is_some());
    assert_eq!(fixture.table.asked().len(), 2, "the keys are at hand");
}

#[tokio::test]
async fn no_subject_of_theirs_is_one_of_ours() {
    let fixture = fixture(rule());
    for name in ["owner", "alice", "token:x", "hikite"] {
        let caller = fixture.bearer(&fixture.token(|claims| claims["sub"] = json!(name))).await.expect("let in");
        assert_eq!(*caller.subject, *format!("{ISSUER}#{name}"));
        assert!(!caller.is_admin());
    }
    for wrong in [json!(""), json!("a\nb"), json!(7), json!(null), json!("x".repeat(600))] {
        assert_eq!(fixture.bearer(&fixture.token(|claims| claims["sub"] = wrong)).await, None);
    }
}

#[tokio::test]
async fn a_token_that_is_not_for_us_or_not_for_now_lets_nobody_in() {
    let fixture = fixture(rule());
    let now = NOW / 1000;
    for (member, value) in [
        ("aud", json!("https://other.example/mcp")),
        ("aud", json!("https://h.example/mcp/")),
        ("aud", json!(["https://other.example"])),
        ("aud", json!(null)),
        ("iss", json!("https://i.example/realm/")),
        ("iss", json!("https://evil.example")),
        ("iss", json!(null)),
        ("exp", json!(now - 61)),
        ("exp", json!(null)),
        ("nbf", json!(now + 3600)),
        ("iat", json!(now + 3600)),
    ] {
        let token = fixture.token(|claims| claims[member] = value.clone());
        assert_eq!(fixture.bearer(&token).await, None, "{member}: {value}");
    }
    let good = fixture.token(|_| {});
    assert!(fixture.bearer(&good).await.is_some());
    assert_eq!(fixture.issuers.bearer_at(&good, NOW + 661_000), None, "it ends, also for who knows it");
    let other = fixture.key.sign("logout+jwt", &claims()).expect("signed");
    assert_eq!(fixture.bearer(&other).await, None, "it is for another end");
}

#[tokio::test]
async fn no_algorithm_but_that_of_the_key_counts() {
    let fixture = fixture(rule());
    let good = fixture.token(|_| {});
    assert!(fixture.bearer(&good).await.is_some());
    let signature = good.rsplit('.').next().expect("a signature");
    for alg in ["none", "None", "", "HS256", "HS512", "RS256", "ES384", "EdDSA"] {
        let header = json!({ "alg": alg, "typ": "JWT", "kid": fixture.key.kid() });
        for signature in [signature, ""] {
            assert_eq!(fixture.bearer(&forged(&header, &claims(), signature)).await, None, "{alg}");
        }
    }
    // HS256 with the public key as its secret: the classic algorithm confusion attack.
    let header = json!({ "alg": "HS256", "typ": "JWT", "kid": fixture.key.kid() });
    let digest = Sha256::digest(fixture.key.jwk().to_string());
    let forged = forged(&header, &claims(), &hikite_core::hex::hex(&digest));
    assert_eq!(fixture.bearer(&forged).await, None);
    let stranger = SigningKey::random().expect("random").sign("JWT", &claims()).expect("signed");
    assert_eq!(fixture.bearer(&stranger).await, None);
}

#[tokio::test]
async fn a_storm_of_unknown_keys_is_not_passed_on() {
    let fixture = fixture(rule());
    fixture.bearer(&fixture.token(|_| {})).await.expect("let in");
    let before = fixture.table.asked().len();
    let look = async |at: u64, number: usize| {
        let header = json!({ "alg": "ES256", "kid": format!("k{number}") });
        fixture.issuers.look_at(&forged(&header, &claims(), "AAAA"), at).await;
    };
    for number in 0..500 {
        look(NOW + 29_000, number).await;
    }
    assert_eq!(fixture.table.asked().len(), before, "they were read less than half a minute ago");
    for number in 0..500 {
        look(NOW + 31_000, number).await;
    }
    assert_eq!(fixture.table.asked().len(), before + 2, "once more, and then not for a while");
}

#[tokio::test]
async fn a_new_key_is_found_and_an_old_one_is_forgotten() {
    let mut fixture = fixture(rule());
    let old = fixture.token(|_| {});
    assert!(fixture.bearer(&old).await.is_some());
    fixture.key = SigningKey::random().expect("random");
    fixture.table.put("https://i.example/keys", json!({ "keys": [fixture.key.jwk()] }));
    let new = fixture.token(|claims| claims["exp"] = json!(NOW));
    fixture.issuers.look_at(&new, NOW + 31_000).await;
    assert!(fixture.issuers.bearer_at(&new, NOW + 31_000).is_some());
    let another = fixture.token(|claims| (claims["exp"], claims["sub"]) = (json!(NOW), json!("7")));
    fixture.table.documents.lock().clear();
    for minutes in [11, 40] {
        fixture.issuers.look_at(&another, NOW + minutes * 60_000).await;
        assert!(fixture.issuers.bearer_at(&another, NOW + minutes * 60_000).is_some(), "the issuer may rest");
    }
    let late = fixture.token(|claims| (claims["exp"], claims["sub"]) = (json!(NOW), json!("8")));
    fixture.issuers.look_at(&late, NOW + 62 * 60_000).await;
    assert_eq!(fixture.issuers.bearer_at(&late, NOW + 62 * 60_000), None, "but not for ever");
}

#[tokio::test]
async fn a_document_of_another_issuer_does_not_count() {
    let fixture = fixture(rule());
    for wrong in ["https://i.example", "https://i.example/realm/", "https://evil.example"] {
        let document = json!({ "issuer": wrong, "jwks_uri": "https://i.example/keys" });
        fixture.table.put("https://i.example/realm/.well-known/openid-configuration", document);
        fixture.issuers.follow(vec![rule()]);
        assert_eq!(fixture.bearer(&fixture.token(|_| {})).await, None, "{wrong}");
    }
}

#[tokio::test]
async fn the_place_of_the_older_standard_is_looked_at_too_and_foreign_addresses_are_strangers() {
    let fixture = fixture(rule());
    fixture.table.documents.lock().remove("https://i.example/realm/.well-known/openid-configuration");
    let elsewhere = json!({ "issuer": ISSUER, "jwks_uri": "https://keys.example/set" });
    fixture.table.put("https://i.example/.well-known/oauth-authorization-server/realm", elsewhere);
    fixture.table.put("https://keys.example/set", json!({ "keys": [fixture.key.jwk()] }));
    assert!(fixture.bearer(&fixture.token(|_| {})).await.is_some());
    let asked = fixture.table.asked();
    assert_eq!(asked.last(), Some(&("https://keys.example/set".to_owned(), AddressTrust::Untrusted)));
    let plain = json!({ "issuer": ISSUER, "jwks_uri": "http://keys.example/set" });
    fixture.table.put("https://i.example/.well-known/oauth-authorization-server/realm", plain);
    fixture.issuers.follow(vec![rule()]);
    assert_eq!(fixture.bearer(&fixture.token(|_| {})).await, None, "keys do not travel in the open");
    fixture.issuers.follow(vec![IssuerRule { jwks_url: Some("https://i.example/keys".into()), ..rule() }]);
    assert!(fixture.bearer(&fixture.token(|_| {})).await.is_some());
    assert_eq!(fixture.table.asked().last(), Some(&("https://i.example/keys".to_owned(), AddressTrust::Configured)));
}

#[tokio::test]
async fn only_those_are_let_in_whom_the_owner_allows() {
    let allow = vec![Pattern::parse("*@example.com").expect("a pattern")];
    let fixture = fixture(IssuerRule { allow: allow.clone(), ..rule() });
    let check = async |told: Value, expected: bool| {
        let token = fixture.token(|claims| {
            for (name, value) in told.as_object().expect("members") {
                claims[name] = value.clone();
            }
        });
        assert_eq!(fixture.bearer(&token).await.is_some(), expected, "{told}");
    };
    check(json!({}), false).await;
    check(json!({ "email": "a@example.com" }), false).await;
    check(json!({ "email": "a@example.com", "email_verified": false }), false).await;
    check(json!({ "email": "a@example.com", "email_verified": "no" }), false).await;
    check(json!({ "email": "a@example.com.evil.example", "email_verified": true }), false).await;
    check(json!({ "email": "A@Example.com", "email_verified": true }), true).await;
    let trusting = self::fixture(IssuerRule { allow, trust_email: true, subject_claim: "email".into(), ..rule() });
    let token = trusting.token(|claims| claims["email"] = json!("a@example.com"));
    let caller = trusting.bearer(&token).await.expect("let in");
    assert_eq!(&*caller.subject, "https://i.example/realm#a@example.com");
}

#[tokio::test]
async fn scopes_come_from_the_token_within_what_the_owner_allows() {
    let named = |scopes| IssuerRule { scopes, scope_claim: Some("scope".into()), ..rule() };
    for (most, told, expected) in [
        (Scopes::DEFAULT, json!("read call admin"), Scopes::DEFAULT),
        (Scopes::ALL, json!("read admin"), Scopes::READ.with(Scopes::ADMIN)),
        (Scopes::READ, json!(["call", "read", 7]), Scopes::READ),
        (Scopes::ALL, json!(null), Scopes::NONE),
        (Scopes::ALL, json!("everything"), Scopes::NONE),
    ] {
        let fixture = fixture(named(most));
        let caller = fixture.bearer(&fixture.token(|claims| claims["scope"] = told.clone())).await.expect("let in");
        assert_eq!(caller.scopes, expected, "{told}");
    }
    let inside = fixture(IssuerRule { scopes: Scopes::ALL, project: Some("work".into()), ..rule() });
    let caller = inside.bearer(&inside.token(|_| {})).await.expect("let in");
    assert_eq!((caller.project.as_deref(), caller.scopes), (Some("work"), Scopes::DEFAULT));
}

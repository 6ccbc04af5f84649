//! Passkeys over HTTP, with a software authenticator in place of a browser's.

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_ASN1_SIGNING, EcdsaKeyPair, KeyPair};
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use hikite_testkit::gateway::{HttpReply, HttpRequest, TestGateway};
use serde_json::{Value, json};

use super::{PASSWORD, TestBrowser, TestPage, logged_in, owned_gateway};

pub(super) struct PasskeyAuthenticator {
    pair: EcdsaKeyPair,
    origin: String,
    counter: u32,
    handle: Value,
}

fn text(bytes: &[u8]) -> String {
    BASE64_URL_SAFE_NO_PAD.encode(bytes)
}

impl PasskeyAuthenticator {
    fn new(gateway: &TestGateway) -> Self {
        let algorithm = &ECDSA_P256_SHA256_ASN1_SIGNING;
        let pkcs8 = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new()).expect("a key");
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, pkcs8.as_ref()).expect("a key");
        let origin = format!("http://localhost:{}", gateway.address().port());
        Self { pair, origin, counter: 0, handle: Value::Null }
    }

    fn data(&mut self, site: &str, flags: u8, more: &[u8]) -> Vec<u8> {
        self.counter += 1;
        let site = digest(&SHA256, site.as_bytes());
        [site.as_ref(), &[flags], &self.counter.to_be_bytes(), more].concat()
    }

    fn client(&self, kind: &str, options: &Value) -> String {
        json!({ "type": kind, "challenge": options["challenge"], "origin": self.origin }).to_string()
    }

    fn create(&mut self, options: &Value) -> Value {
        let public = self.pair.public_key().as_ref()[1..].to_vec();
        let (x, y) = public.split_at(32);
        let key = [&[0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32][..], x, &[0x22, 0x58, 32], y].concat();
        let site = options["rp"]["id"].as_str().expect("a site").to_owned();
        let data = self.data(&site, 0x45, &[&[0; 16][..], &[0, 3], b"key", &key].concat());
        let length = u16::try_from(data.len()).expect("short").to_be_bytes();
        let object = [&b"\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59"[..], &length, &data].concat();
        self.handle = options["user"]["id"].clone();
        json!({ "id": text(b"key"), "rawId": text(b"key"), "type": "public-key", "response": {
            "clientDataJSON": text(self.client("webauthn.create", options).as_bytes()),
            "attestationObject": text(&object),
        }})
    }

    pub(super) fn get(&mut self, options: &Value) -> Value {
        let client = self.client("webauthn.get", options);
        let site = options["rpId"].as_str().expect("a site").to_owned();
        let data = self.data(&site, 0x05, &[]);
        let message = [&data[..], digest(&SHA256, client.as_bytes()).as_ref()].concat();
        let signature = self.pair.sign(&SystemRandom::new(), &message).expect("signed");
        json!({ "id": text(b"key"), "rawId": text(b"key"), "type": "public-key", "response": {
            "clientDataJSON": text(client.as_bytes()),
            "authenticatorData": text(&data),
            "signature": text(signature.as_ref()),
            "userHandle": self.handle,
        }})
    }
}

/// Returns the token that a page's script uses.
pub(super) fn token(page: &TestPage) -> String {
    let (_, rest) = page.text.split_once("data-token=\"").unwrap_or_else(|| panic!("{}", page.text));
    rest.split_once('"').expect("an end").0.to_owned()
}

/// Sends a request like the script, on the page's origin.
pub(super) async fn post(browser: &mut TestBrowser, gateway: &TestGateway, path: &str, body: Value) -> HttpReply {
    let origin = format!("http://localhost:{}", gateway.address().port());
    let request = HttpRequest::new("POST", path)
        .json(body.to_string())
        .header("host", origin.trim_start_matches("http://"))
        .header("origin", &origin);
    browser.send(gateway, request).await
}

pub(super) async fn registered(gateway: &TestGateway, browser: &mut TestBrowser) -> PasskeyAuthenticator {
    let page = browser.get(gateway, "/oauth/passkey").await;
    let token = token(&page);
    let options = post(browser, gateway, "/oauth/passkey/register/options", json!({ "token": token })).await;
    assert_eq!(options.status, 200, "{}", options.text());
    let mut authenticator = PasskeyAuthenticator::new(gateway);
    let answer = authenticator.create(&options.value());
    let body = json!({ "token": token, "answer": answer, "name": "my <laptop>" });
    let made = post(browser, gateway, "/oauth/passkey/register", body.clone()).await;
    assert_eq!((made.status, &made.value()["name"]), (200, &json!("my <laptop>")), "{}", made.text());
    let again = post(browser, gateway, "/oauth/passkey/register", body).await;
    assert_eq!(again.status, 401, "a question is answered once");
    authenticator
}

#[tokio::test]
async fn a_key_that_was_registered_logs_its_user_in() {
    let (gateway, mut owner) = owned_gateway().await;
    let mut authenticator = registered(&gateway, &mut owner).await;
    let listed = owner.get(&gateway, "/oauth/passkey").await;
    assert!(listed.text.contains("my &lt;laptop&gt;"), "{}", listed.text);
    let policy = listed.header("content-security-policy").to_owned();
    assert!(policy.contains("script-src 'self'") && !policy.contains("unsafe"), "{policy}");

    let mut browser = TestBrowser::default();
    let page = browser.get(&gateway, "/oauth/login?next=/connect/x").await;
    let token = token(&page);
    let asked = post(&mut browser, &gateway, "/oauth/passkey/login/options", json!({ "token": token })).await;
    assert_eq!(asked.status, 200, "{}", asked.text());
    let answer = authenticator.get(&asked.value());
    let body = json!({ "token": token, "answer": answer, "next": "/connect/x" });
    let welcome = post(&mut browser, &gateway, "/oauth/passkey/login", body.clone()).await;
    assert_eq!((welcome.status, &welcome.value()["next"]), (200, &json!("/connect/x")), "{}", welcome.text());
    assert!(browser.get(&gateway, "/oauth/login").await.text.contains("kana"));
    let mut other = TestBrowser::default();
    other.get(&gateway, "/oauth/login").await;
    let replayed = post(&mut other, &gateway, "/oauth/passkey/login", body).await;
    assert_eq!(replayed.status, 403, "the page was made for another browser");

    let id = text(b"key");
    let page = browser.get(&gateway, "/oauth/passkey").await;
    let gone =
        post(&mut browser, &gateway, "/oauth/passkey/remove", json!({ "token": self::token(&page), "id": id })).await;
    assert_eq!(gone.status, 200, "{}", gone.text());
    let mut late = TestBrowser::default();
    let page = late.get(&gateway, "/oauth/login").await;
    let token = self::token(&page);
    let asked = post(&mut late, &gateway, "/oauth/passkey/login/options", json!({ "token": token })).await;
    let answer = authenticator.get(&asked.value());
    let refused = post(&mut late, &gateway, "/oauth/passkey/login", json!({ "token": token, "answer": answer })).await;
    assert_eq!(refused.status, 401, "{}", refused.text());
}

#[tokio::test]
async fn nothing_of_it_works_from_elsewhere_or_for_somebody_else() {
    let (gateway, mut owner) = owned_gateway().await;
    let mut authenticator = registered(&gateway, &mut owner).await;
    let mut stranger = TestBrowser::default();
    let page = stranger.get(&gateway, "/oauth/login").await;
    let token = token(&page);
    for path in ["/oauth/passkey/register/options", "/oauth/passkey/register", "/oauth/passkey/remove"] {
        let reply = post(&mut stranger, &gateway, path, json!({ "token": token, "id": text(b"key") })).await;
        assert_eq!(reply.status, 401, "{path}: nobody is logged in");
    }
    for (path, body) in [
        ("/oauth/passkey/login/options", json!({})),
        ("/oauth/passkey/login/options", json!({ "token": "x" })),
        ("/oauth/passkey/login", json!({ "token": "x", "answer": {} })),
    ] {
        assert_eq!(post(&mut stranger, &gateway, path, body).await.status, 403, "{path} without the page's token");
    }
    let foreign = HttpRequest::new("POST", "/oauth/passkey/login/options")
        .json(json!({ "token": token }).to_string())
        .header("origin", "https://evil.example");
    assert_eq!(stranger.send(&gateway, foreign).await.status, 403);
    let plain = HttpRequest::new("POST", "/oauth/passkey/login/options").form(json!({ "token": token }).to_string());
    assert_eq!(stranger.send(&gateway, plain).await.status, 403, "a form is no script of ours");

    let asked = post(&mut stranger, &gateway, "/oauth/passkey/login/options", json!({ "token": token })).await;
    authenticator.origin = "https://evil.example".into();
    let answer = authenticator.get(&asked.value());
    let body = json!({ "token": token, "answer": answer });
    assert_eq!(post(&mut stranger, &gateway, "/oauth/passkey/login", body).await.status, 401);
    for answer in [json!(null), json!({}), json!({ "rawId": "x" }), json!("x".repeat(1000))] {
        let body = json!({ "token": token, "answer": answer });
        assert_eq!(post(&mut stranger, &gateway, "/oauth/passkey/login", body).await.status, 401);
    }
}

#[tokio::test]
async fn a_user_who_is_gone_is_not_let_in_by_a_key() {
    let (gateway, _) = owned_gateway().await;
    let alice = json!({ "name": "alice", "password": PASSWORD });
    let made = gateway.send(gateway.request("POST", "/v1/users").json(alice.to_string())).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let mut browser = logged_in(&gateway, "alice", PASSWORD).await;
    let mut authenticator = registered(&gateway, &mut browser).await;
    let gone = gateway.send(gateway.request("DELETE", "/v1/users/alice")).await;
    assert!(gone.status < 300, "{}", gone.text());
    let mut late = TestBrowser::default();
    let page = late.get(&gateway, "/oauth/login").await;
    let token = token(&page);
    let asked = post(&mut late, &gateway, "/oauth/passkey/login/options", json!({ "token": token })).await;
    let answer = authenticator.get(&asked.value());
    let body = json!({ "token": token, "answer": answer });
    assert_eq!(post(&mut late, &gateway, "/oauth/passkey/login", body).await.status, 401);
}

/// Returns `true` if a passkey logs in at a new browser.
async fn logs_in(gateway: &TestGateway, authenticator: &mut PasskeyAuthenticator) -> bool {
    let mut browser = TestBrowser::default();
    let token = token(&browser.get(gateway, "/oauth/login").await);
    let asked = post(&mut browser, gateway, "/oauth/passkey/login/options", json!({ "token": token })).await;
    let answer = authenticator.get(&asked.value());
    let body = json!({ "token": token, "answer": answer });
    post(&mut browser, gateway, "/oauth/passkey/login", body).await.status == 200
}

#[tokio::test]
async fn a_key_outlives_a_new_password_unless_its_removal_is_asked_for() {
    let (gateway, _) = owned_gateway().await;
    let alice = json!({ "name": "alice", "password": PASSWORD });
    let made = gateway.send(gateway.request("POST", "/v1/users").json(alice.to_string())).await;
    assert_eq!(made.status, 201, "{}", made.text());
    let mut browser = logged_in(&gateway, "alice", PASSWORD).await;
    let mut key = registered(&gateway, &mut browser).await;
    for (form, is_let_in) in [
        (json!({ "password": "another password" }), true),
        (json!({ "disabled": true }), false),
        (json!({ "disabled": false }), true),
        (json!({ "name": "alicia" }), true),
        (json!({ "password": "yet another one", "removePasskeys": true }), false),
    ] {
        let users = gateway.send(gateway.request("GET", "/v1/users")).await.value();
        let id = users["users"][1]["id"].as_str().expect("an id").to_owned();
        let request = gateway.request("PATCH", &format!("/v1/users/{id}")).json(form.to_string());
        assert_eq!(gateway.send(request).await.status, 200, "{form}");
        assert_eq!(logs_in(&gateway, &mut key).await, is_let_in, "{form}");
    }
}

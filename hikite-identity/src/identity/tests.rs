//! Users, logins, clients, codes and grants, on a store in memory.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use futures_util::future::join_all;
use hikite_core::caller::{OWNER, Scopes};
use hikite_core::error::ErrorKind;
use hikite_core::json::Raw;
use hikite_core::share::Allowance;
use hikite_store::StoreUrl;
use hikite_vault::{KeyRing, MasterKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::*;

mod client;
mod crash;
mod grant;
mod token;

const PASSWORD: &str = "correct horse battery";
const REDIRECT: &str = "http://127.0.0.1:3000/callback";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

/// Builds an identity with an owner called `kana`.
async fn identity_with_owner() -> Arc<Identity> {
    let identity = empty().await;
    let token = identity.users().make_setup_token(false).await.expect("a store").expect("no owner yet");
    identity.users().set_up(token.expose(), "kana", PASSWORD).await.expect("set up");
    identity
}

async fn empty() -> Arc<Identity> {
    let ring = KeyRing::new(MasterKey::random().expect("random"), Vec::new());
    let store = Store::open(&StoreUrl::memory()).await.expect("a store");
    let identity = Identity::new(Arc::new(SecretStore::new(store, ring)));
    identity.prepare().await.expect("keys");
    Arc::new(identity)
}

/// Builds a second process on the same store and keys.
async fn second_process(identity: &Identity) -> Identity {
    let other = Identity::new(Arc::clone(&identity.secret_store));
    other.prepare().await.expect("keys");
    other
}

fn terms() -> TokenTerms {
    TokenTerms {
        issuer: "https://h.example".into(),
        audience: "https://h.example/mcp".into(),
        access: Duration::from_secs(3600),
        refresh: Duration::from_secs(30 * 86_400),
    }
}

fn form(value: &Value) -> hikite_core::json::Object {
    Raw::of(value).object().expect("an object")
}

fn client_form() -> NewClient {
    NewClient { name: "a client".into(), redirect_uris: vec![REDIRECT.into()], confidential: false, own: None }
}

fn room(from: &str) -> ClientQuota {
    ClientQuota { from: from.into(), allowance: Allowance::of(1000, 50) }
}

async fn registered(identity: &Identity) -> ClientRecord {
    identity.clients().register(client_form(), &room("192.0.2.1")).await.expect("registered").0
}

async fn code_for(identity: &Identity, client: &ClientRecord, subject: &str, scopes: Scopes) -> String {
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
    let ask = ApprovedRequest {
        subject,
        client: &client.id,
        redirect: REDIRECT,
        challenge: &challenge,
        scopes,
        project: None,
    };
    identity.tokens().issue_code(ask).await.expect("a code").expose().to_owned()
}

fn code<'a>(code: &'a str, client: &'a ClientRecord) -> CodeExchange<'a> {
    CodeExchange {
        code,
        client: &client.id,
        redirect: Some(REDIRECT),
        verifier: VERIFIER,
        target: ResourceTarget::Unspecified,
    }
}

async fn pair(identity: &Identity, client: &ClientRecord, subject: &str, scopes: Scopes) -> TokenPair {
    let text = code_for(identity, client, subject, scopes).await;
    identity.tokens().redeem_code(&terms(), code(&text, client)).await.expect("tokens")
}

#[track_caller]
fn is_denied<T: std::fmt::Debug>(outcome: &Result<T, TokenError>) {
    assert!(matches!(outcome, Err(TokenError::Grant(_) | TokenError::Replay(_))), "{outcome:?}");
}

#[tokio::test]
async fn the_set_up_link_makes_one_owner_once() {
    let identity = empty().await;
    let link = async |alone| identity.users().make_setup_token(alone).await.expect("a store");
    let first = link(false).await.expect("no owner yet");
    let second_process = link(false).await.expect("no owner yet");
    assert!(identity.users().is_setup_token(first.expose()).await.expect("a store"), "another process printed it");
    let second = link(true).await.expect("no owner yet");
    let refused = async |token: &str, name: &str, password: &str| {
        identity.users().set_up(token, name, password).await.expect_err("refused").kind
    };
    for old in [&first, &second_process] {
        assert_eq!(refused(old.expose(), "kana", PASSWORD).await, ErrorKind::Authorization, "a newer one is there");
    }
    assert_eq!(refused("", "kana", PASSWORD).await, ErrorKind::Authorization);
    for (name, password) in [("", PASSWORD), ("Kana", PASSWORD), ("ka na", PASSWORD), ("kana", "short")] {
        assert_eq!(refused(second.expose(), name, password).await, ErrorKind::Validation, "{name}");
    }
    let all = (0..5).map(|_| identity.users().set_up(second.expose(), "kana", PASSWORD));
    let made: Vec<_> = join_all(all).await.into_iter().filter_map(Result::ok).collect();
    assert_eq!(made.len(), 1, "of all who try at once one is the owner");
    assert_eq!((&*made[0].subject, made[0].role), (OWNER, Role::Owner));
    assert!(link(false).await.is_none(), "there is an owner");
}

#[tokio::test]
async fn only_the_right_password_of_a_user_who_may_come_logs_in() {
    let identity = identity_with_owner().await;
    let (_, made) =
        identity.users().add(&form(&json!({ "name": "alice", "password": "alice's password" }))).await.expect("made");
    assert!(made.is_none());
    let name = async |name: &str, password: &str| {
        let user = identity.logins().log_in(name, password).await.expect("a store");
        user.map(|user| user.name.to_string())
    };
    assert_eq!(name("kana", PASSWORD).await.as_deref(), Some("kana"));
    assert_eq!(name("alice", "alice's password").await.as_deref(), Some("alice"));
    for (user, wrong) in
        [("kana", "alice's password"), ("alice", ""), ("nobody", PASSWORD), ("", ""), ("owner", PASSWORD)]
    {
        assert_eq!(name(user, wrong).await, None, "{user}");
    }
    identity
        .users()
        .change("alice", &form(&json!({ "disabled": true })), UserAuthority::Owner, None)
        .await
        .expect("changed");
    assert_eq!(name("alice", "alice's password").await, None, "locked out");
}

#[tokio::test]
async fn what_is_wrong_with_a_user_is_told_at_once() {
    let identity = identity_with_owner().await;
    for (wrong, pointers) in [
        (json!({}), vec!["/name"]),
        (json!({ "name": "owner" }), vec!["/name"]),
        (json!({ "name": "A", "role": "king", "password": "x" }), vec!["/name", "/role", "/password"]),
        (json!({ "name": "bob", "role": "owner", "nam": 1 }), vec!["/role", "/nam"]),
        (json!({ "name": "bob", "permissions": { "alow": [] } }), vec!["/permissions/alow"]),
    ] {
        let error = identity.users().add(&form(&wrong)).await.expect_err("refused");
        let details = error.details.expect("details").value();
        let found: Vec<&str> =
            details.as_array().expect("a list").iter().filter_map(|fault| fault["pointer"].as_str()).collect();
        assert_eq!(found, pointers, "{wrong}");
    }
    identity.users().add(&form(&json!({ "name": "bob" }))).await.expect("made");
    let twice = identity.users().add(&form(&json!({ "name": "bob" }))).await.expect_err("refused");
    assert_eq!(twice.kind, ErrorKind::Conflict);
    for change in [json!({ "role": "member" }), json!({ "disabled": true })] {
        assert!(
            identity.users().change("kana", &form(&change), UserAuthority::Owner, None).await.is_err(),
            "the owner stays: {change}"
        );
    }
    assert!(
        identity.users().change("bob", &form(&json!({ "role": "owner" })), UserAuthority::Owner, None).await.is_err()
    );
}

#[tokio::test]
async fn a_login_is_good_for_its_user_until_it_ends() {
    let identity = identity_with_owner().await;
    let owner = identity.users().of_subject(OWNER).expect("the owner");
    let login = identity.logins().begin(&owner).await.expect("logged in");
    let cookie = login.secret.expose();
    assert_eq!(cookie.len(), 64);
    let other = second_process(&identity).await;
    let found = other.logins().get(cookie).await.expect("a store").expect("known in another process");
    assert_eq!(&*found.user.subject, OWNER);
    assert!(identity.logins().get("").await.expect("a store").is_none());
    assert!(identity.logins().get(&hash(cookie)).await.expect("a store").is_none(), "what is kept opens nothing");
    let token = identity.logins().form_token(cookie).await.expect("a token");
    assert!(other.logins().is_form_token(cookie, &token).await.expect("keys"));
    let another = identity.logins().begin(&owner).await.expect("logged in");
    assert!(!identity.logins().is_form_token(another.secret.expose(), &token).await.expect("keys"), "of another login");
    identity.logins().end(cookie).await.expect("ended");
    assert!(identity.logins().get(cookie).await.expect("a store").is_none());
    identity
        .users()
        .change("kana", &form(&json!({ "password": "another password" })), UserAuthority::Owner, None)
        .await
        .expect("changed");
    let another = identity.logins().get(another.secret.expose()).await.expect("a store");
    assert!(another.is_none(), "another password ends all logins");
}

#[tokio::test]
async fn consent_is_for_one_client_at_one_place() {
    let identity = identity_with_owner().await;
    let consent = Consent { subject: OWNER, client: "hkc_1", place: "https://a.example", project: None };
    identity.clients().consent(consent, Scopes::READ).await.expect("kept");
    assert_eq!(identity.clients().consented(consent).await.expect("a store"), Scopes::READ);
    for other in [
        Consent { subject: "alice", ..consent },
        Consent { client: "hkc_2", ..consent },
        Consent { place: "https://b.example", ..consent },
        Consent { client: "hkc_1https:", place: "//a.example", ..consent },
        Consent { project: Some("work"), ..consent },
    ] {
        assert_eq!(identity.clients().consented(other).await.expect("a store"), Scopes::NONE, "{other:?}");
    }
    identity.clients().consent(consent, Scopes::CALL).await.expect("kept");
    assert_eq!(
        identity.clients().consented(consent).await.expect("a store"),
        Scopes::CALL,
        "the last answer counts, and answers are not added up"
    );
}

#[tokio::test]
async fn a_password_that_is_changed_between_look_and_login_opens_nothing() {
    let identity = identity_with_owner().await;
    let password = "alice's password";
    identity.users().add(&form(&json!({ "name": "alice", "password": password }))).await.expect("made");
    let change = async |change: Value| {
        identity.users().change("alice", &form(&change), UserAuthority::Owner, None).await.expect("changed");
    };
    let begun = async |user: &Arc<User>| identity.logins().begin_by_password(user).await.expect("a store");
    let seen = identity.logins().log_in("alice", password).await.expect("a store").expect("it is right");
    assert!(begun(&seen).await.is_some());
    change(json!({ "password": "another password" })).await;
    assert!(begun(&seen).await.is_none(), "the old one");
    let seen = identity.logins().log_in("alice", "another password").await.expect("a store").expect("it is right");
    let client = registered(&identity).await;
    let text = code_for(&identity, &client, &seen.subject, Scopes::DEFAULT).await;
    // Changed by another process, not yet read by this one.
    let other = second_process(&identity).await;
    let locked = form(&json!({ "disabled": true }));
    let row = identity.store.users().get("alice").await.expect("a store").expect("there");
    let row = hikite_store::UserRow { disabled: true, ..row };
    assert!(identity.store.users().change(&[(row, "alice".into())]).await.expect("changed"));
    assert!(begun(&seen).await.is_none(), "locked out");
    let refused = identity.logins().begin(&seen).await.expect_err("locked out");
    assert_eq!(refused.kind, ErrorKind::Authentication);
    is_denied(&identity.tokens().redeem_code(&terms(), code(&text, &client)).await);
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
    let ask = ApprovedRequest {
        subject: &seen.subject,
        client: &client.id,
        redirect: REDIRECT,
        challenge: &challenge,
        scopes: Scopes::DEFAULT,
        project: None,
    };
    assert!(identity.tokens().issue_code(ask).await.is_err(), "no code for who is locked out");
    other.users().change("alice", &locked, UserAuthority::Owner, None).await.expect("swept");
    other.users().remove("alice", None, UserAuthority::Owner).await.expect("removed");
    assert!(identity.logins().begin(&seen).await.is_err(), "removed");
    let left = identity.store.logins().of_subject(&seen.subject, 0).await.expect("a store");
    assert!(left.is_empty(), "{left:?}");
}

//! Access tokens: signatures, lifetimes and scopes.

use hikite_core::caller::Caller;
use hikite_vault::SigningKey;

use super::super::grant::ACCESS;
use super::*;

/// Returns the claims of a token.
fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).expect("claims");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON")
}

fn known(identity: &Identity, token: &str) -> Option<Caller> {
    match identity.tokens().bearer(&terms(), token) {
        BearerLookup::Known(caller) => Some(caller),
        _ => None,
    }
}

#[tokio::test]
async fn a_token_lets_its_user_in_with_what_was_allowed_and_what_the_role_has() {
    let identity = identity_with_owner().await;
    let client = registered(&identity).await;
    identity.users().add(&form(&json!({ "name": "alice" }))).await.expect("made");
    let of_alice = identity.users().get("alice").expect("there").subject.to_string();
    assert!(of_alice.starts_with("usr_"), "{of_alice}");
    for (subject, asked, expected) in [
        (OWNER, Scopes::READ, Scopes::READ),
        (OWNER, Scopes::ALL, Scopes::ALL),
        (&*of_alice, Scopes::ALL, Scopes::DEFAULT),
    ] {
        let pair = pair(&identity, &client, subject, asked).await;
        let caller = known(&identity, pair.access.expose()).expect("known");
        assert_eq!((&*caller.subject, caller.scopes, caller.project.as_ref()), (subject, expected, None));
        assert!(caller.token.as_deref().is_some_and(|id| id.starts_with("grt_")));
        assert_eq!(known(&identity, pair.access.expose()), Some(caller), "the second look is the same");
    }
    let alice = pair(&identity, &client, &of_alice, Scopes::ALL).await;
    identity
        .users()
        .change("alice", &form(&json!({ "role": "admin" })), UserAuthority::Owner, None)
        .await
        .expect("changed");
    let scopes = known(&identity, alice.access.expose()).map(|caller| caller.scopes);
    assert_eq!(scopes, Some(Scopes::ALL), "the role counts as it is now");
    identity
        .users()
        .change("alice", &form(&json!({ "disabled": true })), UserAuthority::Owner, None)
        .await
        .expect("changed");
    assert_eq!(known(&identity, alice.access.expose()), None, "locked out");
    identity.users().remove("alice", None, UserAuthority::Owner).await.expect("removed");
    identity.users().add(&form(&json!({ "name": "alice" }))).await.expect("made");
    assert_eq!(known(&identity, alice.access.expose()), None, "another alice");
}

#[tokio::test]
async fn only_tokens_that_we_signed_for_ourselves_are_believed() {
    let identity = identity_with_owner().await;
    let client = registered(&identity).await;
    let token = pair(&identity, &client, OWNER, Scopes::DEFAULT).await.access.expose().to_owned();
    let keys = identity.keys().current().await.expect("keys");
    let good = claims(&token);
    let with = |member: &str, value: Value| {
        let mut claims = good.clone();
        claims[member] = value;
        claims
    };
    let signed = |claims: &Value| keys.signing.newest().sign(ACCESS, claims).expect("signed");
    assert!(known(&identity, &signed(&good)).is_some());
    let stranger = SigningKey::random().expect("random");
    let parts: Vec<&str> = token.split('.').collect();
    let header = |alg: &str| URL_SAFE_NO_PAD.encode(json!({ "alg": alg, "typ": ACCESS }).to_string());
    for wrong in [
        signed(&with("iss", "https://evil.example".into())),
        signed(&with("aud", "https://other.example/mcp".into())),
        signed(&with("aud", "https://h.example/mcp/".into())),
        signed(&with("gid", "grt_none".into())),
        signed(&with("gid", "tok_1".into())),
        signed(&with("exp", Value::Null)),
        signed(&with("exp", (now_ms() / 1000 - 61).into())),
        keys.signing.newest().sign("jwt", &good).expect("signed"),
        stranger.sign(ACCESS, &good).expect("signed"),
        format!("{}.{}.", header("none"), parts[1]),
        format!("{}.{}.{}", header("HS256"), parts[1], parts[2]),
        format!("{}.{}.{}", parts[0], URL_SAFE_NO_PAD.encode(with("sub", "x".into()).to_string()), parts[2]),
        format!("{token}x"),
        String::new(),
    ] {
        assert_eq!(known(&identity, &wrong), None, "{wrong}");
    }
    let elsewhere = TokenTerms { audience: "https://h.example/other".into(), ..terms() };
    assert_eq!(identity.tokens().bearer(&elsewhere, &token), BearerLookup::Nobody, "also if it was seen before");
}

#[tokio::test]
async fn a_token_ends_a_minute_after_its_time_also_if_it_was_seen() {
    let identity = identity_with_owner().await;
    let client = registered(&identity).await;
    let token = pair(&identity, &client, OWNER, Scopes::DEFAULT).await.access.expose().to_owned();
    let ends = claims(&token)["exp"].as_u64().expect("a time") * 1000;
    let is_in = |at: u64| matches!(identity.tokens().bearer_at(&terms(), &token, at), BearerLookup::Known(_));
    for _ in 0..2 {
        assert!(is_in(now_ms()) && is_in(ends + 59_999));
        assert!(!is_in(ends + 60_000));
    }
}

#[tokio::test]
async fn another_process_finds_a_grant_and_learns_of_its_end() {
    let identity = identity_with_owner().await;
    let client = registered(&identity).await;
    let other = second_process(&identity).await;
    other.read_store().await.expect("read");
    let pair = pair(&identity, &client, OWNER, Scopes::DEFAULT).await;
    let BearerLookup::UnknownGrant(grant) = other.tokens().bearer(&terms(), pair.access.expose()) else {
        panic!("it is new")
    };
    assert!(other.tokens().reload_grant(&grant).await.expect("a store"));
    let caller = known(&other, pair.access.expose()).expect("known");
    assert_eq!(other.tokens().is_alive(&grant), Some(true));
    identity.tokens().revoke(&client, pair.access.expose()).await.expect("ended");
    other.read_store().await.expect("read");
    assert_eq!((other.tokens().is_alive(&grant), known(&other, pair.access.expose())), (Some(false), None));
    assert!(!other.tokens().reload_grant(&grant).await.expect("a store"));
    assert_eq!(other.tokens().is_alive("tok_1"), None, "{caller:?}");
}

/// Signs with the current key a token that outlives any of ours.
async fn long_lived(identity: &Identity, token: &str) -> String {
    let mut claims = claims(token);
    claims["exp"] = (now_ms() / 1000 + 365 * 86_400).into();
    identity.keys().current().await.expect("keys").signing.newest().sign(ACCESS, &claims).expect("signed")
}

#[tokio::test]
async fn what_an_old_key_signed_is_good_until_its_time_is_over() {
    let identity = identity_with_owner().await;
    let client = registered(&identity).await;
    let token = pair(&identity, &client, OWNER, Scopes::DEFAULT).await.access.expose().to_owned();
    let forged = long_lived(&identity, &token).await;
    let before = identity.keys().document().await.expect("keys");
    let kid = identity.keys().rotate(RotationReason::Requested).await.expect("a new key");
    let set = identity.keys().document().await.expect("keys");
    assert_eq!((&set["keys"][0]["kid"], &set["keys"][1]), (&json!(kid), &before["keys"][0]));
    assert!(known(&identity, &token).is_some() && known(&identity, &forged).is_some());
    let next = pair(&identity, &client, OWNER, Scopes::DEFAULT).await.access.expose().to_owned();
    assert!(known(&identity, &next).is_some());
    let now = now_ms();
    identity.keys().maintain_at(now + 24 * 3_600_000).await.expect("tended");
    assert!(known(&identity, &forged).is_some(), "no token of a day is cut short");
    identity.keys().maintain_at(now + 26 * 3_600_000).await.expect("tended");
    assert_eq!((known(&identity, &forged), known(&identity, &token)), (None, None), "the key is dropped");
    assert!(known(&identity, &next).is_some());
    assert_eq!(identity.keys().document().await.expect("keys")["keys"].as_array().map(Vec::len), Some(1));
}

#[tokio::test]
async fn a_key_that_is_old_is_followed_by_one_new_key_in_all_processes() {
    let identity = identity_with_owner().await;
    let client = registered(&identity).await;
    let other = second_process(&identity).await;
    let later = now_ms() + 91 * 86_400_000;
    let (one, two) = tokio::join!(identity.keys().maintain_at(later), other.keys().maintain_at(later));
    assert!(one.is_ok() && two.is_ok());
    other.keys().maintain_at(later).await.expect("tended");
    identity.keys().maintain_at(later).await.expect("tended");
    let set = identity.keys().document().await.expect("keys");
    assert_eq!(set, other.keys().document().await.expect("keys"));
    assert_eq!(set["keys"].as_array().map(Vec::len), Some(2), "one of them made it");

    let kid = identity.keys().rotate(RotationReason::Requested).await.expect("a new key");
    let token = pair(&identity, &client, OWNER, Scopes::DEFAULT).await.access.expose().to_owned();
    assert_eq!(other.tokens().bearer(&terms(), &token), BearerLookup::UnknownKey, "{kid} is new to the other");
    other.keys().reload().await.expect("looked");
    other.read_store().await.expect("read");
    assert!(known(&other, &token).is_some());
    let stranger = SigningKey::random().expect("random").sign(ACCESS, &claims(&token)).expect("signed");
    other.keys().reload().await.expect("not looked again so soon");
    assert_eq!(known(&other, &stranger), None);
}

#[tokio::test]
async fn what_a_lost_key_signed_opens_nothing_any_more() {
    let identity = identity_with_owner().await;
    let client = registered(&identity).await;
    let given = pair(&identity, &client, OWNER, Scopes::DEFAULT).await;
    assert!(known(&identity, given.access.expose()).is_some(), "it was seen");
    identity.keys().rotate(RotationReason::Compromised).await.expect("a new key");
    assert_eq!(known(&identity, given.access.expose()), None);
    let refresh = given.refresh.expect("a refresh token");
    let next = identity
        .tokens()
        .refresh(
            &terms(),
            &client,
            RefreshRequest { token: refresh.expose(), scopes: None, target: ResourceTarget::Unspecified },
        )
        .await
        .expect("refreshed");
    assert!(known(&identity, next.access.expose()).is_some(), "refresh tokens are of another key");
}

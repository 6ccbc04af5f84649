//! Access tokens: whose are believed, for how long, and what they open.

use hikite_core::caller::Caller;
use hikite_vault::SigningKey;

use super::super::grant::ACCESS;
use super::*;

/// The claims of a token, and one with other claims signed by whom we like.
fn claims(token: &str) -> Value {
    let part = token.split('.').nth(1).expect("claims");
    serde_json::from_slice(&URL_SAFE_NO_PAD.decode(part).expect("base64")).expect("JSON")
}

fn known(identity: &Identity, token: &str) -> Option<Caller> {
    match identity.bearer(&terms(), token) {
        Bearer::Known(caller) => Some(caller),
        _ => None,
    }
}

#[tokio::test]
async fn a_token_lets_its_user_in_with_what_was_allowed_and_what_the_role_has() {
    let identity = house().await;
    let client = registered(&identity).await;
    identity.add_user(&form(&json!({ "name": "alice" }))).await.expect("made");
    for (subject, asked, expected) in [
        (OWNER, Scopes::READ, Scopes::READ),
        (OWNER, Scopes::ALL, Scopes::ALL),
        ("alice", Scopes::ALL, Scopes::USUAL),
    ] {
        let pair = pair(&identity, &client, subject, asked).await;
        let caller = known(&identity, pair.access.expose()).expect("known");
        assert_eq!((&*caller.subject, caller.scopes, caller.project.as_ref()), (subject, expected, None));
        assert!(caller.token.as_deref().is_some_and(|id| id.starts_with("grt_")));
        assert_eq!(known(&identity, pair.access.expose()), Some(caller), "the second look is the same");
    }
    let alice = pair(&identity, &client, "alice", Scopes::ALL).await;
    identity.change_user("alice", &form(&json!({ "role": "admin" }))).await.expect("changed");
    let scopes = known(&identity, alice.access.expose()).map(|caller| caller.scopes);
    assert_eq!(scopes, Some(Scopes::ALL), "the role counts as it is now");
    identity.change_user("alice", &form(&json!({ "disabled": true }))).await.expect("changed");
    assert_eq!(known(&identity, alice.access.expose()), None, "locked out");
    identity.remove_user("alice").await.expect("removed");
    identity.add_user(&form(&json!({ "name": "alice" }))).await.expect("made");
    assert_eq!(known(&identity, alice.access.expose()), None, "another alice");
}

#[tokio::test]
async fn only_tokens_that_we_signed_for_ourselves_are_believed() {
    let identity = house().await;
    let client = registered(&identity).await;
    let token = pair(&identity, &client, OWNER, Scopes::USUAL).await.access.expose().to_owned();
    let keys = identity.keys().await.expect("keys");
    let good = claims(&token);
    let with = |member: &str, value: Value| {
        let mut claims = good.clone();
        claims[member] = value;
        claims
    };
    let signed = |claims: &Value| keys.signing.sign(ACCESS, claims).expect("signed");
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
        keys.signing.sign("jwt", &good).expect("signed"),
        stranger.sign(ACCESS, &good).expect("signed"),
        format!("{}.{}.", header("none"), parts[1]),
        format!("{}.{}.{}", header("HS256"), parts[1], parts[2]),
        format!("{}.{}.{}", parts[0], URL_SAFE_NO_PAD.encode(with("sub", "x".into()).to_string()), parts[2]),
        format!("{token}x"),
        String::new(),
    ] {
        assert_eq!(known(&identity, &wrong), None, "{wrong}");
    }
    let elsewhere = Terms { audience: "https://h.example/other".into(), ..terms() };
    assert_eq!(identity.bearer(&elsewhere, &token), Bearer::Nobody, "also if it was seen before");
}

#[tokio::test]
async fn a_token_ends_a_minute_after_its_time_also_if_it_was_seen() {
    let identity = house().await;
    let client = registered(&identity).await;
    let token = pair(&identity, &client, OWNER, Scopes::USUAL).await.access.expose().to_owned();
    let ends = claims(&token)["exp"].as_u64().expect("a time") * 1000;
    let is_in = |at: u64| matches!(identity.bearer_at(&terms(), &token, at), Bearer::Known(_));
    for _ in 0..2 {
        assert!(is_in(now_ms()) && is_in(ends + 59_999));
        assert!(!is_in(ends + 60_000));
    }
}

#[tokio::test]
async fn another_process_finds_a_grant_and_learns_of_its_end() {
    let identity = house().await;
    let client = registered(&identity).await;
    let other = beside(&identity).await;
    other.read_store().await.expect("read");
    let pair = pair(&identity, &client, OWNER, Scopes::USUAL).await;
    let Bearer::Absent(grant) = other.bearer(&terms(), pair.access.expose()) else { panic!("it is new") };
    assert!(other.look_for_grant(&grant).await.expect("a store"));
    let caller = known(&other, pair.access.expose()).expect("known");
    assert_eq!(other.is_alive(&grant), Some(true));
    identity.revoke(&client, pair.access.expose()).await.expect("ended");
    other.read_store().await.expect("read");
    assert_eq!((other.is_alive(&grant), known(&other, pair.access.expose())), (Some(false), None));
    assert!(!other.look_for_grant(&grant).await.expect("a store"));
    assert_eq!(other.is_alive("tok_1"), None, "{caller:?}");
}

//! Authorization codes and refresh token families.

use super::*;

async fn refreshed(identity: &Identity, client: &ClientRecord, token: &str, now: u64) -> Result<TokenPair, TokenError> {
    identity.tokens().refresh_at(&terms(), client, wanted(token, None), now).await
}

fn wanted(token: &str, scopes: Option<Scopes>) -> RefreshRequest<'_> {
    RefreshRequest { token, scopes, target: ResourceTarget::Unspecified }
}

fn texts(pair: &TokenPair) -> (String, String) {
    let refresh = pair.refresh.as_ref().expect("a refresh token");
    (pair.access.expose().to_owned(), refresh.expose().to_owned())
}

fn is_in(identity: &Identity, access: &str) -> bool {
    matches!(identity.tokens().bearer(&terms(), access), BearerLookup::Known(_))
}

#[tokio::test]
async fn a_code_is_good_once_for_its_client_its_address_and_its_verifier() {
    let identity = identity_with_owner().await;
    let (client, other) = (registered(&identity).await, registered(&identity).await);
    let text = code_for(&identity, &client, OWNER, Scopes::DEFAULT).await;
    let right = code(&text, &client);
    for wrong in [
        CodeExchange { client: &other.id, ..right },
        CodeExchange { redirect: Some("http://127.0.0.1:3001/callback"), ..right },
        CodeExchange { redirect: Some(""), ..right },
        CodeExchange { verifier: "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXK", ..right },
        CodeExchange { verifier: "", ..right },
        CodeExchange { code: "x", ..right },
        CodeExchange { code: &hash(&text), ..right },
    ] {
        is_denied(&identity.tokens().redeem_code(&terms(), wrong).await);
    }
    let pair = identity.tokens().redeem_code(&terms(), right).await.expect("tokens");
    assert!(is_in(&identity, pair.access.expose()));
}

#[tokio::test]
async fn a_code_that_comes_twice_ends_what_it_gave() {
    let identity = identity_with_owner().await;
    let client = registered(&identity).await;
    let text = code_for(&identity, &client, OWNER, Scopes::DEFAULT).await;
    let (access, refresh) =
        texts(&identity.tokens().redeem_code(&terms(), code(&text, &client)).await.expect("tokens"));
    assert!(is_in(&identity, &access));
    is_denied(&identity.tokens().redeem_code(&terms(), code(&text, &client)).await);
    assert!(!is_in(&identity, &access));
    is_denied(&refreshed(&identity, &client, &refresh, now_ms()).await);
}

#[tokio::test]
async fn of_many_who_use_one_code_at_once_nobody_keeps_anything() {
    let identity = identity_with_owner().await;
    let client = registered(&identity).await;
    let text = code_for(&identity, &client, OWNER, Scopes::DEFAULT).await;
    let (identity_with_owner, by) = (&identity, &terms());
    let all = join_all((0..8).map(|_| identity_with_owner.tokens().redeem_code(by, code(&text, &client)))).await;
    let won: Vec<TokenPair> = all.into_iter().filter_map(Result::ok).collect();
    assert_eq!(won.len(), 1);
    assert!(!is_in(&identity, won[0].access.expose()), "it came more than once");
}

#[tokio::test]
async fn two_hundred_who_refresh_at_once_get_one_pair() {
    let identity = identity_with_owner().await;
    let client = Arc::new(registered(&identity).await);
    let (_, first) = texts(&pair(&identity, &client, OWNER, Scopes::DEFAULT).await);
    // Two processes on one store.
    let processes = [Arc::clone(&identity), Arc::new(second_process(&identity).await)];
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..200 {
        let (identity, client) = (Arc::clone(&processes[number % 2]), Arc::clone(&client));
        let token = first.clone();
        tasks.spawn(async move { texts(&refreshed(&identity, &client, &token, now_ms()).await.expect("a pair")) });
    }
    let mut pairs = tasks.join_all().await;
    assert_eq!(pairs.len(), 200);
    pairs.dedup();
    assert_eq!(pairs.len(), 1, "all got the same pair");
    let entries = identity.store.grants().all(now_ms()).await.expect("a store");
    assert_eq!((entries.len(), entries[0].version), (1, 2), "it was rotated once");
    assert!(is_in(&identity, &pairs[0].0));
}

#[tokio::test]
async fn a_used_refresh_token_gets_the_same_pair_within_the_grace_and_ends_the_family_after_it() {
    let identity = identity_with_owner().await;
    let client = registered(&identity).await;
    let (_, first) = texts(&pair(&identity, &client, OWNER, Scopes::DEFAULT).await);
    let now = now_ms();
    let second = texts(&refreshed(&identity, &client, &first, now).await.expect("rotated"));
    assert_ne!(second.1, first);
    for later in [0, 1, 59_999, 60_000] {
        let again = refreshed(&identity, &client, &first, now + later).await.expect("the same");
        assert_eq!(texts(&again), second, "{later}");
    }
    is_denied(&refreshed(&identity, &client, &first, now + 60_001).await);
    is_denied(&refreshed(&identity, &client, &second.1, now + 60_002).await);
    assert!(!is_in(&identity, &second.0), "the family is over, and its access tokens with it");
}

#[tokio::test]
async fn the_grace_is_for_the_last_token_alone() {
    let identity = identity_with_owner().await;
    let client = registered(&identity).await;
    let (_, first) = texts(&pair(&identity, &client, OWNER, Scopes::DEFAULT).await);
    let now = now_ms();
    let (_, second) = texts(&refreshed(&identity, &client, &first, now).await.expect("rotated"));
    refreshed(&identity, &client, &second, now + 1).await.expect("rotated");
    is_denied(&refreshed(&identity, &client, &first, now + 2).await);
    is_denied(&refreshed(&identity, &client, &second, now + 3).await);
}

#[tokio::test]
async fn a_refresh_token_is_of_its_client_and_of_ours() {
    let identity = identity_with_owner().await;
    let (client, other) = (registered(&identity).await, registered(&identity).await);
    let (access, first) = texts(&pair(&identity, &client, OWNER, Scopes::DEFAULT).await);
    is_denied(&refreshed(&identity, &other, &first, now_ms()).await);
    let changed = first.replacen('A', "B", 1);
    for wrong in ["", "hkr_", "x", &access, &first[..first.len() - 1], &format!("{first}x"), &changed] {
        if wrong != first {
            is_denied(&refreshed(&identity, &client, wrong, now_ms()).await);
        }
    }
    let narrow = identity.tokens().refresh_at(&terms(), &client, wanted(&first, Some(Scopes::ADMIN)), now_ms()).await;
    assert!(matches!(narrow, Err(TokenError::Scope(_))), "{narrow:?}");
    let narrow = identity.tokens().refresh_at(&terms(), &client, wanted(&first, Some(Scopes::READ)), now_ms()).await;
    let narrow = narrow.expect("a pair");
    assert_eq!(narrow.scopes, Scopes::READ);
    let refresh = narrow.refresh.expect("a token");
    let wide = refreshed(&identity, &client, refresh.expose(), now_ms()).await.expect("a pair");
    assert_eq!(wide.scopes, Scopes::DEFAULT, "what the user allowed stays");
}

#[tokio::test]
async fn who_revokes_a_token_ends_its_family_and_no_other() {
    let identity = identity_with_owner().await;
    let (client, other) = (registered(&identity).await, registered(&identity).await);
    for of_refresh in [true, false] {
        let (access, refresh) = texts(&pair(&identity, &client, OWNER, Scopes::DEFAULT).await);
        let token = if of_refresh { &refresh } else { &access };
        identity.tokens().revoke(&other, token).await.expect("nothing done");
        identity.tokens().revoke(&client, "x").await.expect("nothing done");
        assert!(is_in(&identity, &access), "another client ends nothing");
        identity.tokens().revoke(&client, token).await.expect("ended");
        assert!(!is_in(&identity, &access));
        is_denied(&refreshed(&identity, &client, &refresh, now_ms()).await);
    }
}

#[tokio::test]
async fn no_usable_secret_is_stored_in_a_document() {
    let identity = identity_with_owner().await;
    let client = registered(&identity).await;
    let login =
        identity.logins().begin(&identity.users().of_subject(OWNER).expect("the owner")).await.expect("logged in");
    let first = texts(&pair(&identity, &client, OWNER, Scopes::DEFAULT).await);
    let second = texts(&refreshed(&identity, &client, &first.1, now_ms()).await.expect("rotated"));
    let open = code_for(&identity, &client, OWNER, Scopes::DEFAULT).await;
    let (store, now) = (&identity.store, now_ms());
    let mut shown = String::new();
    for kind in [SETUP, CODE, USED_CODE] {
        let entries = store.documents().all(kind, None, now).await.expect("a store");
        shown = format!("{shown}{entries:?}");
    }
    for user in store.users().all().await.expect("a store") {
        shown.extend(user.password);
    }
    for client in store.clients().all(now).await.expect("a store") {
        shown.extend(client.secret_hash);
        shown = format!("{shown}{} {}", client.id, client.name);
    }
    for grant in store.grants().all(now).await.expect("a store") {
        let last = grant.last.expect("rotated").access;
        shown = format!("{shown}{} {} {last}", grant.id, grant.sealed_key);
    }
    for login in store.logins().all(now).await.expect("a store") {
        shown = format!("{shown}{login:?}");
    }
    assert!(shown.contains(&client.id));
    let signature = second.0.rsplit('.').next().expect("a signature");
    for secret in [&first.0, &first.1, &second.0, &second.1, &open, login.secret.expose(), signature, PASSWORD] {
        assert!(!shown.contains(secret), "{secret}");
    }
}

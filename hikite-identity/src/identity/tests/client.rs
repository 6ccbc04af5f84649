//! Clients: registration, redirect URIs and authentication.

use super::*;

async fn leading_to(identity: &Identity, uri: &str) -> ClientRecord {
    let form = NewClient { redirect_uris: vec![uri.into()], ..client_form() };
    identity.clients().register(form, &room("192.0.2.1")).await.expect("registered").0
}

fn status(client: &ClientRecord, uri: &str) -> ClientStatus {
    client.status(&RedirectUri::read(uri).expect("an address"), uri)
}

#[tokio::test]
async fn a_foreign_place_waits_for_an_admin_and_no_other_comes_with_it() {
    let identity = identity_with_owner().await;
    for fine in [REDIRECT, "https://claude.ai/api/mcp/auth_callback"] {
        assert_eq!(status(&leading_to(&identity, fine).await, fine), ClientStatus::Approved, "{fine}");
    }
    for foreign in ["https://app.example/cb", "evil://x/cb"] {
        let client = leading_to(&identity, foreign).await;
        assert_eq!(status(&client, foreign), ClientStatus::Pending, "{foreign}");
        identity.clients().approve(&client.id).await.expect("approved");
        let client = identity.clients().get(&client.id).await.expect("a store").expect("there");
        assert_eq!(status(&client, foreign), ClientStatus::Approved, "{foreign}");
        assert_eq!(status(&client, "https://other.example/cb"), ClientStatus::Pending);
    }
    let form = NewClient { redirect_uris: vec!["https://app.example/cb".into()], ..client_form() };
    let (own, _) = identity.clients().add(form).await.expect("made by an admin");
    assert_eq!(status(&own, "https://app.example/cb"), ClientStatus::Approved);
    assert!(identity.clients().approve("hkc_none").await.is_err());
}

#[tokio::test]
async fn a_description_that_changes_its_places_waits_again() {
    let identity = identity_with_owner().await;
    let id = "https://app.example/client.json";
    let described = |uri: &str| ClientRecord::described(id, "App".into(), vec![uri.into()]);
    identity.clients().save_described(described("https://app.example/cb"), &room("192.0.2.1")).await.expect("kept");
    identity.clients().approve(id).await.expect("approved");
    let same =
        identity.clients().save_described(described("https://app.example/cb"), &room("192.0.2.1")).await.expect("kept");
    assert_eq!(status(&same, "https://app.example/cb"), ClientStatus::Approved, "what was approved stays");
    let moved = identity
        .clients()
        .save_described(described("https://evil.example/cb"), &room("192.0.2.1"))
        .await
        .expect("kept");
    assert_eq!(status(&moved, "https://evil.example/cb"), ClientStatus::Pending);
}

#[tokio::test]
async fn clients_that_nobody_uses_give_way_and_somebody_can_always_register() {
    let identity = identity_with_owner().await;
    let allowance = Allowance { all: 4, each: 2, reserved: 0 };
    let room = |from: &str| ClientQuota { from: from.into(), allowance };
    let register = async |from: &str| {
        // The order of registrations has a resolution of one millisecond.
        let now = hikite_store::clock::now_ms();
        while hikite_store::clock::now_ms() == now {
            tokio::time::sleep(std::time::Duration::from_millis(1)).await;
        }
        identity.clients().register(client_form(), &room(from)).await.expect("somebody can always register").0.id
    };
    let is_there = async |id: &str| identity.clients().get(id).await.expect("a store").is_some();
    let used = register("192.0.2.1").await;
    identity.clients().mark_used(&used).await.expect("noted");
    let flood = [register("192.0.2.1").await, register("192.0.2.1").await, register("192.0.2.1").await];
    assert!(!is_there(&flood[0]).await && is_there(&flood[1]).await, "one address has its share");
    let described = ClientRecord::described("https://app.example/c.json", "App".into(), vec![REDIRECT.into()]);
    identity.clients().save_described(described.clone(), &room("192.0.2.2")).await.expect("kept");
    let other = register("192.0.2.3").await;
    let last = register("192.0.2.4").await;
    assert!(!is_there(&flood[1]).await && is_there(&flood[2]).await, "whoever has most gives way");
    for stays in [used.as_str(), &described.id, &other, &last] {
        assert!(is_there(stays).await, "{stays}");
    }
    register("192.0.2.5").await;
    assert!(is_there(&used).await, "what somebody logged in with stays");
}

#[tokio::test]
async fn a_client_with_a_secret_shows_it_and_one_without_shows_none() {
    let identity = identity_with_owner().await;
    let public = registered(&identity).await;
    let form = NewClient { confidential: true, ..client_form() };
    let (secretive, secret) = identity.clients().register(form, &room("192.0.2.1")).await.expect("registered");
    let secret = secret.expect("a secret");
    let proves = async |id: &str, shown: Option<&str>| identity.clients().authenticate(id, shown).await.is_ok();
    assert!(proves(&public.id, None).await);
    assert!(proves(&secretive.id, Some(secret.expose())).await);
    assert!(!proves(&public.id, Some("x")).await);
    for wrong in [None, Some(""), Some("x"), Some(hash(secret.expose()).as_str())] {
        assert!(!proves(&secretive.id, wrong).await, "{wrong:?}");
    }
    assert!(!proves("hkc_none", None).await);
    assert!(proves("https://claude.ai/oauth/claude-code-client-metadata", None).await, "a known one");
    let shown = format!("{secretive:?} {}", secretive.object().raw().as_str());
    assert!(!shown.contains(secret.expose()), "{shown}");
}

#[tokio::test]
async fn a_client_that_comes_for_itself_is_made_by_an_admin_and_may_do_what_it_was_given() {
    let identity = identity_with_owner().await;
    let form = NewClient { own: Some(Scopes::READ), ..client_form() };
    assert!(identity.clients().add(form.clone()).await.is_err(), "it must keep a secret");
    let form = NewClient { confidential: true, ..form };
    let (registered, _) = identity.clients().register(form.clone(), &room("192.0.2.1")).await.expect("registered");
    assert!(!registered.is_own(), "nobody gives that to themselves");
    assert!(
        identity
            .tokens()
            .client_credentials_token(&terms(), &registered, None, ResourceTarget::Unspecified)
            .await
            .is_err()
    );
    let (client, _) = identity.clients().add(form).await.expect("made");
    let pair = identity
        .tokens()
        .client_credentials_token(&terms(), &client, None, ResourceTarget::Unspecified)
        .await
        .expect("a token");
    assert!(pair.refresh.is_none());
    let BearerLookup::Known(caller) = identity.tokens().bearer(&terms(), pair.access.expose()) else {
        panic!("it is not let in")
    };
    assert_eq!((&*caller.subject, caller.scopes), (format!("client:{}", client.id).as_str(), Scopes::READ));
    assert!(
        identity
            .tokens()
            .client_credentials_token(&terms(), &client, Some(Scopes::ADMIN), ResourceTarget::Unspecified)
            .await
            .is_err()
    );
    identity.clients().remove(&client.id).await.expect("removed");
    assert_ne!(identity.tokens().bearer(&terms(), pair.access.expose()), BearerLookup::Known(caller));
}

#[tokio::test]
async fn with_a_client_ends_what_it_was_allowed() {
    let identity = identity_with_owner().await;
    let (one, other) = (registered(&identity).await, registered(&identity).await);
    let gone = pair(&identity, &one, OWNER, Scopes::DEFAULT).await;
    let stays = pair(&identity, &other, OWNER, Scopes::DEFAULT).await;
    let consent = Consent { subject: OWNER, client: &one.id, place: "http://127.0.0.1", project: None };
    identity.clients().consent(consent, Scopes::DEFAULT).await.expect("kept");
    identity.clients().remove(&one.id).await.expect("removed");
    assert!(matches!(identity.tokens().bearer(&terms(), stays.access.expose()), BearerLookup::Known(_)));
    assert!(!matches!(identity.tokens().bearer(&terms(), gone.access.expose()), BearerLookup::Known(_)));
    assert_eq!(identity.clients().consented(consent).await.expect("a store"), Scopes::NONE);
    assert!(identity.clients().remove(&one.id).await.is_err());
}

//! Account selection, and token refresh with failing providers and competing processes.

mod owner;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use hikite_core::caller::Caller;
use hikite_core::credential::{Credential, CredentialProvider, NoVerifier, TokenEndpoint, TokenRequest, TokenResponse};
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::secret::Secret;
use hikite_core::source::{BoxFuture, CallContext};
use hikite_vault::{KeyRing, MasterKey};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::account::Account;
use super::token::{AccountTokens, TokenOutcome};
use super::{
    AccountProvider, AccountSettings, AccountStatus, AccountStore, DEFAULT, OAUTH, OAuthApp, SelectedAccount, TokenAuth,
};
use crate::fake::context;
use crate::probe;
use hikite_identity::SecretStore;
use hikite_store::clock::now_ms;

type TokenScript = Box<dyn Fn(usize) -> BoxFuture<'static, Result<TokenResponse, Error>> + Send + Sync>;

/// A scripted token endpoint that records its requests.
struct ScriptedEndpoint {
    play: TokenScript,
    asked: Mutex<Vec<TokenRequest>>,
}

impl std::fmt::Debug for ScriptedEndpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stage")
    }
}

impl TokenEndpoint for ScriptedEndpoint {
    fn post(&self, request: TokenRequest) -> BoxFuture<'_, Result<TokenResponse, Error>> {
        let number = {
            let mut asked = self.asked.lock();
            asked.push(request);
            asked.len()
        };
        (self.play)(number)
    }
}

/// Credential provider with an account at `filed` from the config.
#[derive(Debug)]
struct FileCredentials;

impl CredentialProvider for FileCredentials {
    fn knows(&self, provider: &str) -> bool {
        provider == "filed"
    }

    fn credential<'a>(
        &'a self,
        _: &'a str,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn renewed<'a>(
        &'a self,
        _: &'a str,
        _: &'a Credential,
        _: &'a CallContext,
    ) -> BoxFuture<'a, Result<Option<Arc<Credential>>, Error>> {
        Box::pin(std::future::ready(Ok(None)))
    }
}

fn provider(name: &str) -> AccountProvider {
    AccountProvider {
        name: name.into(),
        title: "Fake".into(),
        authorize_url: "https://fake.example/authorize".into(),
        token_url: "https://fake.example/token".into(),
        authorize_params: Vec::new(),
        scopes: vec!["read".into()],
        pkce: true,
        auth: TokenAuth::Post,
        as_json: false,
        repeats_scopes: true,
        details: vec!["workspace".into()],
        sites: vec![".fake.example".into()],
        api: None,
        app: Some(OAuthApp { client_id: "id".into(), client_secret: Some(Secret::hidden("canary-app")) }),
    }
}

fn answer(status: u16, body: &Value) -> TokenResponse {
    TokenResponse { status, body: Secret::hidden(body.to_string()), retry_after: None }
}

fn tokens(access: &str) -> Value {
    json!({ "access_token": access, "refresh_token": format!("{access}-refresh"), "expires_in": 3600 })
}

async fn accounts(
    play: impl Fn(usize) -> TokenResponse + Send + Sync + 'static,
) -> (Arc<AccountStore>, Arc<ScriptedEndpoint>) {
    let play: TokenScript = Box::new(move |number| Box::pin(std::future::ready(Ok(play(number)))));
    accounts_with(play).await
}

async fn accounts_with(play: TokenScript) -> (Arc<AccountStore>, Arc<ScriptedEndpoint>) {
    let ring = KeyRing::new(MasterKey::random().expect("random"), Vec::new());
    let secret_store = Arc::new(SecretStore::new(probe::store().await, ring));
    let stage = Arc::new(ScriptedEndpoint { play, asked: Mutex::default() });
    let accounts =
        AccountStore::new(secret_store, Arc::clone(&stage) as _, Arc::new(FileCredentials), Arc::new(NoVerifier));
    let rules = [("work".into(), BTreeMap::from([("fake".to_owned(), "office".to_owned())]))].into();
    accounts.follow(AccountSettings {
        providers: vec![provider("fake"), provider("filed")],
        from_file: BTreeMap::from([("filed".to_owned(), Arc::default())]),
        public_url: "http://127.0.0.1:7300".into(),
        rules,
    });
    (accounts, stage)
}

/// Stores an OAuth account of alice, younger than earlier ones even within one millisecond.
async fn put(accounts: &AccountStore, name: &str, expires_at: u64) -> Arc<Account> {
    static BEFORE: AtomicU64 = AtomicU64::new(0);
    let now = now_ms() + BEFORE.fetch_add(1, Ordering::Relaxed);
    let account = Account::new(super::id().expect("random"), "alice", "fake", name, now);
    let tokens = AccountTokens {
        access: Secret::hidden("canary-old"),
        refresh: Some(Secret::hidden("canary-old-refresh")),
        expires_at,
        got_at: 0,
        attempt: None,
        over: None,
        version: 0,
    };
    accounts.secret_store.set((&account.id, "fake", OAUTH), &tokens.text()).await.expect("sealed");
    assert!(accounts.secret_store.store().accounts().put(&account.row()).await.expect("put"));
    accounts.read_store().await.expect("read");
    accounts.known.load().by_id(&account.id).expect("there")
}

fn chosen(accounts: &AccountStore, caller: &Caller, provider: &str, asked: Option<&str>) -> String {
    match accounts.choose(caller, provider, asked) {
        Ok(Some(SelectedAccount::Account(account))) => account.name.clone(),
        Ok(Some(SelectedAccount::Configured(_))) => "(file)".into(),
        Ok(None) => "(none)".into(),
        Err(error) => error.code().into(),
    }
}

#[tokio::test]
async fn the_call_comes_before_the_project_and_that_before_the_default() {
    let (accounts, _) = accounts(|_| answer(500, &json!({}))).await;
    for name in ["home", "office", "club"] {
        put(&accounts, name, 0).await;
    }
    let alice = Caller::named("alice");
    let inside = alice.within("work".into());
    assert_eq!(chosen(&accounts, &alice, "fake", None), "home");
    assert_eq!(chosen(&accounts, &inside, "fake", None), "office");
    assert_eq!(chosen(&accounts, &inside, "fake", Some("club")), "club");
    assert_eq!(chosen(&accounts, &alice, "fake", Some("none")), "VALIDATION_ERROR");
    assert_eq!(chosen(&accounts, &alice, "filed", None), "(file)");
    assert_eq!(chosen(&accounts, &alice, "filed", Some(DEFAULT)), "(file)");
    let club = accounts.find("alice", None, "club").expect("there");
    let changes = |value: Value| Raw::of(&value).object().expect("an object");
    accounts.change(&club, &changes(json!({ "default": true }))).await.expect("changed");
    assert_eq!(chosen(&accounts, &alice, "fake", None), "club");
    let bob = Caller::named("bob");
    assert_eq!(chosen(&accounts, &bob, "fake", None), "(none)");
    assert_eq!(chosen(&accounts, &bob, "fake", Some("club")), "VALIDATION_ERROR");
    accounts.change(&club, &changes(json!({ "shared": true }))).await.expect("changed");
    assert_eq!(chosen(&accounts, &bob, "fake", None), "club");
    assert_eq!(chosen(&accounts, &bob, "fake", Some("home")), "VALIDATION_ERROR");
}

#[tokio::test]
async fn new_tokens_are_in_the_safe_before_anybody_has_them() {
    let (accounts, stage) = accounts(|_| answer(200, &tokens("canary-new"))).await;
    let account = put(&accounts, DEFAULT, 1).await;
    let fresh = accounts.credentials().fresh(&account, None).await.expect("fresh");
    let kept = accounts.secret_store.get(&account.id, "fake", OAUTH).await.expect("opened").expect("there");
    let kept = AccountTokens::read(&kept.secret, kept.version).expect("tokens");
    assert_eq!((&kept.access, kept.attempt), (&fresh.access, None));
    assert_eq!(kept.refresh.expect("a refresh token").expose(), "canary-new-refresh");
    let asked = stage.asked.lock().clone();
    let form: BTreeMap<&str, &str> = asked[0].form.iter().map(|(name, value)| (&**name, value.expose())).collect();
    let expected = [
        ("client_id", "id"),
        ("client_secret", "canary-app"),
        ("grant_type", "refresh_token"),
        ("refresh_token", "canary-old-refresh"),
        ("scope", "read"),
    ];
    assert_eq!(form, BTreeMap::from(expected));
    assert!(!format!("{asked:?} {accounts:?} {account:?} {fresh:?}").contains("canary"));
    assert_eq!(accounts.find("alice", None, DEFAULT).expect("there").expires_at, fresh.expires_at);
}

#[tokio::test]
async fn a_token_that_has_not_ended_serves_while_the_provider_does_not() {
    let (accounts, _) = accounts(|_| answer(503, &json!({ "error": "server_error" }))).await;
    let soon = put(&accounts, "soon", now_ms() + 20_000).await;
    assert_eq!(accounts.credentials().fresh(&soon, None).await.expect("the old one").access.expose(), "canary-old");
    let over = put(&accounts, "over", 1).await;
    let error = accounts.credentials().fresh(&over, None).await.expect_err("none");
    assert_eq!(error.kind, ErrorKind::UpstreamUnavailable);
    let still = accounts.find("alice", None, "over").expect("there");
    assert_ne!(still.status, AccountStatus::Reconnect, "it may work later");
}

#[tokio::test]
async fn a_grant_that_is_over_is_told_with_where_to_connect_again() {
    let (accounts, stage) = accounts(|_| answer(400, &json!({ "error": "invalid_grant" }))).await;
    put(&accounts, DEFAULT, 1).await;
    let error = accounts.credential("fake", &context("alice")).await.expect_err("none");
    assert_eq!(error.kind, ErrorKind::AccountRequired);
    let hint = error.hint.expect("a hint");
    assert!(hint.contains("http://127.0.0.1:7300/connect/fake?link="), "{hint}");
    assert_eq!(accounts.find("alice", None, DEFAULT).expect("there").status, AccountStatus::Reconnect);
    assert_eq!(stage.asked.lock().len(), 1);
    let again = accounts.credential("fake", &context("alice")).await.expect_err("none");
    assert_eq!(again.kind, ErrorKind::AccountRequired);
    assert!(again.hint.is_some_and(|hint| hint.contains("/connect/fake?link=")));
    assert_eq!(stage.asked.lock().len(), 1, "a refresh token that was refused is not shown again");
}

#[tokio::test]
async fn a_short_failure_of_the_token_endpoint_is_asked_again() {
    let (accounts, stage) = accounts(|number| match number {
        1 => answer(503, &json!({ "error": "server_error" })),
        2 => answer(502, &json!("no JSON object")),
        _ => answer(200, &tokens("canary-new")),
    })
    .await;
    let account = put(&accounts, DEFAULT, 1).await;
    let fresh = accounts.credentials().fresh(&account, None).await.expect("the third answer");
    assert_eq!((fresh.access.expose(), stage.asked.lock().len()), ("canary-new", 3));
}

#[tokio::test]
async fn who_comes_late_takes_what_another_got() {
    let held = Arc::new(Mutex::new(None::<(Arc<SecretStore>, String)>));
    let inner = Arc::clone(&held);
    // While this process waits for the provider, another takes over, gets tokens and stores them.
    let play: TokenScript = Box::new(move |_| {
        let (secret_store, id) = inner.lock().clone().expect("set");
        Box::pin(async move {
            let other = AccountTokens {
                access: Secret::hidden("canary-other"),
                refresh: Some(Secret::hidden("canary-other-refresh")),
                expires_at: now_ms() + 3_600_000,
                got_at: now_ms(),
                attempt: None,
                over: None,
                version: 0,
            };
            secret_store.set((&id, "fake", OAUTH), &other.text()).await.expect("sealed");
            Ok(answer(400, &json!({ "error": "invalid_grant" })))
        })
    });
    let (accounts, _) = accounts_with(play).await;
    let account = put(&accounts, DEFAULT, 1).await;
    *held.lock() = Some((Arc::clone(&accounts.secret_store), account.id.to_string()));
    let fresh = accounts.credentials().fresh(&account, None).await.expect("that of the other");
    assert_eq!(fresh.access.expose(), "canary-other");
    assert_ne!(accounts.find("alice", None, DEFAULT).expect("there").status, AccountStatus::Reconnect);
}

#[test]
fn what_providers_say_is_understood() {
    let said = |status: u16, body: Value| {
        let answer = TokenResponse { status, body: Secret::hidden(body.to_string()), retry_after: None };
        match TokenOutcome::read(&provider("fake"), &answer, None, 1000) {
            TokenOutcome::Tokens(tokens, more) => {
                format!("{} {} {}", tokens.expires_at, more.scopes.unwrap_or_default().join("+"), more.details.len())
            }
            TokenOutcome::GrantEnded => "over".into(),
            TokenOutcome::Refused(word) => format!("wrong {word}"),
            TokenOutcome::Transient(_) => "later".into(),
        }
    };
    let good = json!({ "access_token": "a", "expires_in": "60", "scope": "x,y z", "workspace": "w", "other": "o" });
    assert_eq!(said(201, good), "61000 x+y+z 1");
    assert_eq!(said(200, json!({ "access_token": "a" })), "0  0");
    assert_eq!(said(200, json!({ "error": "bad_refresh_token" })), "over");
    assert_eq!(said(403, json!({ "error": "unauthorized_client" })), "over");
    assert_eq!(said(401, json!({ "error": "invalid_client" })), "wrong invalid_client");
    assert_eq!(said(500, json!({ "access_token": "a" })), "later");
    assert_eq!(said(429, json!({ "error": "slow" })), "later");
    assert_eq!(said(200, json!([])), "later");
}

#[tokio::test]
async fn only_an_admin_names_addresses_outside_the_service() {
    let (accounts, _) = accounts(|_| answer(500, &json!({}))).await;
    let form = |site: &str, name: &str| {
        Object::default().with("provider", "fake").with("name", name).with("token", "canary-token").with("site", site)
    };
    let alice = Caller::named("alice");
    for (at, site) in ["127.0.0.1", "fake.example.evil", "evil/x.fake.example", "metadata.internal"].iter().enumerate()
    {
        let error = accounts.add(&alice, &form(site, &format!("a{at}"))).await.expect_err(site);
        assert!(error.message.contains("Only an admin") && !error.message.contains("canary"), "{}", error.message);
    }
    accounts.add(&alice, &form("mine.fake.example", "b")).await.expect("its own");
    accounts.add(&Caller::owner(), &form("10.0.0.5", "c")).await.expect("the owner may");
    let again = accounts.add(&alice, &form("mine.fake.example", "b")).await.expect_err("taken");
    assert_eq!(again.kind, ErrorKind::Conflict);
}

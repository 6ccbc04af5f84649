//! Concurrent token refreshes, and refreshes of processes that are killed. In the second case the provider accepts the
//! previous refresh token until the newest was used: with a provider that does not, a lost response cannot be
//! recovered.

use std::io::{BufRead, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use hikite::HttpTokenEndpoint;
use hikite_core::credential::{Credential, CredentialProvider, NoVerifier};
use hikite_core::error::Error;
use hikite_core::secret::Secret;
use hikite_core::source::{BoxFuture, CallContext};
use hikite_egress::EgressClient;
use hikite_gateway::{AccountSettings, AccountStore, BrowserSecret, ConnectionCallback, OAuthApp, TokenAuth};
use hikite_identity::SecretStore;
use hikite_store::{Store, StoreUrl};
use hikite_testkit::postgres;
use hikite_testkit::provider::{CLIENT_ID, CLIENT_SECRET, MockProvider};
use hikite_vault::{KeyRing, MasterKey};

use crate::PROGRAMS;

const NAME: &str = "fake";

#[derive(Debug)]
struct NoCredentials;

impl CredentialProvider for NoCredentials {
    fn knows(&self, _: &str) -> bool {
        false
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

/// Opens the state of one process: a store, a secret store and the accounts on top.
async fn process(url: &str, key: &str, provider: &MockProvider) -> Arc<AccountStore> {
    let store = Store::open(&StoreUrl::parse(url).expect("an address")).await.expect("a store");
    let secret_store = SecretStore::new(store, KeyRing::parse(key).expect("a key"));
    let endpoint = Arc::new(HttpTokenEndpoint::new(EgressClient::new()));
    let accounts = AccountStore::new(Arc::new(secret_store), endpoint, Arc::new(NoCredentials), Arc::new(NoVerifier));
    let definition = hikite_gateway::AccountProvider {
        name: NAME.into(),
        title: "Fake".into(),
        authorize_url: provider.url("/authorize"),
        token_url: provider.url("/token"),
        authorize_params: Vec::new(),
        scopes: Vec::new(),
        pkce: true,
        auth: TokenAuth::Basic,
        as_json: false,
        repeats_scopes: false,
        details: Vec::new(),
        sites: Vec::new(),
        api: None,
        app: Some(OAuthApp { client_id: CLIENT_ID.into(), client_secret: Some(Secret::hidden(CLIENT_SECRET)) }),
    };
    let public_url = "http://127.0.0.1:1".into();
    accounts.follow(AccountSettings { providers: vec![definition], public_url, ..AccountSettings::default() });
    accounts.read_store().await.expect("read");
    accounts
}

async fn connect(accounts: &AccountStore, provider: &MockProvider) {
    let link = accounts.connections().begin("owner", NAME, None).await.expect("a link");
    let secret = link.url.expose().split_once("link=").expect("a link").1;
    let browser = BrowserSecret::random().expect("random");
    let away = accounts.connections().redirect_to_provider(NAME, secret, &browser).await.expect("away");
    let (code, state) = provider.consent(away.expose());
    let returned = ConnectionCallback { state, code: Some(Secret::hidden(code)), error: None };
    accounts.connections().handle_callback(returned, Some(&browser), None).await.expect("connected");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_callers_of_two_processes_ask_the_provider_once() {
    let provider = MockProvider::start().await;
    let (url, key) = (postgres::database(), MasterKey::random().expect("random").text());
    let here = process(&url, key.expose(), &provider).await;
    provider.life(0);
    connect(&here, &provider).await;
    let there = process(&url, key.expose(), &provider).await;
    provider.life(3600);
    provider.delay(Duration::from_millis(100));
    let before = provider.requests();
    let call = |accounts: Arc<AccountStore>| async move {
        let credential =
            accounts.credential(NAME, &CallContext::unattended()).await.expect("a token").expect("an account");
        credential.secret.expose().to_owned()
    };
    let calls = (0..1000).map(|number| call(Arc::clone(if number % 2 == 0 { &here } else { &there })));
    let mut tokens = join_all(calls).await;
    assert_eq!(tokens.len(), 1000);
    tokens.dedup();
    assert_eq!(tokens.len(), 1, "all have the same");
    assert_eq!((provider.requests() - before, provider.refused()), (1, 0));
}

#[tokio::test(flavor = "multi_thread")]
async fn two_hundred_kills_in_the_middle_of_a_refresh_lose_nothing() {
    let provider = MockProvider::start().await;
    provider.forgiving();
    let folder = tempfile::tempdir().expect("a folder");
    let url = format!("sqlite:{}", folder.path().join("hikite.db").display());
    let key = MasterKey::random().expect("random").text();
    let accounts = process(&url, key.expose(), &provider).await;
    connect(&accounts, &provider).await;
    let before = provider.requests();
    for kill in 0..200_u64 {
        let mut child = PROGRAMS
            .refresher()
            .args([&url, key.expose(), &provider.url("")])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("a refresher");
        let mut out = BufReader::new(child.stdout.take().expect("piped"));
        let first = tokio::task::spawn_blocking(move || {
            let mut line = String::new();
            out.read_line(&mut line).expect("a line");
            (line, out)
        });
        let (line, _out) = first.await.expect("read");
        if line.is_empty() {
            let output = child.wait_with_output().expect("ended");
            panic!("kill {kill}: {}", String::from_utf8_lossy(&output.stderr));
        }
        // Spread over the first refreshes: the kill hits some point between two lines.
        tokio::time::sleep(Duration::from_micros(kill * 7919 % 15_000)).await;
        child.kill().expect("it runs");
        child.wait().expect("our child");
    }
    assert!(provider.requests() > before && provider.again() > 0, "some were killed before they had written it down");
    assert_eq!(provider.refused(), 0, "no refresh token was lost");
    let after = process(&url, key.expose(), &provider).await;
    provider.revoke_access();
    let held = after.credential(NAME, &CallContext::unattended()).await.expect("a token").expect("an account");
    after.renewed(NAME, &held, &CallContext::unattended()).await.expect("renewed").expect("a new one");
    assert_eq!(provider.refused(), 0);
}

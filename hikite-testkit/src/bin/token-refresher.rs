//! Refreshes the token of the only account in a store repeatedly and prints a line for each refresh, until killed.
//!
//!     token-refresher sqlite:/tmp/x.db KEY http://127.0.0.1:1234

use std::{io::Write, process::ExitCode, sync::Arc, time::Duration};

use hikite::HttpTokenEndpoint;
use hikite_core::{
    credential::{Credential, CredentialProvider, NoVerifier},
    error::Error,
    source::{BoxFuture, CallContext},
};
use hikite_egress::EgressClient;
use hikite_gateway::{AccountProvider, AccountSettings, AccountStore, OAuthApp, RefreshTiming, TokenAuth};
use hikite_identity::SecretStore;
use hikite_store::{Store, StoreUrl};
use hikite_vault::KeyRing;

const PROVIDER: &str = "fake";

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [store, key, provider] = &arguments[..] else { return print_error("three arguments are wanted") };
    match run(store, key, provider).await {
        Ok(()) => ExitCode::SUCCESS,
        Err(reason) => print_error(&reason),
    }
}

async fn run(store: &str, key: &str, provider: &str) -> Result<(), String> {
    let url = StoreUrl::parse(store).map_err(|bad| bad.to_string())?;
    let store = Store::open(&url).await.map_err(|error| error.to_string())?;
    let secret_store = SecretStore::new(store, KeyRing::parse(key).map_err(|why| why.to_string())?);
    // A killed process holds its lease no longer than this.
    let timing = RefreshTiming { lease: Duration::from_millis(20), poll_interval: Duration::from_millis(2) };
    let endpoint = Arc::new(HttpTokenEndpoint::new(EgressClient::new()));
    let accounts =
        AccountStore::with_timing(Arc::new(secret_store), endpoint, Arc::new(NoAccounts), Arc::new(NoVerifier), timing);
    accounts.follow(AccountSettings { providers: vec![definition(provider)], ..AccountSettings::default() });
    accounts.read_store().await.map_err(|error| error.to_string())?;
    let context = CallContext::unattended();
    let mut credential = ask(accounts.credential(PROVIDER, &context).await)?;
    for number in 0_u64.. {
        let mut out = std::io::stdout();
        if writeln!(out, "{number}").and_then(|()| out.flush()).is_err() {
            break;
        }
        credential = ask(accounts.renewed(PROVIDER, &credential, &context).await)?;
    }
    Ok(())
}

fn ask(outcome: Result<Option<Arc<Credential>>, Error>) -> Result<Arc<Credential>, String> {
    outcome.map_err(|error| format!("{}: {}", error.code(), error.message))?.ok_or_else(|| "no account".into())
}

fn definition(base: &str) -> AccountProvider {
    AccountProvider {
        name: PROVIDER.into(),
        title: "Fake".into(),
        authorize_url: format!("{base}/authorize"),
        token_url: format!("{base}/token"),
        authorize_params: Vec::new(),
        scopes: Vec::new(),
        pkce: true,
        auth: TokenAuth::Basic,
        as_json: false,
        repeats_scopes: false,
        details: Vec::new(),
        sites: Vec::new(),
        api: None,
        app: Some(OAuthApp {
            client_id: hikite_testkit::provider::CLIENT_ID.into(),
            client_secret: Some(hikite_core::secret::Secret::hidden(hikite_testkit::provider::CLIENT_SECRET)),
        }),
    }
}

/// Credential provider of a config without accounts.
#[derive(Debug)]
struct NoAccounts;

impl CredentialProvider for NoAccounts {
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

#[expect(clippy::print_stderr, reason = "a program says why it failed")]
fn print_error(reason: &str) -> ExitCode {
    eprintln!("token-refresher: {reason}");
    ExitCode::FAILURE
}

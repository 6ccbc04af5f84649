//! Cost of resolving the bearer of a token: a token seen before, an unknown one, and a personal one. Rows are
//! printed as those of the benchmark of `hikite-core` are; without `--bench` everything runs once, so that it is known to
//! work.

#[path = "../../../hikite-core/benches/core/timer.rs"]
mod timer;

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hikite_core::caller::{OWNER, Scopes};
use hikite_core::json::Object;
use hikite_core::share::Allowance;
use hikite_identity::{
    ApprovedRequest, BearerLookup, ClientQuota, CodeExchange, Identity, NewClient, People, ResourceTarget, SecretStore,
    TokenTerms, UserAuthority,
};
use hikite_store::{Store, StoreUrl};
use hikite_vault::{KeyRing, MasterKey};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use timer::Timer;

const REDIRECT: &str = "http://127.0.0.1:3000/callback";
const VERIFIER: &str = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk";

fn main() {
    let timer = Timer { measures: std::env::args().any(|argument| argument == "--bench") };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let gateway = runtime.block_on(BenchGateway::open());
    for row in gateway.rows(timer).into_iter().filter(|_| timer.measures) {
        print(&row);
    }
}

#[expect(clippy::print_stdout, reason = "the rows are what was asked for")]
fn print(row: &Value) {
    println!("token {row}");
}

/// Somebody who has logged in, and what they were given.
struct BenchGateway {
    identity: Identity,
    people: People,
    terms: TokenTerms,
    access: String,
    personal: String,
}

impl BenchGateway {
    async fn open() -> Self {
        let store = Store::open(&StoreUrl::memory()).await.expect("a store");
        let ring = KeyRing::new(MasterKey::random().expect("random"), Vec::new());
        let identity = Identity::new(Arc::new(SecretStore::new(store.clone(), ring)));
        let link = identity.users().make_setup_token(false).await.expect("a store").expect("no owner yet");
        identity.users().set_up(link.expose(), "kana", "correct horse battery").await.expect("an owner");
        let terms = TokenTerms {
            issuer: "https://h.example".into(),
            audience: "https://h.example/mcp".into(),
            access: Duration::from_secs(3600),
            refresh: Duration::from_secs(86_400),
        };
        let access = access(&identity, &terms).await;
        let people = People::new(store);
        let form = Object::default().with("name", "bench").with("subject", "bob");
        let personal =
            people.tokens().create(&form, UserAuthority::Owner).await.expect("a token").1.expose().to_owned();
        Self { identity, people, terms, access, personal }
    }

    fn rows(&self, timer: Timer) -> Vec<Value> {
        let bearer = |token: &str| self.identity.tokens().bearer(&self.terms, token);
        assert!(matches!(bearer(&self.access), BearerLookup::Known(_)));
        let (signed, signature) = self.access.rsplit_once('.').expect("a signature");
        let forged = format!("{signed}.{}", signature.chars().rev().collect::<String>());
        assert_eq!(bearer(&forged), BearerLookup::Nobody);
        assert!(self.people.bearer(&self.personal).is_some());
        let row = |what: &str, nanoseconds: f64| json!([what, nanoseconds / 1000.0]);
        vec![
            row("access token, seen before", timer.nanoseconds(|| bearer(&self.access))),
            row("access token, signature wrong", timer.nanoseconds(|| bearer(&forged))),
            row("personal token", timer.nanoseconds(|| self.people.bearer(&self.personal))),
        ]
    }
}

/// As a client gets it, with a code.
async fn access(identity: &Identity, terms: &TokenTerms) -> String {
    let form = NewClient { name: "bench".into(), redirect_uris: vec![REDIRECT.into()], confidential: false, own: None };
    let room = ClientQuota { from: "192.0.2.1".into(), allowance: Allowance::of(100, 50) };
    let client = identity.clients().register(form, &room).await.expect("a client").0;
    let challenge = URL_SAFE_NO_PAD.encode(Sha256::digest(VERIFIER));
    let ask = ApprovedRequest {
        subject: OWNER,
        client: &client.id,
        redirect: REDIRECT,
        challenge: &challenge,
        scopes: Scopes::DEFAULT,
        project: None,
    };
    let code = identity.tokens().issue_code(ask).await.expect("a code");
    let target = ResourceTarget::Unspecified;
    let code = CodeExchange { code: code.expose(), client: &client.id, redirect: None, verifier: VERIFIER, target };
    identity.tokens().redeem_code(terms, code).await.expect("tokens").access.expose().to_owned()
}

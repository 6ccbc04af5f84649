//! Two real processes on one PostgreSQL: the provider gets one token request, whichever process is called.

use std::time::Duration;

use futures_util::future::join_all;
use hikite_testkit::gateway::TestGateway;
use hikite_testkit::postgres;
use hikite_testkit::provider::{CLIENT_ID, CLIENT_SECRET, MockProvider};
use hikite_vault::MasterKey;
use serde_json::{Value, json};

use super::{body, connect, post};
use crate::PROGRAMS;

/// A service without a concurrency limit.
const MODULE: &str = "
module: whose
title: Whose
description: { en: Whose token it is, ja: 誰のトークンか }
provider: notion
base: https://whose.example
tools:
  ask:
    risk: read
    description: { en: Whose token it is, ja: 誰のトークンか }
    request: { GET: /whose }
";

fn config(provider: &MockProvider, store: &str, modules: &std::path::Path) -> Value {
    json!({
        "store": { "url": store },
        "modules": { "builtin": false, "dir": modules },
        "limits": { "call_timeout": "60s" },
        "providers": { "notion": {
            "api": provider.url(""),
            "oauth": {
                "client_id": CLIENT_ID,
                "client_secret": CLIENT_SECRET,
                "authorize_url": provider.url("/authorize"),
                "token_url": provider.url("/token"),
                "pkce": true,
            },
        } },
    })
}

/// Returns the provider's grant that served a call through one process.
async fn ask(gateway: &TestGateway) -> Value {
    let reply = post(gateway, "/v1/tools/call", &json!({ "name": "whose:ask", "parameters": {} })).await;
    body(&reply)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_calls_of_two_programs_on_one_store_ask_the_provider_once() {
    let provider = MockProvider::start().await;
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("whose.yaml"), MODULE).expect("a file");
    let config = config(&provider, &postgres::database(), folder.path());
    let key = MasterKey::random().expect("random").text();
    let variables = [("HIKITE_VAULT_KEY", key.expose())];
    let here = TestGateway::start_with(&PROGRAMS, config.clone(), &variables).await;
    // Tokens expire at once.
    provider.life(0);
    connect(&here, &provider, "default").await;
    let there = TestGateway::start_with(&PROGRAMS, config, &variables).await;
    assert_ne!(here.pid(), there.pid());
    provider.life(3600);
    provider.delay(Duration::from_millis(300));
    let before = provider.requests();
    let calls = (0..1000).map(|number| ask(if number % 2 == 0 { &here } else { &there }));
    for answer in join_all(calls).await {
        assert_eq!(answer["result"]["family"], 0, "{answer}");
    }
    assert_eq!((provider.requests() - before, provider.refused()), (1, 0));
}

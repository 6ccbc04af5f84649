//! The whole product from its users' view: the real program as a process, with fixture upstreams and test clients. One
//! binary; every wait has a limit; nothing leaves loopback.

mod accounts;
mod add;
mod answers;
mod ask;
mod audit;
mod auth;
mod away;
mod batch;
mod bridge;
mod cache;
mod calls;
mod canary;
mod cancel;
mod categories;
mod check;
mod cli;
mod config;
mod connect;
mod control;
mod cut;
mod direct;
#[cfg(target_os = "linux")]
mod dump;
mod durability;
mod era;
mod executor;
mod faults;
mod foreign;
mod handshake;
mod hostile;
mod http;
mod http_tools;
mod identity;
mod invalid_entry;
mod lifecycle;
mod lists;
mod log;
mod loopback;
mod many;
mod measure;
mod metrics;
mod mixup;
mod module;
mod modules;
mod nodes;
mod oauth;
mod own_lists;
mod people;
mod permissions;
mod pins;
mod process;
mod proxy;
mod question;
mod relay;
mod reload;
mod rest;
mod rest_access;
mod rest_call;
mod rest_registry;
mod resume;
mod search;
mod services;
mod shares;
mod signals;
mod stateless;
mod stdio;
mod store;
mod tasks;
mod tls;
mod traces;
mod unlisted;
mod upstream_login;
mod vault;
mod views;

use std::sync::LazyLock;

use hikite_testkit::fixture::{Fixture, FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{PendingCall, SessionClient, TestGateway, TestPrograms, eventually};
use serde_json::{Value, json};

static PROGRAMS: LazyLock<TestPrograms> = LazyLock::new(|| TestPrograms::beside(env!("CARGO_BIN_EXE_hikite")));

/// Starts a gateway with these servers on the `direct` surface.
async fn gateway(servers: Value) -> TestGateway {
    configured(json!({ "mcpServers": servers, "server": { "surface": "direct" } })).await
}

async fn configured(config: Value) -> TestGateway {
    TestGateway::start(&PROGRAMS, config).await
}

/// Returns a fixture as a stdio server.
fn stdio(flags: &[&str]) -> Value {
    let flags: Vec<&str> = ["--stdio"].iter().chain(flags).copied().collect();
    json!({ "description": "a fixture", "command": PROGRAMS.fixture(), "args": flags })
}

/// Returns the definition with an additional member.
fn with(mut definition: Value, key: &str, value: impl Into<Value>) -> Value {
    definition[key] = value.into();
    definition
}

async fn http_fixture() -> (Fixture, Value) {
    fixture(FixtureTransport::Http, FixtureOptions::default()).await
}

async fn fixture(transport: FixtureTransport, options: FixtureOptions) -> (Fixture, Value) {
    let fixture = Fixture::start(transport, options).await.expect("a fixture");
    let kind = if transport == FixtureTransport::Http { "http" } else { "sse" };
    let definition = json!({ "description": "a fixture", "type": kind, "url": fixture.url() });
    (fixture, definition)
}

/// Begins a call of a fixture's `sleep` and waits until the server reports that it runs.
async fn begin_sleep(client: &SessionClient, tool: &str, ms: u64) -> PendingCall {
    let params = json!({ "name": tool, "arguments": { "ms": ms }, "_meta": { "progressToken": tool } });
    let call = client.begin("tools/call", params);
    let is_reported =
        || client.notifications("notifications/progress").iter().any(|told| told["progressToken"] == tool);
    assert!(eventually(is_reported).await, "`{tool}` does not run");
    call
}

/// Returns the structured error of a meta tool's result.
#[track_caller]
fn error_of(result: &Value) -> Value {
    assert_eq!(result["isError"], true, "{result}");
    result["structuredContent"]["error"].clone()
}

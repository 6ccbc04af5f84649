//! Connections cut at every byte of a call and of its response: a non-idempotent call never runs twice, and an
//! idempotent one is retried.

use std::time::Duration;

use hikite_testkit::fault::{FaultProxy, ProxyFault};
use hikite_testkit::fixture::{Era, Fixture, FixtureOptions, FixtureTransport, PostResponseFormat};
use hikite_testkit::gateway::{SessionClient, TestGateway};
use serde_json::json;

use crate::{configured, fixture, with};

/// More bytes than any of these requests and responses have.
const ENOUGH: usize = 20_000;

struct CutScene {
    fixture: Fixture,
    proxy: FaultProxy,
    client: SessionClient,
    _gateway: TestGateway,
}

impl CutScene {
    async fn open(era: Era, answer: PostResponseFormat) -> Self {
        let options = FixtureOptions { era, answer, unvalidated: true, ..FixtureOptions::default() };
        let (fixture, server) = fixture(FixtureTransport::Http, options).await;
        let proxy = FaultProxy::start(fixture.address()).await.expect("a proxy");
        let server = with(server, "url", format!("http://{}/mcp", proxy.address()));
        let server = with(server, "retry", json!({ "attempts": 3, "delay": "1ms" }));
        // The circuit breaker is not the subject here.
        let limits = json!({ "breaker_failures": 0 });
        let gateway = configured(json!({ "mcpServers": { "a": server }, "limits": limits })).await;
        let client = gateway.client("direct").await;
        client.text("echo", json!({ "text": "up" })).await;
        Self { fixture, proxy, client, _gateway: gateway }
    }

    /// Calls with a cut after some bytes; returns whether it was cut, whether it was answered, and how often it ran.
    async fn cut(&self, fault: ProxyFault, tool: &str) -> (bool, bool, u64) {
        let before = self.fixture.calls();
        self.proxy.set(fault.once()).await;
        let result = self.client.call(tool, json!({ "text": "x" })).await;
        let cut = self.proxy.fault() == ProxyFault::default();
        self.proxy.set(ProxyFault::default()).await;
        (cut, result["isError"] != true, self.fixture.calls() - before)
    }

    /// Cuts at every `step`th byte until all bytes pass; `check` gets the outcome of each call.
    async fn everywhere(
        &self,
        fault: fn(usize) -> ProxyFault,
        tool: &str,
        step: usize,
        mut check: impl FnMut(usize, bool, u64),
    ) {
        for bytes in (0..ENOUGH).step_by(step) {
            if tool == "echo" {
                // Retries need budget from successful calls.
                for _ in 0..5 {
                    self.client.text("echo", json!({ "text": "well" })).await;
                }
            }
            let (cut, answered, runs) = self.cut(fault(bytes), tool).await;
            check(bytes, answered, runs);
            if !cut && bytes > 100 {
                assert!(answered && runs == 1, "nothing was cut");
                return;
            }
        }
        panic!("the request is longer than {ENOUGH} bytes");
    }
}

/// Calls `count`, which has no idempotency hint and must not run twice.
async fn never_twice(era: Era) {
    let scene = CutScene::open(era, PostResponseFormat::Json).await;
    for fault in [ProxyFault::cut_request_after, ProxyFault::cut_answer_after] {
        let mut lost = 0;
        scene
            .everywhere(fault, "count", 1, |bytes, answered, runs| {
                assert!(runs <= 1, "cut after {bytes} bytes, and run {runs} times");
                assert!(!answered || runs == 1, "an answer of a call that did not run");
                lost += usize::from(!answered);
            })
            .await;
        assert!(lost > 50, "only {lost} calls were lost: the cuts do not hit");
    }
}

async fn succeeds_in_the_end(era: Era) {
    let scene = CutScene::open(era, PostResponseFormat::Json).await;
    for fault in [ProxyFault::cut_request_after, ProxyFault::cut_answer_after] {
        let mut repeated = 0;
        scene
            .everywhere(fault, "echo", 17, |bytes, answered, runs| {
                assert!(answered, "cut after {bytes} bytes, and not tried again");
                assert!((1..=2).contains(&runs));
                repeated += usize::from(runs == 2);
            })
            .await;
        let answers = fault(1).to_client.cut_after.is_some();
        assert!(repeated > 0 || !answers, "whose answer is cut has run, and runs again");
    }
}

#[tokio::test]
async fn what_promises_nothing_never_runs_twice_on_a_server_with_sessions() {
    never_twice(Era::Legacy).await;
}

#[tokio::test]
async fn what_promises_nothing_never_runs_twice_on_a_stateless_server() {
    never_twice(Era::Modern).await;
}

#[tokio::test]
async fn what_may_run_twice_succeeds_wherever_it_is_cut() {
    succeeds_in_the_end(Era::Legacy).await;
    succeeds_in_the_end(Era::Modern).await;
}

/// Resuming a stream takes time, so only some positions are tried.
#[tokio::test]
async fn a_stream_cut_in_the_middle_never_runs_its_call_twice() {
    for era in [Era::Legacy, Era::Modern] {
        let scene = CutScene::open(era, PostResponseFormat::Sse).await;
        for bytes in [1, 100, 180, 260, 340, 420] {
            let cut =
                tokio::time::timeout(Duration::from_secs(20), scene.cut(ProxyFault::cut_answer_after(bytes), "count"));
            let (_, _, runs) = cut.await.expect("it ends");
            assert!(runs <= 1, "{era:?}: cut after {bytes} bytes, and run {runs} times");
        }
    }
}

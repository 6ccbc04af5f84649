//! Broken networks and servers: failures are reported, and other servers are unaffected.

use std::time::{Duration, Instant};

use hikite_testkit::fault::{FaultProxy, ProxyFault};
use hikite_testkit::fixture::{Fixture, FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{PendingCall, SessionClient, TestGateway, eventually};
use serde_json::json;

use crate::{error_of, gateway, http_fixture, with};

/// A server behind a fault proxy, and a healthy one beside it.
struct FaultScene {
    gateway: TestGateway,
    client: SessionClient,
    proxy: FaultProxy,
    bad: Fixture,
    _good: Fixture,
}

impl FaultScene {
    async fn open() -> Self {
        let (bad, server) = http_fixture().await;
        let (good, healthy) = http_fixture().await;
        let proxy = FaultProxy::start(bad.address()).await.expect("a proxy");
        let url = format!("http://{}/mcp", proxy.address());
        let bad_server = with(with(server, "url", url), "timeout", "3s");
        let gateway = gateway(json!({ "bad": bad_server, "good": healthy })).await;
        let client = gateway.client("direct").await;
        client.text("bad__echo", json!({ "text": "up" })).await;
        Self { gateway, client, proxy, bad, _good: good }
    }

    /// Begins a call that never ends, and waits until it has reached the server behind the proxy.
    async fn begin_hang(&self) -> PendingCall {
        let before = self.bad.calls();
        let call = self.client.begin_call("bad__hang", json!({}));
        assert!(eventually(|| self.bad.calls() > before).await, "the call does not run");
        call
    }

    async fn good_is_well(&self) {
        assert_eq!(self.client.text("good__echo", json!({ "text": "well" })).await, "well");
    }

    /// Clears the fault and waits until the server works again.
    async fn recovers(&self) {
        self.proxy.set(ProxyFault::default()).await;
        let begin = Instant::now();
        while self.client.call("bad__echo", json!({ "text": "x" })).await["isError"] == true {
            assert!(begin.elapsed() < Duration::from_secs(60), "it is not found again:\n{}", self.gateway.stderr());
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

#[tokio::test]
async fn a_server_that_refuses_connections_is_told_and_found_again() {
    let scene = FaultScene::open().await;
    scene.proxy.set(ProxyFault::refuse()).await;
    scene.proxy.cut();
    let error = error_of(&scene.client.call("bad__echo", json!({ "text": "x" })).await);
    assert_eq!(error["code"], "UPSTREAM_UNAVAILABLE", "{error}");
    scene.good_is_well().await;
    scene.recovers().await;
}

#[tokio::test]
async fn a_connection_cut_in_the_middle_of_a_call_fails_it_and_the_next_one_works() {
    let scene = FaultScene::open().await;
    let call = scene.begin_hang().await;
    scene.proxy.set(ProxyFault::refuse()).await;
    scene.proxy.cut();
    let error = error_of(&call.answer().await.expect("a result"));
    assert!(["UPSTREAM_UNAVAILABLE", "TIMEOUT"].contains(&error["code"].as_str().expect("a code")), "{error}");
    scene.good_is_well().await;
    scene.recovers().await;
}

#[tokio::test]
async fn a_server_that_stalls_runs_into_its_deadline_alone() {
    let scene = FaultScene::open().await;
    scene.proxy.set(ProxyFault::stall()).await;
    let call = scene.client.begin_call("bad__echo", json!({ "text": "x" }));
    let late = call.answer();
    tokio::pin!(late);
    tokio::select! {
        biased;
        answer = &mut late => panic!("the good server waited for the bad one: {answer:?}"),
        () = scene.good_is_well() => {}
    }
    assert_eq!(error_of(&late.await.expect("a result"))["code"], "TIMEOUT");
    scene.proxy.cut();
    scene.recovers().await;
}

#[tokio::test]
async fn an_answer_cut_in_the_middle_is_no_answer() {
    let scene = FaultScene::open().await;
    scene.proxy.cut();
    scene.proxy.set(ProxyFault::cut_answer_after(400)).await;
    let result = scene.client.call("bad__big_line", json!({ "bytes": 100_000 })).await;
    let code = error_of(&result)["code"].clone();
    assert!(code == "UPSTREAM_UNAVAILABLE" || code == "TIMEOUT", "{code}");
    scene.good_is_well().await;
    scene.recovers().await;
}

#[tokio::test]
async fn a_slow_network_is_only_slow() {
    let scene = FaultScene::open().await;
    scene.proxy.set(ProxyFault::delay(Duration::from_millis(50))).await;
    assert_eq!(scene.client.text("bad__echo", json!({ "text": "late" })).await, "late");
    let calls: Vec<_> = (0..8).map(|_| scene.client.begin_call("bad__echo", json!({ "text": "x" }))).collect();
    for call in calls {
        call.answer().await.expect("a result");
    }
}

#[tokio::test]
async fn a_server_that_crashes_over_http_fails_its_calls_and_not_the_gateway() {
    let scene = FaultScene::open().await;
    let hanging = scene.begin_hang().await;
    let crash = error_of(&scene.client.call("bad__crash", json!({})).await);
    assert!(["UPSTREAM_UNAVAILABLE", "TIMEOUT"].contains(&crash["code"].as_str().expect("a code")), "{crash}");
    assert_eq!(hanging.answer().await.expect("a result")["isError"], true);
    scene.good_is_well().await;
}

#[tokio::test]
async fn a_server_that_never_acknowledges_does_not_hold_up_the_end() {
    let options = FixtureOptions { never_acknowledge: true, ..FixtureOptions::default() };
    let (fixture, server) = crate::fixture(FixtureTransport::Http, options).await;
    let mut gateway = gateway(json!({ "a": server })).await;
    let client = gateway.client("direct").await;
    assert_eq!(client.text("echo", json!({ "text": "up" })).await, "up");
    let call = client.begin_call("hang", json!({}));
    assert!(eventually(|| fixture.calls() == 2).await);
    client.cancel(call.id).await;
    assert!(eventually(|| fixture.cancelled().len() == 1).await);
    let begin = Instant::now();
    assert!(gateway.stop().await.success(), "{}", gateway.stderr());
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
}

//! Traces: one per call with the upstream request inside, continued from the client's trace, and no effect on callers
//! if the collector is missing.

use std::time::{Duration, Instant};

use hikite_testkit::collector::{CollectedSpan, CollectorBehavior, OtlpCollector};
use hikite_testkit::fixture::{Fixture, FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{ClientOptions, SessionClient, StatelessEnvelope, TestGateway, eventually};
use serde_json::{Value, json};

use crate::bridge::{ERAS, upstream};
use crate::{PROGRAMS, configured, http_fixture, stdio, with};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
const SERVER: i32 = 2;
const CLIENT: i32 = 3;
const INTERNAL: i32 = 1;

fn sending_to(collector: &OtlpCollector, servers: &Value) -> Value {
    let otlp = json!({ "endpoint": collector.url(), "interval": "200ms", "timeout": "1s" });
    json!({ "mcpServers": servers, "telemetry": { "otlp": otlp } })
}

/// Waits for this many tool call spans and returns them.
async fn calls(collector: &OtlpCollector, count: usize) -> Vec<CollectedSpan> {
    let all = || -> Vec<CollectedSpan> {
        collector.spans().into_iter().filter(|span| span.name.starts_with("tools/call")).collect()
    };
    assert!(eventually(|| all().len() >= count).await, "{:#?}", collector.spans());
    all()
}

/// Returns the span of the request, and the span of the upstream request inside it.
#[track_caller]
fn pair(spans: &[CollectedSpan]) -> (&CollectedSpan, &CollectedSpan) {
    assert_eq!(spans.len(), 2, "{spans:#?}");
    let of = |kind| spans.iter().find(|span| span.kind == kind).expect("one of each");
    let (outer, inner) = (of(SERVER), of(CLIENT));
    assert_eq!((&inner.trace, &inner.parent), (&outer.trace, &outer.id));
    (outer, inner)
}

/// Returns the `traceparent` that the server received.
fn told(mirrored: &str) -> String {
    let params: Value = serde_json::from_str(mirrored).expect("JSON");
    params["_meta"]["traceparent"].as_str().expect("a trace").to_owned()
}

#[tokio::test]
async fn a_call_is_one_trace_with_the_request_to_its_server_inside() {
    for era in ERAS {
        let (fixture, web) = upstream(era).await;
        for server in [web, stdio(&["--extended"])] {
            let collector = OtlpCollector::start(CollectorBehavior::Accept).await;
            let gateway = configured(sending_to(&collector, &json!({ "a": server }))).await;
            let client = gateway.client("direct").await;
            let mirrored = client.text("mirror", json!({})).await;
            let spans = calls(&collector, 2).await;
            let (outer, inner) = pair(&spans);
            assert_eq!((outer.parent.as_str(), outer.failed, inner.failed), ("", false, false));
            assert_eq!((outer.name.as_str(), inner.name.as_str()), ("tools/call mirror", "tools/call mirror"));
            assert_eq!(outer.attributes["mcp.method.name"], "tools/call");
            assert_eq!(outer.attributes["gen_ai.tool.name"], "mirror");
            assert_eq!(outer.attributes["network.transport"], "tcp");
            assert_eq!(outer.attributes["mcp.protocol.version"], "2025-11-25");
            assert!(outer.attributes.contains_key("jsonrpc.request.id"));
            assert_eq!(inner.attributes["hikite.module"], "a");
            assert_eq!(outer.resource["service.name"], "hikite");
            assert_eq!(told(&mirrored), format!("00-{}-{}-01", inner.trace, inner.id));
        }
        let carried = fixture.traces();
        assert_eq!(carried.len(), 1, "over HTTP in a header too: {carried:?}");
    }
}

#[tokio::test]
async fn requests_without_a_session_and_programs_are_traced_alike() {
    let (fixture, web) = upstream(ERAS[1]).await;
    let collector = OtlpCollector::start(CollectorBehavior::Accept).await;
    let gateway = configured(sending_to(&collector, &json!({ "a": web }))).await;
    let client = gateway.stateless("direct", StatelessEnvelope::default());
    let mirrored = client.text("mirror", json!({})).await;
    let spans = calls(&collector, 2).await;
    let (outer, inner) = pair(&spans);
    assert_eq!(outer.attributes["mcp.protocol.version"], "2026-07-28");
    let carried = format!("00-{}-{}-01", inner.trace, inner.id);
    assert_eq!((told(&mirrored), fixture.traces()), (carried.clone(), vec![carried]));

    let collector = OtlpCollector::start(CollectorBehavior::Accept).await;
    let folder = tempfile::tempdir().expect("a folder");
    let config = sending_to(&collector, &json!({ "a": stdio(&[]) }));
    std::fs::write(folder.path().join("hikite.json"), config.to_string()).expect("a file");
    let client =
        SessionClient::over_stdio(&PROGRAMS, folder.path(), &["--surface", "direct"], ClientOptions::default()).await;
    client.text("mirror", json!({})).await;
    // It ends before the next export: shutdown sends the rest.
    client.close().await;
    let spans = calls(&collector, 2).await;
    assert_eq!(pair(&spans).0.attributes["network.transport"], "pipe");
}

async fn call_with(gateway: &TestGateway, header: Option<&str>, meta: Option<&str>) -> String {
    let mut envelope = StatelessEnvelope::default();
    if let Some(header) = header {
        envelope = envelope.header("traceparent", header).header("tracestate", "vendor=1");
    }
    if let Some(meta) = meta {
        envelope = envelope.meta("traceparent", meta);
    }
    gateway.stateless("direct", envelope).text("mirror", json!({})).await
}

#[tokio::test]
async fn the_clients_trace_is_gone_on_with() {
    let (_fixture, server) = http_fixture().await;
    let collector = OtlpCollector::start(CollectorBehavior::Accept).await;
    let gateway = configured(sending_to(&collector, &json!({ "a": server }))).await;
    let mirrored = call_with(&gateway, Some(PARENT), None).await;
    let spans = calls(&collector, 2).await;
    let (outer, inner) = pair(&spans);
    assert_eq!((outer.trace.as_str(), outer.parent.as_str()), (TRACE, "00f067aa0ba902b7"));
    assert!(told(&mirrored).contains(&inner.id) && mirrored.contains("vendor=1"), "{mirrored}");

    // The request's own trace context counts; that of its transport is linked.
    let other = PARENT.replace("4bf9", "aaaa");
    call_with(&gateway, Some(PARENT), Some(&other)).await;
    let spans = calls(&collector, 4).await;
    let (outer, _) = pair(&spans[2..]);
    assert_eq!((outer.trace.as_str(), outer.links.as_slice()), (&other[3..35], &[TRACE.to_owned()][..]));

    // The sender decided not to sample the trace; it is propagated anyway.
    let unsampled = PARENT.replace("-01", "-00");
    let mirrored = call_with(&gateway, Some(&unsampled), None).await;
    assert!(told(&mirrored).starts_with(&PARENT[..36]) && told(&mirrored).ends_with("-00"), "{mirrored}");
    // Invalid trace context is ignored.
    let mirrored = call_with(&gateway, Some("00-zz"), None).await;
    assert_eq!(told(&mirrored).len(), PARENT.len());
    assert_eq!(calls(&collector, 6).await.len(), 6);
}

#[tokio::test]
async fn without_a_collector_only_what_the_client_sent_is_carried_on() {
    let (fixture, server) = http_fixture().await;
    let gateway = configured(json!({ "mcpServers": { "a": server } })).await;
    assert_eq!(told(&call_with(&gateway, Some(PARENT), None).await), PARENT);
    assert_eq!(fixture.traces(), [PARENT]);
    let mirrored = call_with(&gateway, None, None).await;
    assert!(!mirrored.contains("traceparent"), "{mirrored}");
    assert_eq!(fixture.traces().len(), 1);
}

#[tokio::test]
async fn failures_are_told_in_one_word() {
    let (_fixture, server) = http_fixture().await;
    let collector = OtlpCollector::start(CollectorBehavior::Accept).await;
    let mut config = sending_to(&collector, &json!({ "a": server }));
    config["mcpServers"]["a"]["timeout"] = "2s".into();
    let gateway = configured(config).await;
    let client = gateway.client("direct").await;
    client.call("test_error_handling", json!({})).await;
    client.call("hang", json!({})).await;
    let _ = client.request("tools/call", json!({ "name": "no_such_tool" })).await;
    let spans = calls(&collector, 5).await;
    let of = |name: &str, kind: i32| {
        let span = spans.iter().find(|span| span.name.ends_with(name) && span.kind == kind).expect("a span");
        assert!(span.failed, "{span:#?}");
        span.attributes["error.type"].clone()
    };
    assert_eq!((of("test_error_handling", CLIENT), of("test_error_handling", SERVER)), two("tool_error", "tool_error"));
    // The client gets a timeout as a tool result.
    assert_eq!((of("hang", CLIENT), of("hang", SERVER)), two("TIMEOUT", "tool_error"));
    // An unknown name could be anything, so it is not recorded.
    let unknown: Vec<&CollectedSpan> = spans
        .iter()
        .filter(|span| span.attributes.get("error.type").is_some_and(|word| word == "TOOL_NOT_FOUND"))
        .collect();
    assert_eq!((unknown.len(), unknown[0].name.as_str(), unknown[0].kind), (1, "tools/call", SERVER));
    assert!(!collector.has_received("no_such_tool"));
}

fn two(first: &str, second: &str) -> (String, String) {
    (first.into(), second.into())
}

async fn twenty_calls(gateway: &TestGateway) -> Duration {
    let client = gateway.client("direct").await;
    client.text("echo", json!({ "text": "up" })).await;
    let begin = Instant::now();
    for number in 0..20 {
        let text = number.to_string();
        assert_eq!(client.text("echo", json!({ "text": text })).await, text);
    }
    begin.elapsed()
}

#[tokio::test]
async fn a_bad_collector_changes_nothing_for_callers() {
    let (_fixture, server) = http_fixture().await;
    for mood in [CollectorBehavior::Hang, CollectorBehavior::Reject(500), CollectorBehavior::Reject(503)] {
        let collector = OtlpCollector::start(mood).await;
        let mut gateway = configured(sending_to(&collector, &json!({ "a": server }))).await;
        let took = twenty_calls(&gateway).await;
        assert!(took < Duration::from_secs(5), "{mood:?} {took:?}");
        assert!(eventually(|| collector.requests() > 0).await);
        let begin = Instant::now();
        assert!(gateway.stop().await.success(), "{}", gateway.stderr());
        assert!(begin.elapsed() < Duration::from_secs(8), "the end does not wait for it");
        assert!(!gateway.stderr().contains("panicked"));
    }
    let nobody = Fixture::start(FixtureTransport::Http, FixtureOptions::default()).await.expect("a port");
    let address = nobody.url().replace("/mcp", "");
    nobody.stop().await;
    let config = json!({ "mcpServers": { "a": server },
        "telemetry": { "otlp": { "endpoint": address, "interval": "100ms", "timeout": "1s" } } });
    let mut gateway = configured(config).await;
    twenty_calls(&gateway).await;
    gateway.wait_for_stderr("are not accepted by the collector").await;
    assert!(gateway.stop().await.success());
    let told = gateway.stderr().matches("are not accepted by the collector").count();
    assert!(told <= 2, "once for traces, once for metrics: {}", gateway.stderr());
}

#[tokio::test]
async fn the_usual_variables_are_understood() {
    let (_fixture, server) = http_fixture().await;
    let collector = OtlpCollector::start(CollectorBehavior::Accept).await;
    let config = json!({ "mcpServers": { "a": server } });
    let url = collector.url();
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=s%20ecret"),
        ("OTEL_SERVICE_NAME", "edge"),
        ("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test"),
        ("OTEL_METRICS_EXPORTER", "none"),
    ];
    let gateway = TestGateway::start_with(&PROGRAMS, config.clone(), &variables).await;
    gateway.client("direct").await.text("echo", json!({ "text": "x" })).await;
    let spans = calls(&collector, 2).await;
    let resource = &spans[0].resource;
    assert_eq!((resource["service.name"].as_str(), resource["deployment.environment.name"].as_str()), ("edge", "test"));
    assert!(collector.headers("api-key").iter().all(|value| value.as_deref() == Some("s ecret")));
    assert!(collector.headers("content-type").iter().all(|kind| kind.as_deref() == Some("application/x-protobuf")));
    assert!(collector.series("process.uptime").is_empty());

    let off = [("OTEL_SDK_DISABLED", "true"), ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str())];
    let before = collector.requests();
    let mut gateway = TestGateway::start_with(&PROGRAMS, config.clone(), &off).await;
    gateway.client("direct").await.text("echo", json!({ "text": "x" })).await;
    assert!(gateway.stop().await.success());
    assert_eq!(collector.requests(), before);

    let none =
        [("OTEL_TRACES_SAMPLER", "always_off"), ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", &format!("{url}/v1/traces"))];
    let mut gateway = TestGateway::start_with(&PROGRAMS, config, &none).await;
    gateway.client("direct").await.text("echo", json!({ "text": "x" })).await;
    assert!(gateway.stop().await.success());
    assert_eq!(collector.requests(), before);
}

#[tokio::test]
async fn a_call_over_rest_is_one_trace_too() {
    let collector = OtlpCollector::start(CollectorBehavior::Accept).await;
    let (_fixture, server) = http_fixture().await;
    let gateway = configured(sending_to(&collector, &json!({ "a": server }))).await;
    let body = json!({ "name": "a:mirror", "parameters": {} }).to_string();
    let request = gateway.request("POST", "/v1/tools/call").json(body).header("traceparent", PARENT);
    let answer = gateway.send(request).await.value();
    assert_eq!(answer["success"], true, "{answer}");
    let spans = || -> Vec<CollectedSpan> {
        let of_it = |span: &CollectedSpan| span.name == "POST /v1/tools/call" || span.name.starts_with("tools/call");
        collector.spans().into_iter().filter(of_it).collect()
    };
    assert!(eventually(|| spans().len() >= 2).await, "{:#?}", collector.spans());
    let spans = spans();
    let (outer, inner) = pair(&spans);
    assert_eq!((outer.trace.as_str(), outer.name.as_str()), (TRACE, "POST /v1/tools/call"));
    let carried = answer["result"]["_meta"]["traceparent"].as_str().expect("a trace").to_owned();
    assert_eq!(carried, format!("00-{TRACE}-{}-01", inner.id));
}

#[tokio::test]
async fn the_wait_for_a_turn_is_a_step_of_the_trace_and_the_audit_names_the_trace() {
    let (fixture, server) = http_fixture().await;
    let server = with(server, "concurrency", 1);
    let collector = OtlpCollector::start(CollectorBehavior::Accept).await;
    let gateway = configured(sending_to(&collector, &json!({ "a": server }))).await;
    let client = gateway.client("direct").await;
    let first = client.begin_call("hang", json!({}));
    assert!(eventually(|| fixture.calls() == 1).await);
    let envelope = StatelessEnvelope::default().header("traceparent", PARENT).header("x-request-id", "slow-1");
    let second = gateway.stateless("direct", envelope);
    let waiting = async {
        for _ in 0..1000 {
            let reply = gateway.send(gateway.request("GET", "/metrics")).await;
            let mut lines = reply.text().lines();
            if lines.any(|line| line.starts_with("hikite_calls_waiting{") && line.ends_with(" 1")) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        client.cancel(first.id).await;
    };
    let (_, ()) = tokio::join!(second.text("mirror", json!({})), waiting);
    let of_trace =
        || -> Vec<CollectedSpan> { collector.spans().into_iter().filter(|span| span.trace == TRACE).collect() };
    assert!(eventually(|| of_trace().len() >= 3).await, "{:#?}", of_trace());
    let spans = of_trace();
    let of = |kind| spans.iter().find(|span| span.kind == kind).expect("one of each");
    // A slow machine makes the check of the arguments long enough to be a step of its own.
    let queue = spans.iter().find(|span| span.kind == INTERNAL && span.name == "queue").expect("a wait");
    let outer = of(SERVER);
    assert_eq!((&queue.parent, queue.failed), (&outer.id, false));
    assert_eq!(of(CLIENT).parent, outer.id);
    let mut recorded = Value::Null;
    for _ in 0..200 {
        let reply = gateway.send(gateway.request("GET", "/v1/audit?requestId=slow-1")).await;
        recorded = reply.value()["records"][0].clone();
        if !recorded.is_null() {
            break;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(recorded["traceId"], TRACE, "{recorded}");
}

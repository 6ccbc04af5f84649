//! The log: one line for each request with its id, in a format for collectors, and never a secret.

use hikite_testkit::collector::{CollectorBehavior, OtlpCollector};
use hikite_testkit::fixture::{FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{StatelessEnvelope, TestGateway, eventually};
use serde_json::{Value, json};

use crate::{PROGRAMS, configured, fixture, http_fixture, stdio, with};

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";

/// Returns the lines of a JSON log.
fn lines(gateway: &TestGateway) -> Vec<Value> {
    let stderr = gateway.stderr();
    let objects = stderr.lines().filter(|line| line.starts_with("{\"timestamp\""));
    objects.map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

#[tokio::test]
async fn every_request_has_one_line_with_its_id() {
    let (_fixture, server) = http_fixture().await;
    let config = json!({ "mcpServers": { "a": server }, "telemetry": { "log": { "format": "json" } } });
    let gateway = TestGateway::start_with(&PROGRAMS, config, &[]).await;
    let parent = format!("00-{TRACE}-00f067aa0ba902b7-01");
    let envelope = StatelessEnvelope::default().header("x-request-id", "mine-1").header("traceparent", &parent);
    gateway.stateless("direct", envelope).text("echo", json!({ "text": "x" })).await;
    gateway.stateless("direct", StatelessEnvelope::default()).text("echo", json!({ "text": "x" })).await;
    let calls =
        || -> Vec<Value> { lines(&gateway).into_iter().filter(|line| line["target"] == "hikite::call").collect() };
    assert!(eventually(|| calls().len() == 2).await, "{}", gateway.stderr());
    let calls = calls();
    let first = &calls[0];
    assert_eq!((&first["request_id"], &first["trace_id"]), (&json!("mine-1"), &json!(TRACE)));
    for (name, value) in [
        ("level", json!("INFO")),
        ("caller", json!("owner")),
        ("module", json!("a")),
        ("call", json!("a:echo")),
        ("outcome", json!("ok")),
    ] {
        assert_eq!(first[name], value, "{first}");
    }
    assert!(first["ms"].is_number() && first["bytes"].is_number() && first["session"].is_number());
    assert!(first.as_object().expect("an object").values().all(|value| !value.is_object()), "flat: {first}");
    let id = calls[1]["request_id"].as_str().expect("an id");
    assert!(id.len() == 32 && calls[1].get("trace_id").is_none(), "{}", calls[1]);
}

#[tokio::test]
async fn lines_that_a_request_causes_name_it() {
    let config = json!({ "telemetry": { "log": { "format": "json" } } });
    let gateway = configured(config).await;
    let client = gateway.client("direct").await;
    let began = || lines(&gateway).into_iter().find(|line| line["message"] == "session started");
    assert!(eventually(|| began().is_some()).await);
    assert_eq!(began().expect("a line")["request_id"].as_str().map(str::len), Some(32));
    drop(client);
}

#[tokio::test]
async fn an_id_is_told_with_every_answer() {
    let gateway = configured(json!({})).await;
    for path in ["/", "/health", "/mcp", "/metrics", "/nothing"] {
        let reply = gateway.send(gateway.request("GET", path).header("x-request-id", "abc")).await;
        assert_eq!(reply.headers["x-request-id"], "abc", "{path}");
        let reply = gateway.send(gateway.request("GET", path).without("authorization")).await;
        assert_eq!(reply.headers["x-request-id"].len(), 32, "{path}");
    }
}

#[tokio::test]
async fn the_level_is_the_flags_then_the_files_then_the_environments_and_follows_the_file() {
    let quiet = |gateway: &TestGateway| !gateway.stderr().contains("INFO");
    let (file, none) = (json!({ "telemetry": { "log": { "level": "info" } } }), json!({}));
    // The address is logged at info level, and the test needs it to connect, so only configurations that log it are
    // tried.
    let gateway = TestGateway::start_with(&PROGRAMS, file, &[("LOG_LEVEL", "fatal")]).await;
    assert!(!quiet(&gateway));
    let gateway = TestGateway::start_with(&PROGRAMS, none, &[("LOG_LEVEL", "debug")]).await;
    gateway.client("direct").await;
    gateway.write_config(&json!({ "telemetry": { "log": { "level": "error", "format": "json" } } }));
    gateway.wait_for_stderr("the changed config is active").await;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    let before = gateway.stderr().len();
    gateway.client("direct").await;
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    assert_eq!(gateway.stderr()[before..].matches("session started").count(), 0, "{}", gateway.stderr());

    let folder = tempfile::tempdir().expect("a folder");
    let wrong = json!({ "telemetry": { "log": { "level": "a=b=c" } } });
    std::fs::write(folder.path().join("hikite.json"), wrong.to_string()).expect("a file");
    let run = PROGRAMS.run(folder.path(), &["config", "check"]).await;
    assert_eq!(run.code, Some(2), "{}", run.stderr);
    assert!(run.stderr.contains("is not a log level"), "{}", run.stderr);
}

#[tokio::test]
async fn host_and_port_of_the_environment_count_last_and_are_judged_like_any_other() {
    let folder = tempfile::tempdir().expect("a folder");
    std::fs::write(folder.path().join("hikite.json"), "{}").expect("a file");
    let mut command = tokio::process::Command::from(PROGRAMS.hikite(folder.path()));
    command.arg("serve").env("HOST", "0.0.0.0").env("PORT", "0").kill_on_drop(true);
    let output = tokio::time::timeout(std::time::Duration::from_secs(10), command.output());
    let output = output.await.expect("it ends").expect("it starts");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("is reachable from other machines"));
    // The flag overrides both.
    let gateway = TestGateway::start_with(&PROGRAMS, json!({}), &[("HOST", "0.0.0.0"), ("PORT", "1")]).await;
    assert!(gateway.address().ip().is_loopback() && gateway.address().port() != 1);
}

#[tokio::test]
async fn a_secret_shows_in_no_log_no_trace_and_no_metric() {
    const SECRET: &str = "canary-7f3a91";
    let guarded = FixtureOptions { require_header: Some(("x-key".into(), SECRET.into())), ..FixtureOptions::default() };
    let (_fixture, web) = fixture(FixtureTransport::Http, guarded).await;
    let web = with(web, "headers", json!({ "x-key": SECRET }));
    let collector = OtlpCollector::start(CollectorBehavior::Accept).await;
    let otlp = json!({ "endpoint": collector.url(), "interval": "100ms", "headers": { "api-key": SECRET } });
    let metrics = json!({ "token": format!("{SECRET}-{SECRET}") });
    let config = json!({ "mcpServers": { "web": web, "program": stdio(&[]) },
        "telemetry": { "otlp": otlp, "metrics": metrics, "log": { "level": "trace", "format": "json" } } });
    let gateway = configured(config).await;
    let client = gateway.client("direct").await;
    for module in ["web", "program"] {
        // In arguments and results.
        assert_eq!(client.text(&format!("{module}__echo"), json!({ "text": SECRET })).await, SECRET);
        // In a server's error message: it repeats the requested name.
        let _ = client.request("prompts/get", json!({ "name": SECRET })).await;
        let params = json!({ "name": format!("{module}__echo"), "arguments": { "wrong": SECRET } });
        let _ = client.request("tools/call", params).await;
        let _ = client.request("resources/read", json!({ "uri": format!("test://static-text?key={SECRET}") })).await;
    }
    let envelope = StatelessEnvelope::default().header("x-secret", SECRET).header("cookie", SECRET);
    gateway.stateless("direct", envelope).text("web__echo", json!({ "text": SECRET })).await;
    // In query strings and in invalid tokens.
    let path = format!("/mcp?surface=direct&key={SECRET}");
    gateway.send(gateway.request("POST", &path).json(format!("{{\"a\":\"{SECRET}\"}}"))).await;
    gateway.send(gateway.request("GET", &format!("/nothing?{SECRET}"))).await;
    gateway.send(gateway.request("GET", "/mcp").header("authorization", &format!("Bearer {SECRET}"))).await;
    assert!(eventually(|| collector.spans().iter().filter(|span| span.name.ends_with("echo")).count() >= 8).await);
    assert!(eventually(|| !collector.series("mcp.client.operation.duration").is_empty()).await);

    let scraped = gateway.send(gateway.request("GET", "/metrics")).await;
    assert!(scraped.text().contains("mcp_client_operation_duration_seconds_bucket"));
    assert!(!scraped.text().contains(SECRET), "{}", scraped.text());
    assert!(!collector.has_received(SECRET), "{:#?}", collector.spans());
    let log = gateway.stderr();
    assert!(log.contains("hikite::call"));
    let shown: Vec<&str> = log.lines().filter(|line| line.contains(SECRET)).collect();
    assert!(shown.is_empty(), "{shown:#?}");
}

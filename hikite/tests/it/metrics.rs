//! Metrics: the Prometheus format, the OTLP export, and access control.

use std::collections::{BTreeMap, HashMap, HashSet};

use hikite_testkit::collector::{CollectorBehavior, OtlpCollector};
use hikite_testkit::gateway::{TestGateway, eventually};
use serde_json::json;

use crate::{configured, http_fixture, with};

type MetricLabels = BTreeMap<String, String>;

/// A strictly parsed Prometheus text exposition.
#[derive(Debug, Default)]
pub(crate) struct Exposition {
    kinds: HashMap<String, String>,
    samples: Vec<(String, MetricLabels, f64)>,
}

impl Exposition {
    fn parse(text: &str) -> Self {
        assert!(text.ends_with('\n'), "the last line ends");
        let mut parsed = Self::default();
        let (mut helped, mut seen) = (HashSet::new(), HashSet::new());
        for line in text.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect("a help");
                assert!(!help.is_empty() && helped.insert(name.to_owned()), "{line}");
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a type");
                assert!(matches!(kind, "counter" | "gauge" | "histogram"), "{line}");
                assert!(parsed.kinds.insert(name.to_owned(), kind.to_owned()).is_none(), "{line}");
            } else {
                let (name, labels, value) = sample(line);
                assert!(seen.insert((name.clone(), labels.clone())), "told twice: {line}");
                parsed.samples.push((name, labels, value));
            }
        }
        parsed.check();
        parsed
    }

    /// Asserts that every sample has a type and every histogram adds up.
    fn check(&self) {
        for (name, labels, _) in &self.samples {
            let parts = ["_bucket", "_sum", "_count"].iter().find_map(|part| name.strip_suffix(part));
            let family = parts.filter(|family| self.kinds.get(*family).is_some_and(|kind| kind == "histogram"));
            assert!(family.is_some() || self.kinds.contains_key(name), "{name} has no type");
            assert_eq!(self.kinds.get(name).is_some_and(|kind| kind == "counter"), name.ends_with("_total"), "{name}");
            let valid = |name: &String| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
            assert!(valid(name) && labels.keys().all(valid), "{name} {labels:?}");
        }
        for (family, _) in self.kinds.iter().filter(|(_, kind)| *kind == "histogram") {
            for (name, labels, count) in &self.samples {
                if *name != format!("{family}_count") {
                    continue;
                }
                let buckets: Vec<f64> = self
                    .samples
                    .iter()
                    .filter(|(bucket, of, _)| {
                        let mut of = of.clone();
                        of.remove("le").is_some() && *bucket == format!("{family}_bucket") && of == *labels
                    })
                    .map(|(_, _, value)| *value)
                    .collect();
                assert!(buckets.is_sorted() && buckets.last() == Some(count), "{family} {labels:?} {buckets:?}");
            }
        }
    }

    /// Returns the sum over all series of a metric with these labels.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let fits =
            |of: &MetricLabels| labels.iter().all(|(name, value)| of.get(*name).is_some_and(|known| known == value));
        self.samples.iter().filter(|(known, of, _)| known == name && fits(of)).map(|(_, _, value)| value).sum()
    }
}

fn sample(line: &str) -> (String, MetricLabels, f64) {
    let (name, rest) = line.split_at(line.find(['{', ' ']).expect("a value"));
    let mut labels = MetricLabels::new();
    let mut rest = rest;
    if let Some(mut inside) = rest.strip_prefix('{') {
        while !inside.starts_with('}') {
            let (label, after) = inside.split_once("=\"").expect("a label");
            let mut value = String::new();
            let mut characters = after.char_indices();
            let end = loop {
                match characters.next().expect("an end") {
                    (_, '\\') => value.push(match characters.next().expect("an escape").1 {
                        'n' => '\n',
                        other => other,
                    }),
                    (at, '"') => break at,
                    (_, other) => value.push(other),
                }
            };
            assert!(labels.insert(label.to_owned(), value).is_none(), "{line}");
            inside = after[end + 1..].trim_start_matches(',');
        }
        rest = &inside[1..];
    }
    (name.to_owned(), labels, rest.strip_prefix(' ').expect("a blank").parse().expect("a number"))
}

pub(crate) async fn scraped(gateway: &TestGateway) -> Exposition {
    let reply = gateway.send(gateway.request("GET", "/metrics")).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.headers["content-type"], "text/plain; version=0.0.4; charset=utf-8");
    Exposition::parse(reply.text())
}

#[tokio::test]
async fn calls_are_counted_by_module_and_outcome() {
    let (_fixture, server) = http_fixture().await;
    let slow = with(with(server.clone(), "rate", "1/h"), "timeout", "300ms");
    let gateway = configured(json!({ "mcpServers": { "a": server, "slow \"one\"": slow } })).await;
    let client = gateway.client("direct").await;
    for _ in 0..3 {
        client.text("a__echo", json!({ "text": "x" })).await;
    }
    client.call("a__test_error_handling", json!({})).await;
    let tools = client.names("tools/list").await;
    let hang = tools.iter().find(|name| name.contains("one") && name.ends_with("hang")).expect("a tool");
    client.call(hang, json!({})).await;
    client.call(hang, json!({})).await;
    let read = scraped(&gateway).await;
    let one = [("module", "slow \"one\"")];
    let calls = "hikite_call_duration_seconds_count";
    assert!(
        (read.value(calls, &[("module", "a"), ("outcome", "ok"), ("mcp_method_name", "tools/call")]) - 3.0).abs() < 0.1
    );
    assert!((read.value(calls, &[("module", "a"), ("outcome", "tool_error")]) - 1.0).abs() < 0.1);
    assert!((read.value(calls, &[one[0], ("outcome", "TIMEOUT")]) - 1.0).abs() < 0.1);
    assert!((read.value(calls, &[one[0], ("outcome", "RATE_LIMIT_EXCEEDED")]) - 1.0).abs() < 0.1);
    let requests = "mcp_client_operation_duration_seconds_count";
    assert!((read.value(requests, &[("module", "a"), ("error_type", "tool_error")]) - 1.0).abs() < 0.1);
    assert!((read.value(requests, &one) - 1.0).abs() < 0.1, "what is over the rate is not sent");
    assert!((read.value("hikite_rate_limited_total", &one) - 1.0).abs() < 0.1);
    assert!((read.value("hikite_calls_waiting", &[]) - 0.0).abs() < 0.1);
    assert!((read.value("hikite_upstream_state", &[("module", "a"), ("state", "running")]) - 1.0).abs() < 0.1);
    assert!((read.value("hikite_breaker_state", &[("module", "a"), ("state", "closed")]) - 1.0).abs() < 0.1);
    assert!((read.value("hikite_sessions", &[]) - 1.0).abs() < 0.1);
    let operations = "mcp_server_operation_duration_seconds_count";
    assert!(
        (read.value(operations, &[("mcp_method_name", "initialize"), ("network_transport", "tcp")]) - 1.0).abs() < 0.1
    );
    assert!(
        (read.value(operations, &[("mcp_method_name", "tools/call"), ("error_type", "tool_error")]) - 3.0).abs() < 0.1
    );
    let exchanges = "http_server_request_duration_seconds_count";
    assert!(read.value(exchanges, &[("http_route", "/mcp"), ("http_request_method", "POST")]) >= 7.0);
    for name in ["process_uptime_seconds", "process_memory_usage_bytes", "process_open_fds", "hikite_build_info"] {
        assert!(read.value(name, &[]) > 0.0, "{name}");
    }
}

#[tokio::test]
async fn a_call_that_is_given_up_is_counted_as_such() {
    let (fixture, server) = http_fixture().await;
    let gateway = configured(json!({ "mcpServers": { "a": server } })).await;
    let client = gateway.client("direct").await;
    let running = client.begin_call("hang", json!({}));
    assert!(eventually(|| fixture.calls() == 1).await);
    assert!((scraped(&gateway).await.value("hikite_calls_in_flight", &[("module", "a")]) - 1.0).abs() < 0.1);
    drop(running);
    let mut over = false;
    for _ in 0..200 {
        let read = scraped(&gateway).await;
        over = read.value("hikite_call_duration_seconds_count", &[("outcome", "cancelled")]) > 0.5
            && read.value("mcp_client_operation_duration_seconds_count", &[("error_type", "CANCELLED")]) > 0.5
            && read.value("hikite_calls_in_flight", &[]) < 0.5;
        if over {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    assert!(over, "it is over, and counted");
}

#[tokio::test]
async fn metrics_are_for_the_owner_and_the_holder_of_their_token() {
    let gateway = configured(json!({ "telemetry": { "metrics": { "token": "only-for-metrics" } } })).await;
    let with = |path: &str, method: &str, token: &str| {
        gateway.request(method, path).header("authorization", &format!("Bearer {token}"))
    };
    let owner = gateway.token().to_owned();
    for (request, status) in [
        (with("/metrics", "GET", &owner), 200),
        (with("/metrics", "GET", "only-for-metrics"), 200),
        (with("/metrics", "GET", "only-for-metric"), 401),
        (with("/metrics", "GET", ""), 401),
        (gateway.request("GET", "/metrics").without("authorization"), 401),
        (gateway.request("POST", "/metrics").without("authorization"), 401),
        (with("/metrics", "POST", "only-for-metrics"), 405),
        (with("/metrics", "GET", &owner).header("host", "evil.example"), 403),
        (with("/metrics", "GET", &owner).header("origin", "https://evil.example"), 403),
        // It gives access to nothing else.
        (with("/mcp", "POST", "only-for-metrics"), 401),
        (with("/sse", "GET", "only-for-metrics"), 401),
        (with("/nothing", "GET", "only-for-metrics"), 401),
    ] {
        let shown = format!("{request:?}");
        let reply = gateway.send(request).await;
        assert_eq!(reply.status, status, "{shown}");
        assert_eq!(reply.status == 200, reply.text().contains("hikite_build_info"), "{shown}");
    }
    let plain = configured(json!({})).await;
    let request = plain.request("GET", "/metrics").header("authorization", "Bearer only-for-metrics");
    assert_eq!(plain.send(request).await.status, 401, "without the config there is no such token");
}

#[tokio::test]
async fn a_collector_is_sent_the_same_numbers() {
    let (_fixture, server) = http_fixture().await;
    let collector = OtlpCollector::start(CollectorBehavior::Accept).await;
    let config = json!({ "mcpServers": { "a": server },
        "telemetry": { "otlp": { "endpoint": collector.url(), "interval": "100ms" } } });
    let gateway = configured(config).await;
    let client = gateway.client("direct").await;
    for _ in 0..5 {
        client.text("echo", json!({ "text": "x" })).await;
    }
    let counted = || {
        let series = collector.series("mcp.client.operation.duration");
        series.iter().any(|series| {
            series.attributes["module"] == "a"
                && series.attributes["mcp.method.name"] == "tools/call"
                && (series.value - 5.0).abs() < 0.1
                && series.unit == "s"
        })
    };
    assert!(eventually(counted).await, "{:#?}", collector.series("mcp.client.operation.duration"));
    assert_eq!(collector.series("hikite.upstream.state").len(), 5);
    assert_eq!(collector.series("hikite.trace.dropped").len(), 1);
}

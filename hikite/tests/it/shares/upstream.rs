//! Servers without end: endless lists, and an image for every item of a list.

use std::time::Duration;

use hikite_testkit::fixture::{Era, FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::TestGateway;
use serde_json::{Value, json};

use crate::rest::{get, post};
use crate::{configured, fixture, stdio};

const MIB: usize = 1024 * 1024;

/// Returns the gateway's peak memory.
fn peak_bytes(gateway: &TestGateway) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{}/status", gateway.pid())).expect("a process");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).expect("its peak");
    let kib: usize = line.trim().trim_end_matches("kB").trim().parse().expect("a number");
    kib * 1024
}

async fn why(gateway: &TestGateway, module: &str) -> String {
    for _ in 0..1200 {
        let body = get(gateway, &format!("/v1/modules/{module}")).await.value();
        let text = body.to_string();
        if text.contains("limits.list_") || text.contains("The lists of") || text.contains("returned more pages") {
            return text;
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    panic!("it is not refused: {}\n{}", get(gateway, "/v1/modules").await.text(), gateway.stderr())
}

#[tokio::test]
async fn a_server_with_endless_lists_is_refused_with_a_reason() {
    let lists = ["tools/list", "resources/list", "resources/templates/list", "prompts/list"];
    let mut cases = Vec::new();
    for (number, list) in lists.into_iter().enumerate() {
        let era = if number % 2 == 0 { Era::Legacy } else { Era::Modern };
        cases.push((list, era, FixtureTransport::Http));
    }
    cases.extend([
        ("tools/list", Era::Modern, FixtureTransport::Http),
        ("tools/list", Era::Legacy, FixtureTransport::Sse),
    ]);
    let (mut fixtures, mut servers) = (Vec::new(), json!({}));
    for (number, (list, era, transport)) in cases.iter().enumerate() {
        let options = FixtureOptions { era: *era, endless: Some((list, MIB)), ..FixtureOptions::default() };
        let (fixture, server) = fixture(*transport, options).await;
        fixtures.push(fixture);
        servers[format!("m{number}")] = server;
    }
    let limits = json!({ "list_bytes": "8MiB" });
    let gateway = configured(json!({ "mcpServers": servers, "limits": limits })).await;
    for number in 0..cases.len() {
        let text = why(&gateway, &format!("m{number}")).await;
        assert!(text.contains("The lists of"), "{text}");
    }
    assert!(peak_bytes(&gateway) < 600 * MIB, "{} bytes", peak_bytes(&gateway));
}

#[tokio::test]
async fn a_list_has_so_many_pages_and_no_more() {
    let limits = json!({ "list_pages": 3 });
    let servers = json!({ "p": stdio(&["--page", "1"]), "whole": stdio(&[]) });
    let gateway = configured(json!({ "mcpServers": servers, "limits": limits })).await;
    let text = why(&gateway, "p").await;
    assert!(text.contains("returned more pages"), "{text}");
    let tools = get(&gateway, "/v1/tools?module=whole").await.value();
    assert!(tools.to_string().contains("echo"), "{tools}");
}

#[tokio::test]
async fn pictures_count_in_a_batch() {
    let options = FixtureOptions { picture_bytes: Some(MIB / 4), ..FixtureOptions::default() };
    let (_fixture, server) = fixture(FixtureTransport::Http, options).await;
    let limits = json!({ "answer_bytes": "2MiB" });
    let gateway = configured(json!({ "mcpServers": { "web": server }, "limits": limits })).await;
    let pictures = |count: usize, more: Value| {
        let mut task = json!({ "id": "p", "module": "web", "tool": "test_image_content",
            "params": {}, "for_each": (0..count).collect::<Vec<_>>() });
        for (name, value) in more.as_object().into_iter().flatten() {
            task[name] = value.clone();
        }
        json!({ "commands": [task] })
    };
    let one = post(&gateway, "/v1/batch", &pictures(1, json!({ "output": true }))).await;
    assert_eq!(one.value()["result"]["tasks"][0]["status"], "ok", "{}", one.status);
    let refused = post(&gateway, "/v1/batch", &pictures(20, json!({ "output": true }))).await.value();
    assert_eq!(refused["result"]["tasks"][0]["error"]["code"], "PAYLOAD_TOO_LARGE", "{refused}");
    // Discarded if not requested.
    let unwanted = post(&gateway, "/v1/batch", &pictures(20, json!({ "output": false }))).await.value();
    assert_eq!(unwanted["result"]["tasks"][0]["status"], "ok", "{unwanted}");
}

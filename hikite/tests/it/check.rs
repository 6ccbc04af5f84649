//! Argument checking through the whole product: unambiguous mistakes are repaired, errors come with the schema, and a
//! broken schema disables only its own check.

use hikite_testkit::fixture::{Fixture, FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{SessionClient, TestGateway, eventually};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::{error_of, fixture, gateway};

/// Starts a server with these tools, which return their own arguments.
async fn server(tools: Value) -> (TempDir, Fixture, TestGateway, SessionClient) {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("list.json");
    std::fs::write(&file, json!({ "tools": tools }).to_string()).expect("written");
    let options = FixtureOptions { replay: Some(file), unvalidated: true, ..FixtureOptions::default() };
    let (fixture, definition) = fixture(FixtureTransport::Http, options).await;
    let gateway = gateway(json!({ "a": definition })).await;
    let client = gateway.client("direct").await;
    (folder, fixture, gateway, client)
}

async fn arrived(client: &SessionClient, tool: &str, arguments: Value) -> Value {
    let text = client.text(tool, arguments).await;
    serde_json::from_str::<Value>(&text).expect("JSON")["arguments"].clone()
}

fn search() -> Value {
    json!({
        "type": "object",
        "properties": {
            "query": { "type": "string" },
            "limit": { "type": "integer", "minimum": 1, "maximum": 50, "default": 10 },
            "exact": { "type": "boolean" },
            "filter": { "type": "object", "properties": { "tag": { "type": "string" } } },
        },
        "required": ["query"],
    })
}

#[tokio::test]
async fn what_was_certainly_meant_arrives_as_the_schema_wants_it() {
    let tools = json!([{ "name": "search", "inputSchema": search() }]);
    let (_folder, _fixture, _gateway, client) = server(tools).await;
    let asked = json!({ "query": "q", "limit": 10 });
    for sent in [
        json!({ "query": "q" }),
        json!({ "query": "q", "limit": "10" }),
        json!({ "arguments": { "query": "q", "limit": 10 } }),
        json!(r#"{"query":"q","limit":10}"#),
    ] {
        assert_eq!(arrived(&client, "search", sent.clone()).await, asked, "{sent}");
    }
    let sent = json!({ "query": "q", "limit": 5, "exact": "true", "filter": r#"{"tag":"x"}"# });
    let meant = json!({ "query": "q", "limit": 5, "exact": true, "filter": { "tag": "x" } });
    assert_eq!(arrived(&client, "search", sent).await, meant);
}

#[tokio::test]
async fn what_is_wrong_is_told_all_at_once_with_the_schema_and_never_sent() {
    let tools = json!([{ "name": "search", "inputSchema": search() }]);
    let (_folder, fixture, _gateway, client) = server(tools).await;
    let result = client.call("search", json!({ "limit": 99, "exact": "yes" })).await;
    let error = error_of(&result);
    assert_eq!(error["code"], "VALIDATION_ERROR");
    assert_eq!(error["schema"], search());
    let mut pointers: Vec<&str> =
        error["details"].as_array().expect("details").iter().filter_map(|f| f["pointer"].as_str()).collect();
    pointers.sort_unstable();
    assert_eq!(pointers, ["/exact", "/limit", "/query"]);
    let text = result["content"][0]["text"].as_str().expect("text");
    assert!(text.contains("Required parameter missing: query") && text.contains("schema: {"), "{text}");
    assert_eq!(fixture.calls(), 0, "nothing was sent");
}

#[tokio::test]
async fn a_broken_schema_is_warned_of_and_switches_off_its_own_check_alone() {
    let broken = json!({ "type": "object", "properties": { "a": { "type": "nonsense" } } });
    let old = json!({ "$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
        "definitions": { "n": { "type": "integer" } }, "properties": { "n": { "$ref": "#/definitions/n" } } });
    let tools = json!([{ "name": "broken", "inputSchema": broken }, { "name": "old", "inputSchema": old }]);
    let (_folder, _fixture, gateway, client) = server(tools).await;
    for _ in 0..2 {
        assert_eq!(arrived(&client, "broken", json!({ "a": [] })).await, json!({ "a": [] }));
    }
    let warning = "the tool's schema is invalid";
    assert!(eventually(|| gateway.stderr().contains(warning)).await, "{}", gateway.stderr());
    assert_eq!(gateway.stderr().matches(warning).count(), 1, "told once");
    assert_eq!(arrived(&client, "old", json!({ "n": 1 })).await, json!({ "n": 1 }));
    assert_eq!(error_of(&client.call("old", json!({ "n": 1.5 })).await)["code"], "VALIDATION_ERROR");
}

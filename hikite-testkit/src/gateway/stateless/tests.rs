//! Tests of the 2026-07-28 client against the fixture itself.

use serde_json::{Value, json};

use super::{StatelessClient, StatelessEnvelope};
use crate::fixture::{Era, Fixture, FixtureOptions, FixtureTransport};

async fn fixture() -> Fixture {
    let options = FixtureOptions { era: Era::Modern, ..FixtureOptions::default() };
    Fixture::start(FixtureTransport::Http, options).await.expect("a fixture")
}

fn client(fixture: &Fixture, envelope: StatelessEnvelope) -> StatelessClient {
    StatelessClient::over_http(fixture.address(), "/mcp", None, envelope)
}

#[tokio::test]
async fn a_call_has_its_result_and_what_was_said_before_it() {
    let fixture = fixture().await;
    let client = client(&fixture, StatelessEnvelope::default().progress_token("p").log_level("debug"));
    let outcome = client.call("test_tool_with_progress", json!({})).await;
    assert_eq!((outcome.status, outcome.told("notifications/progress").len()), (Some(200), 3));
    assert_eq!(client.call("test_logging_tool", json!({})).await.told("notifications/message").len(), 3);
    assert_eq!(client.text("echo", json!({ "text": "é" })).await, "é");
}

#[tokio::test]
async fn a_call_goes_through_its_questions() {
    let fixture = fixture().await;
    let client = client(&fixture, StatelessEnvelope::capable());
    let answer = |_: &str, question: &Value| {
        let answer = question["params"]["message"].clone();
        Some(json!({ "action": "accept", "content": { "answer": answer } }))
    };
    let through = client.call_with_answers("ask_rounds", json!({ "rounds": 2, "marker": "m" }), answer).await;
    assert_eq!(through.rounds.len(), 2);
    assert!(through.outcome.first_text().contains("m q2"), "{:?}", through.outcome);
    let prompt = json!({ "name": "test_input_required_result_prompt" });
    let context = |_: &str, _: &Value| Some(json!({ "action": "accept", "content": { "context": "c" } }));
    let through = client.request_with_answers("prompts/get", prompt, context).await;
    assert_eq!(through.outcome.result()["messages"][0]["content"]["text"], "Context: c");
}

#[tokio::test]
async fn a_subscription_hears_what_it_asked_for_and_its_end() {
    let fixture = fixture().await;
    let client = client(&fixture, StatelessEnvelope::default());
    let listening = client.listen(json!({ "toolsListChanged": true })).await;
    assert_eq!(listening.acknowledged, json!({ "toolsListChanged": true }));
    fixture.add_tool("late");
    listening.told("notifications/tools/list_changed", 1).await;
    fixture.end_subscriptions();
    assert_eq!(listening.ended().await.result()["resultType"], "complete");
}

#[tokio::test]
async fn a_broken_envelope_is_refused_and_leaving_is_cancelling() {
    let fixture = fixture().await;
    let client = client(&fixture, StatelessEnvelope::default());
    let code = |envelope: StatelessEnvelope| {
        let client = client.with_envelope(envelope);
        async move { client.call("echo", json!({ "text": "x" })).await.code() }
    };
    assert_eq!(code(StatelessEnvelope::default().header("Mcp-Name", "other")).await, -32020);
    assert_eq!(code(StatelessEnvelope::default().without_header("Mcp-Method")).await, -32020);
    assert_eq!(code(StatelessEnvelope::default().meta("clientCapabilities", Value::Null)).await, -32602);
    assert_eq!(code(StatelessEnvelope::default().revision("1900-01-01")).await, -32022);
    let hanging = client.begin_call("hang", json!({}));
    assert!(crate::gateway::eventually(|| fixture.calls() == 1).await);
    hanging.cancel();
    assert!(crate::gateway::eventually(|| fixture.cancelled().len() == 1).await);
}

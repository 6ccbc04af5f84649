//! Stateless requests go to any node; their continuation tokens lead to the node that has the suspended call.

use hikite_testkit::gateway::{StatelessClient, StatelessEnvelope};
use serde_json::{Value, json};

use super::*;
use crate::http_fixture;

/// A tool that asks its client one question.
const ASKS: &str = "ask";

fn at(cluster: &Cluster, number: usize) -> StatelessClient {
    let envelope = StatelessEnvelope::default().capabilities(json!({ "elicitation": {} }));
    StatelessClient::over_http(cluster.address(number), "/mcp", Some(TOKEN), envelope)
}

fn what() -> Value {
    json!({ "kind": "elicitation", "marker": "m" })
}

fn with_answer(asked: &Value) -> Value {
    let name = asked["inputRequests"].as_object().and_then(|all| all.keys().next()).expect("a question");
    json!({
        "name": ASKS,
        "arguments": what(),
        "requestState": asked["requestState"],
        "inputResponses": { name: { "action": "accept", "content": { "answer": "Ada" } } },
    })
}

#[tokio::test]
async fn a_call_that_waits_is_answered_through_any_node() {
    let mut cluster = Cluster::start(3, json!({})).await;
    let asked = at(&cluster, 0).call(ASKS, what()).await.result();
    assert_eq!(asked["resultType"], "input_required", "{asked}");
    let done = at(&cluster, 1).request("tools/call", with_answer(&asked)).await.result();
    assert!(done.to_string().contains("Ada"), "{done}");
    let again = at(&cluster, 2).request("tools/call", with_answer(&asked)).await;
    assert!(again.text.contains("`requestState` is not valid"), "once: {}", again.text);

    let asked = at(&cluster, 0).call(ASKS, what()).await.result();
    cluster.nodes[0].kill9();
    let lost = at(&cluster, 1).request("tools/call", with_answer(&asked)).await;
    assert!(
        lost.text.contains("`requestState` is not valid") || lost.text.contains("cannot be reached"),
        "it went with its node, and that is said: {}",
        lost.text
    );
}

#[tokio::test]
async fn a_long_answer_is_read_on_at_any_node_while_its_own_is_there() {
    let (_fixture, server) = http_fixture().await;
    let more = json!({ "mcpServers": { "a": server }, "limits": { "compact_bytes": "1KiB" } });
    let cluster = Cluster::start(2, more).await;
    let body =
        json!({ "name": "a:echo", "parameters": { "text": "word ".repeat(2000) }, "options": { "format": "compact" } });
    let request = HttpRequest::new("POST", "/v1/tools/call").json(body.to_string());
    let reply = cluster.send(0, request).await;
    let Some(at_text) = reply.text().find("result://") else { panic!("{}", reply.text()) };
    let uri = &reply.text()[at_text..at_text + "result://".len() + 32];
    for number in [0, 1] {
        let read = at(&cluster, number).request("resources/read", json!({ "uri": uri })).await;
        assert!(read.text.contains("word word"), "{number}: {}", read.text);
    }
}

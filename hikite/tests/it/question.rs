//! `_meta` of a question and of its answer survives between clients and servers, with sessions and without.

use std::sync::Arc;

use hikite_testkit::gateway::{ClientOptions, SessionClient, StatelessEnvelope, TestGateway};
use serde_json::{Value, json};

use crate::gateway;
use crate::identity::token;

/// A server that asks as told, with extra `_meta` members, and returns the answer.
const WITH_SESSIONS: &str = r#"
import json, sys
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
waiting = {}
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        send(id=id, result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}})
    elif method == "tools/list":
        send(id=id, result={"tools": [{"name": "ask", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call":
        question = message["params"]["arguments"]
        params = dict(question["params"])
        params["_meta"] = {**params["_meta"], "progressToken": 7}
        waiting["q%d" % id] = id
        send(id="q%d" % id, method=question["method"], params=params)
    elif method is None and id in waiting:
        text = json.dumps(message.get("result", message.get("error")))
        send(id=waiting.pop(id), result={"content": [{"type": "text", "text": text}]})
    elif id is not None:
        send(id=id, error={"code": -32601, "message": "no such method"})
"#;

/// The counterpart of `WITH_SESSIONS` for 2026-07-28.
const WITHOUT_SESSIONS: &str = r#"
import json, sys
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "server/discover":
        send(id=id, result={"resultType": "complete", "supportedVersions": ["2026-07-28"],
            "capabilities": {"tools": {}}, "ttlMs": 1000, "cacheScope": "public"})
    elif method == "tools/list":
        send(id=id, result={"resultType": "complete", "ttlMs": 1000, "cacheScope": "public",
            "tools": [{"name": "ask", "inputSchema": {"type": "object"}}]})
    elif method == "tools/call" and "inputResponses" in message["params"]:
        text = json.dumps(message["params"]["inputResponses"]["q"])
        send(id=id, result={"resultType": "complete", "content": [{"type": "text", "text": text}]})
    elif method == "tools/call":
        send(id=id, result={"resultType": "input_required", "requestState": "s",
            "inputRequests": {"q": message["params"]["arguments"]}})
    elif id is not None:
        send(id=id, error={"code": -32601, "message": "no such method"})
"#;

async fn scripted_gateway(script: &str) -> TestGateway {
    let program = json!({ "description": "d", "command": "python3", "args": ["-c", script] });
    gateway(json!({ "a": program })).await
}

fn meta() -> Value {
    json!({ "example.com/why": { "deep": [1, "2"] } })
}

/// Returns each kind of question, with an answer that has extra members.
fn questions() -> Vec<(Value, Value)> {
    let because = json!({ "example.com/because": "of it" });
    let form = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let said = json!({ "role": "user", "content": { "type": "text", "text": "hi" } });
    vec![
        (
            json!({ "method": "elicitation/create",
                "params": { "message": "?", "requestedSchema": form, "_meta": meta() } }),
            json!({ "action": "accept", "content": { "name": "n" }, "_meta": because }),
        ),
        (
            json!({ "method": "sampling/createMessage",
                "params": { "messages": [said], "maxTokens": 5, "_meta": meta() } }),
            json!({ "role": "assistant", "model": "m", "content": { "type": "text", "text": "t" }, "_meta": because }),
        ),
        (json!({ "method": "roots/list", "params": { "_meta": meta() } }), json!({ "roots": [], "_meta": because })),
    ]
}

#[tokio::test]
async fn a_client_without_a_session_reads_what_a_server_says_beside_its_question() {
    for script in [WITH_SESSIONS, WITHOUT_SESSIONS] {
        let gateway = scripted_gateway(script).await;
        let client = gateway.stateless("direct", StatelessEnvelope::capable());
        for (question, answer) in questions() {
            let through = client.call_with_answers("ask", question.clone(), |_, _| Some(answer.clone())).await;
            let asked = through.rounds[0]["inputRequests"].as_object().expect("questions").values().next();
            let asked = asked.expect("a question");
            assert_eq!(asked["params"]["_meta"], meta(), "{asked}");
            assert_eq!(asked["method"], question["method"]);
            let told: Value = serde_json::from_str(&through.outcome.first_text()).expect("JSON");
            assert_eq!(told, answer, "{question}");
        }
    }
}

#[tokio::test]
async fn a_client_with_a_session_reads_what_a_server_says_beside_its_question() {
    for script in [WITH_SESSIONS, WITHOUT_SESSIONS] {
        let gateway = scripted_gateway(script).await;
        let answers = |method: &str| {
            let all = questions();
            all.into_iter().find(|(question, _)| question["method"] == *method).map(|(_, answer)| answer)
        };
        let hello = ClientOptions { answer: Arc::new(move |asked| answers(&asked.method)), ..ClientOptions::silent() };
        let client = gateway.client_with("direct", hello).await;
        for (question, answer) in questions() {
            let told = client.text("ask", question.clone()).await;
            let asked = client.questions().pop().expect("a question");
            assert_eq!(asked.params["_meta"]["example.com/why"], meta()["example.com/why"], "{asked:?}");
            assert_eq!(serde_json::from_str::<Value>(&told).expect("JSON"), answer, "{question}");
        }
    }
}

/// Answers `leave` at once and asks after its answer, when `stay` runs; `stay` returns what became of the question.
const ASKS_TOO_LATE: &str = r#"
import json, sys
def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)
owed, staying = False, None
for line in sys.stdin:
    message = json.loads(line)
    method, id = message.get("method"), message.get("id")
    if method == "initialize":
        send(id=id, result={"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
            "serverInfo": {"name": "s", "version": "1"}})
    elif method == "tools/list":
        send(id=id, result={"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ("leave", "stay")]})
    elif method == "tools/call" and message["params"]["name"] == "leave":
        owed = True
        send(id=id, result={"content": [{"type": "text", "text": "left"}]})
    elif method == "tools/call" and owed:
        staying = id
        send(id="late", method="elicitation/create", params={"message": "what is your password?",
            "requestedSchema": {"type": "object", "properties": {"answer": {"type": "string"}}}})
    elif method == "tools/call":
        send(id=id, result={"content": [{"type": "text", "text": "nothing was owed"}]})
    elif method is None and id == "late":
        text = json.dumps(message.get("result", message.get("error")))
        send(id=staying, result={"content": [{"type": "text", "text": text}]})
    elif id is not None:
        send(id=id, error={"code": -32601, "message": "no such method"})
"#;

#[tokio::test]
async fn a_question_that_comes_after_its_call_is_not_put_to_the_next_caller() {
    let gateway = scripted_gateway(ASKS_TOO_LATE).await;
    let first = gateway.client_with("direct", ClientOptions::answering("first")).await;
    let other = token(&gateway, json!({ "name": "other" })).await;
    let options = ClientOptions::answering("second");
    let second = SessionClient::over_http(gateway.address(), "/mcp?surface=direct", Some(&other.secret), options).await;
    assert_eq!(first.text("leave", json!({})).await, "left");
    let told = second.text("stay", json!({})).await;
    assert!(second.questions().is_empty(), "{:?}", second.questions());
    assert!(!told.contains("second:"), "{told}");
    assert!(first.questions().is_empty(), "its call is over: {:?}", first.questions());
}

/// Sessions of one user share a process until its server asks. Its first question must not fail.
#[tokio::test]
async fn the_first_question_of_a_process_that_a_user_shares_reaches_the_running_call() {
    let gateway = scripted_gateway(ASKS_TOO_LATE).await;
    let first = gateway.client_with("direct", ClientOptions::answering("first")).await;
    let second = gateway.client_with("direct", ClientOptions::answering("second")).await;
    assert_eq!(first.text("leave", json!({})).await, "left");
    let told = second.text("stay", json!({})).await;
    assert!(told.contains("second:"), "{told}");
    assert!(first.questions().is_empty(), "{:?}", first.questions());
}

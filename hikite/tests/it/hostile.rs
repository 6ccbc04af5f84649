//! Requests crafted to take long, with one request thread: they are answered, rejections are short, and `/health` is
//! not delayed. Timeouts are generous; the benchmark has the figures.

use std::time::{Duration, Instant};

use hikite_testkit::gateway::{HttpReply, HttpRequest, TestGateway};
use serde_json::{Value, json};

use crate::{PROGRAMS, error_of};

/// Timeout; quadratic work on these inputs takes minutes.
const PATIENCE: Duration = Duration::from_secs(20);
/// Maximum length of an error.
const WORDS_MAX: usize = 100_000;
/// `initialize` of the one revision with batches.
const HELLO: &str = concat!(
    r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","#,
    r#""capabilities":{},"clientInfo":{"name":"t","version":"1"}}}"#
);

/// Starts a gateway with one thread and tools whose servers are never called.
async fn gateway() -> TestGateway {
    let tool = |schema: Value| {
        json!({ "description": "It is not reached.", "inputSchema": schema,
            "http": { "url": "https://hikite.invalid/" } })
    };
    let integers = json!({ "type": "array", "items": { "type": "integer" } });
    let known: serde_json::Map<String, Value> = (0..500).map(|n| (format!("known{n}"), json!(true))).collect();
    let branches: Vec<Value> = (0..2000).map(|n| json!({ "const": [n] })).collect();
    let config = json!({
        "server": { "surface": ["direct"] },
        "tools": {
            "numbers": tool(json!({ "type": "object", "properties": { "l": integers } })),
            "closed": tool(json!({ "type": "object", "properties": known, "additionalProperties": false })),
            "around": tool(json!({ "type": "object", "properties": {
                "t": { "type": "string", "pattern": "(?=(a+)+$)b" } } })),
            "either": tool(json!({ "type": "object", "properties": {
                "l": { "type": "array", "items": { "anyOf": branches } } } })),
        }
    });
    TestGateway::start_with(&PROGRAMS, config, &[("HIKITE_THREADS", "1")]).await
}

/// Returns 48 kB of arguments, as reported.
fn texts() -> Value {
    json!({ "l": vec!["1"; 12_000] })
}

/// Returns the response to a request, and the longest `/health` response until it came.
async fn meanwhile<T>(gateway: &TestGateway, request: impl Future<Output = T>) -> (T, Duration) {
    let mut longest = Duration::ZERO;
    let address = gateway.address();
    let health = async {
        loop {
            let asked = Instant::now();
            let reply = HttpRequest::new("GET", "/health").open(address).await.read().await;
            assert_eq!(reply.status, 200, "{}", reply.text());
            longest = longest.max(asked.elapsed());
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    let answer = tokio::select! {
        answer = tokio::time::timeout(PATIENCE, request) => answer.expect("an answer in time"),
        () = health => unreachable!("it goes on"),
    };
    (answer, longest)
}

/// Sends a request while others poll `/health`.
async fn send(gateway: &TestGateway, request: HttpRequest) -> HttpReply {
    let address = gateway.address();
    let answer = async { request.open(address).await.read().await };
    let (reply, longest) = meanwhile(gateway, answer).await;
    assert!(longest < Duration::from_secs(3), "/health took {longest:?}");
    reply
}

async fn post(gateway: &TestGateway, path: &str, body: String) -> HttpReply {
    send(gateway, gateway.request("POST", path).json(body)).await
}

#[track_caller]
fn refused(reply: &HttpReply, status: u16, words: &str) -> Value {
    let text = reply.text();
    assert_eq!(reply.status, status, "{}", text.chars().take(2000).collect::<String>());
    assert!(text.contains(words), "{}", text.chars().take(2000).collect::<String>());
    assert!(text.len() < WORDS_MAX, "{} bytes", text.len());
    reply.value()
}

fn call(name: &str, parameters: &Value) -> String {
    json!({ "name": name, "parameters": parameters }).to_string()
}

#[tokio::test]
async fn thousands_of_values_of_the_wrong_type_are_refused_at_once_over_rest() {
    let gateway = gateway().await;
    let reply = post(&gateway, "/v1/tools/call", call("registered:numbers", &texts())).await;
    let body = refused(&reply, 400, "more than 256 values have the wrong type");
    assert_eq!(body["code"], "VALIDATION_ERROR");
    assert_eq!(body["details"][0]["pointer"], "/l/0");
    assert_eq!(body["details"].as_array().map(Vec::len), Some(21));
}

#[tokio::test]
async fn thousands_of_values_of_the_wrong_type_are_refused_at_once_over_mcp() {
    let gateway = gateway().await;
    let direct = gateway.client("direct").await;
    let (result, longest) = meanwhile(&gateway, direct.call("registered__numbers", texts())).await;
    let error = error_of(&result);
    assert!(error["message"].as_str().is_some_and(|text| text.contains("more than 256 values")), "{error}");
    assert!(longest < Duration::from_secs(3), "/health took {longest:?}");
    let modules = gateway.client("modules").await;
    let arguments = json!({ "module": "registered", "tool": "numbers", "arguments": texts() });
    let (result, longest) = meanwhile(&gateway, modules.call("call", arguments)).await;
    let text = result.to_string();
    assert!(text.contains("more than 256 values") && text.len() < WORDS_MAX, "{} bytes", text.len());
    assert!(longest < Duration::from_secs(3), "/health took {longest:?}");
}

#[tokio::test]
async fn thousands_of_values_of_the_wrong_type_are_refused_at_once_in_a_batch() {
    let gateway = gateway().await;
    let task = |n: usize| json!({ "id": format!("t{n}"), "toolKey": "registered:numbers", "params": texts() });
    let commands: Vec<Value> = (0..20).map(task).collect();
    let reply = post(&gateway, "/v1/batch", json!({ "commands": commands }).to_string()).await;
    let body = refused(&reply, 400, "Invalid type for parameter l[0]: expected integer");
    assert_eq!(body["code"], "VALIDATION_ERROR");
}

#[tokio::test]
async fn members_that_stand_twice_among_very_many_take_no_time() {
    let gateway = gateway().await;
    let members = (0..100_000).map(|n| format!(r#""m{n}":1"#)).collect::<Vec<_>>().join(",");
    let body = format!(r#"{{"name":"registered:numbers","parameters":{{"l":1,{members},"l":[[]]}}}}"#);
    refused(&post(&gateway, "/v1/tools/call", body).await, 400, "l[0]: expected integer");
}

#[tokio::test]
async fn names_that_are_not_known_are_told_in_part() {
    let gateway = gateway().await;
    let unknown: serde_json::Map<String, Value> = (0..100_000).map(|n| (format!("unknown{n}"), json!(1))).collect();
    let unknown = Value::Object(unknown);
    let reply = post(&gateway, "/v1/tools/call", call("registered:closed", &unknown)).await;
    refused(&reply, 400, "VALIDATION_ERROR");
    for path in ["/v1/tools", "/v1/tokens", "/v1/users", "/v1/batch"] {
        refused(&post(&gateway, path, unknown.to_string()).await, 400, "unknown0");
    }
    let mut task = json!({ "id": "a", "toolKey": "registered:numbers" });
    (0..100_000).for_each(|n| task[format!("paramz{n}")] = json!(1));
    let reply = post(&gateway, "/v1/batch", json!({ "commands": [task] }).to_string()).await;
    refused(&reply, 400, "is not a field of a task");
}

#[tokio::test]
async fn more_work_than_any_call_needs_is_refused() {
    let gateway = gateway().await;
    let many = json!({ "l": vec![7; 500_000] });
    let reply = post(&gateway, "/v1/tools/call", call("registered:either", &many)).await;
    refused(&reply, 400, "too large to be checked against the tool's schema; send fewer or smaller values");
}

#[tokio::test]
async fn names_of_megabytes_are_not_sent_back() {
    let gateway = gateway().await;
    let long = "n".repeat(1 << 20);
    let nowhere = post(&gateway, "/v1/tools/call", call(&long, &json!({}))).await;
    refused(&nowhere, 400, "`name` must not be longer than 512 characters.");
    let client = gateway.client("direct").await;
    let asked = client.request("tools/call", json!({ "name": long, "arguments": {} }));
    let (answer, _) = meanwhile(&gateway, asked).await;
    let text = answer.expect_err("there is none").to_string();
    assert!(text.contains("There is no tool") && text.len() < WORDS_MAX, "{} bytes", text.len());
    let member = json!({ (long.as_str()): 1 });
    let reply = post(&gateway, "/v1/tools/call", call("registered:closed", &member)).await;
    refused(&reply, 400, "in too many places to list them");
    let task = json!({ "id": "a", "toolKey": "registered:numbers", (long.as_str()): 1 });
    let reply = post(&gateway, "/v1/batch", json!({ "commands": [task] }).to_string()).await;
    refused(&reply, 400, "is not a field of a task");
}

#[tokio::test]
async fn very_many_references_below_a_long_name_are_refused() {
    let gateway = gateway().await;
    let first = json!({ "id": "a", "toolKey": "registered:numbers" });
    let params = json!({ ("n".repeat(1 << 20)): vec!["${a}"; 100_000] });
    let second = json!({ "id": "b", "toolKey": "registered:numbers", "params": params });
    let reply = post(&gateway, "/v1/batch", json!({ "commands": [first, second] }).to_string()).await;
    refused(&reply, 400, "the member names around so many references are too long");
}

#[tokio::test]
async fn nesting_without_end_is_refused() {
    let gateway = gateway().await;
    let deep = format!("{}{}", "[".repeat(1_000_000), "]".repeat(1_000_000));
    let body = format!(r#"{{"name":"registered:numbers","parameters":{{"l":{deep}}}}}"#);
    refused(&post(&gateway, "/v1/tools/call", body).await, 400, "nested too deeply");
}

#[tokio::test]
async fn fields_of_a_form_without_end_are_refused_before_anybody_is_known() {
    let gateway = gateway().await;
    let fields = (0..9000).map(|n| format!("f{n}")).collect::<Vec<_>>().join("&");
    assert!(fields.len() > 50_000, "{}", fields.len());
    let request = HttpRequest::new("POST", "/oauth/token").form(fields);
    let reply = send(&gateway, request).await;
    refused(&reply, 400, "The request has more than 256 fields.");
}

#[tokio::test]
async fn a_body_with_more_messages_than_a_batch_has_tasks_is_refused() {
    let gateway = gateway().await;
    let welcome = send(&gateway, gateway.request("POST", "/mcp").json(HELLO.to_owned())).await;
    let session = welcome.headers["mcp-session-id"].to_str().expect("text").to_owned();
    let many = vec![json!({ "jsonrpc": "2.0", "id": 1, "method": "ping" }); 5000];
    let request = gateway.request("POST", "/mcp").json(json!(many).to_string());
    let reply = send(&gateway, request.header("mcp-session-id", &session)).await;
    refused(&reply, 413, "5000 messages");
}

/// Three bodies: zeros, as reported; zeros after a mention of a token; messages that each carry a token.
#[tokio::test]
async fn a_body_of_very_many_messages_of_nobody_holds_up_nobody() {
    let gateway = gateway().await;
    let zeros = |first: &str| format!("[{first}{}]", vec!["0"; 500_000].join(","));
    let message = json!({ "jsonrpc": "2.0", "id": 1, "method": "ping", "params": { "_meta": { "token": "x" } } });
    let many = vec![message.to_string(); 9000].join(",");
    for body in [zeros(""), zeros(r#"{"token":1},"#), format!("[{many}]")] {
        let ask =
            || async { HttpRequest::new("POST", "/mcp").json(body.clone()).open(gateway.address()).await.read().await };
        let asked = async { tokio::join!(ask(), ask(), ask(), ask(), ask(), ask()) };
        let (replies, longest) = meanwhile(&gateway, asked).await;
        for reply in <[HttpReply; 6]>::from(replies) {
            refused(&reply, 401, "AUTHENTICATION_ERROR");
        }
        assert!(longest < Duration::from_secs(3), "/health took {longest:?}");
    }
}

/// The transport of 2024-11-05 has the same limits as streamable HTTP.
#[tokio::test]
async fn very_many_messages_on_a_stream_of_the_old_transport_are_refused() {
    let gateway = gateway().await;
    let mut stream = gateway.request("GET", "/sse").open(gateway.address()).await.events();
    let endpoint = stream.next().await.expect("the endpoint").1;
    let post = async |body: String| {
        let reply = send(&gateway, gateway.request("POST", &endpoint).json(body)).await;
        assert_eq!(reply.status, 202, "{}", reply.text());
    };
    post(HELLO.into()).await;
    let welcome = stream.next().await.expect("an answer").1;
    assert!(welcome.contains("2025-03-26"), "{welcome}");
    post(format!("[{}]", vec!["0"; 500_000].join(","))).await;
    let refused = stream.next().await.expect("an answer").1;
    assert!(refused.contains("500000 messages") && refused.len() < WORDS_MAX, "{} bytes", refused.len());
    // The maximum number is answered.
    let ping = r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#;
    post(format!("[{}]", vec![ping; 1000].join(","))).await;
    let answers = stream.next().await.expect("answers").1;
    assert_eq!(answers.matches("\"result\"").count(), 1000);
}

#[tokio::test]
async fn a_text_that_is_too_long_for_a_pattern_that_looks_around_is_refused() {
    let gateway = gateway().await;
    let long = json!({ "t": "a".repeat(160_000) });
    let reply = post(&gateway, "/v1/tools/call", call("registered:around", &long)).await;
    refused(&reply, 400, "a pattern with lookaround or backreferences");
}

#[tokio::test]
async fn what_a_batch_of_very_many_references_would_do_is_told_aside() {
    let gateway = gateway().await;
    let task = |n: usize| {
        let references = (0..n.min(100)).map(|other| json!(format!("${{t{other}}}"))).collect::<Vec<_>>();
        json!({ "id": format!("t{n}"), "toolKey": "registered:closed", "params": { "known1": references } })
    };
    let commands: Vec<Value> = (0..1000).map(task).collect();
    let reply = post(&gateway, "/v1/batch", json!({ "commands": commands, "dry_run": true }).to_string()).await;
    assert_eq!(reply.status, 200, "{}", reply.text().chars().take(2000).collect::<String>());
}

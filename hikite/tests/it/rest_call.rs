//! Tool calls over the REST API: results, every class of error with its status and code, options, and disconnecting
//! clients.

use std::time::{Duration, Instant};

use hikite_testkit::fixture::{FixtureOptions, FixtureTransport};
use hikite_testkit::gateway::{TestGateway, eventually};
use serde_json::{Value, json};

use crate::rest::{is_moment, post, refused};
use crate::{configured, fixture, gateway, http_fixture, stdio, with};

async fn call(gateway: &TestGateway, body: Value) -> hikite_testkit::gateway::HttpReply {
    post(gateway, "/v1/tools/call", &body).await
}

#[tokio::test]
async fn a_result_is_the_value_of_what_the_tool_gave() {
    let (_fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server, "p": stdio(&[]) })).await;
    for (name, parameters, result) in [
        ("a:echo", json!({ "text": "hello" }), json!("hello")),
        ("p:echo", json!({ "text": "{\"n\": 1}" }), json!({ "n": 1 })),
        ("a:test_simple_text", json!({}), json!("This is a simple text response for testing.")),
    ] {
        let reply = call(&gateway, json!({ "name": name, "parameters": parameters })).await;
        let body = reply.value();
        assert_eq!((reply.status, &body["success"], &body["result"]), (200, &json!(true), &result), "{name}");
        assert!(body["executionTime"].as_f64().is_some_and(|ms| ms > 0.0), "{body}");
        is_moment(&body["timestamp"]);
    }
    let structured = call(&gateway, json!({ "name": "a:structured", "parameters": { "a": 1, "b": 2 } })).await;
    assert!(structured.value()["result"].is_object(), "{}", structured.text());
    let without = call(&gateway, json!({ "name": "a:test_simple_text" })).await;
    assert_eq!((without.status, &without.value()["success"]), (200, &json!(true)));
    let picture = call(&gateway, json!({ "name": "a:test_image_content" })).await.value();
    assert_eq!((&picture["result"], &picture["content"][0]["type"]), (&json!(null), &json!("image")));
}

#[tokio::test]
async fn parameters_and_results_stay_the_bytes_that_came() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    let body =
        r#"{"name":"a:mirror","parameters":{"anything":{"n":1.50e2,"u":"\u00e9","big":12345678901234567890123}}}"#;
    let reply = gateway.send(gateway.request("POST", "/v1/tools/call").json(body)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert!(reply.text().contains("12345678901234567890123"), "{}", reply.text());
}

#[tokio::test]
async fn every_class_of_error_has_its_status_code_and_words() {
    let off = json!({ "overrides": { "who": { "enabled": false } } });
    let (_fixture, server) = http_fixture().await;
    let dead = json!({ "description": "d", "type": "http", "url": "http://127.0.0.1:9/mcp" });
    let config = json!({ "mcpServers": { "a": with(server, "tools", off), "dead": dead },
        "limits": { "first_list": "300ms" } });
    let gateway = configured(config).await;
    let unknown = call(&gateway, json!({ "name": "a:ecko" })).await;
    let unknown = refused(&unknown, 404, "TOOL_NOT_FOUND", "Tool not found: a:ecko");
    assert!(unknown["executionTime"].is_number(), "{unknown}");
    let disabled = call(&gateway, json!({ "name": "a:who" })).await;
    refused(&disabled, 403, "TOOL_DISABLED", "Tool is disabled: a:who");
    let missing = call(&gateway, json!({ "name": "a:echo", "parameters": {} })).await;
    let missing = refused(&missing, 400, "VALIDATION_ERROR", "Required parameter missing: text");
    assert_eq!(missing["details"], json!([{ "pointer": "/text", "message": "Required parameter missing: text" }]));
    assert_eq!(missing["schema"]["required"], json!(["text"]));
    let wrong = call(&gateway, json!({ "name": "a:echo", "parameters": { "text": [] } })).await;
    refused(&wrong, 400, "VALIDATION_ERROR", "Invalid type for parameter text: expected string");
    let failed = call(&gateway, json!({ "name": "a:test_error_handling" })).await;
    let words = "Tool execution failed: a:test_error_handling: This tool intentionally returns an error for testing";
    refused(&failed, 500, "TOOL_EXECUTION_ERROR", words);
    let late = call(&gateway, json!({ "name": "a:hang", "options": { "timeout": 250 } })).await;
    let late = refused(&late, 408, "TIMEOUT", "Execution timeout after 250ms");
    assert!(late["executionTime"].as_f64().is_some_and(|ms| ms >= 250.0), "{late}");
    let gone = call(&gateway, json!({ "name": "dead:anything" })).await;
    assert!(matches!(gone.status, 404 | 502), "{}", gone.text());
    for reply in [gone, failed] {
        for secret in ["127.0.0.1", "/mcp", "os error", ".rs:", "stack"] {
            assert!(!reply.text().contains(secret), "{secret}: {}", reply.text());
        }
    }
}

#[tokio::test]
async fn a_server_that_breaks_down_is_a_bad_gateway_without_its_address() {
    let (fixture, server) = http_fixture().await;
    let gateway = gateway(json!({ "a": server })).await;
    assert_eq!(call(&gateway, json!({ "name": "a:echo", "parameters": { "text": "x" } })).await.status, 200);
    let address = fixture.url();
    fixture.refuse_calls(503, None);
    let reply = call(&gateway, json!({ "name": "a:echo", "parameters": { "text": "x" } })).await;
    assert_eq!((reply.status, &reply.value()["code"]), (502, &json!("UPSTREAM_UNAVAILABLE")), "{}", reply.text());
    let authority = address.trim_start_matches("http://").split('/').next().expect("a host");
    assert!(!reply.text().contains(authority), "{}", reply.text());
}

#[tokio::test]
async fn what_a_call_asks_for_is_checked() {
    let gateway = gateway(json!({})).await;
    for (body, pointer, message) in [
        (json!({}), "/name", "`name` must be the key or the name of a tool"),
        (json!({ "name": "" }), "/name", "`name` must be the key or the name of a tool"),
        (json!({ "name": 5 }), "/name", "`name` must be a string."),
        (json!({ "name": null }), "/name", "`name` must be a string."),
        (json!({ "name": "x", "parameters": 5 }), "/parameters", "`parameters` must be an object."),
        (json!({ "name": "x", "parameters": [] }), "/parameters", "`parameters` must be an object."),
        (json!({ "name": "x", "parameters": null }), "/parameters", "`parameters` must be an object."),
        (
            json!({ "name": "x", "params": {} }),
            "/params",
            "unknown member `params`; there are: name, parameters, options",
        ),
        (json!({ "name": "x", "options": 5 }), "/options", "`options` must be an object."),
        (
            json!({ "name": "x", "options": { "retries": 1 } }),
            "/options/retries",
            "unknown member `retries`; there are: timeout, retry, retryDelay, format, select, account",
        ),
        (
            json!({ "name": "x", "options": { "timeout": 0 } }),
            "/options/timeout",
            "`timeout` must be an integer from 1 to 3600000",
        ),
        (
            json!({ "name": "x", "options": { "timeout": 0.5 } }),
            "/options/timeout",
            "`timeout` must be an integer from 1 to 3600000",
        ),
        (
            json!({ "name": "x", "options": { "timeout": "5s" } }),
            "/options/timeout",
            "`timeout` must be an integer from 1 to 3600000",
        ),
        (
            json!({ "name": "x", "options": { "retry": -1 } }),
            "/options/retry",
            "`retry` must be a whole number from 0 to 10",
        ),
        (
            json!({ "name": "x", "options": { "retry": 11 } }),
            "/options/retry",
            "`retry` must be a whole number from 0 to 10",
        ),
        (
            json!({ "name": "x", "options": { "retryDelay": 60001 } }),
            "/options/retryDelay",
            "`retryDelay` must be a whole number from 0 to 60000",
        ),
    ] {
        let reply = call(&gateway, body.clone()).await;
        let refusal = refused(&reply, 400, "VALIDATION_ERROR", "Validation failed");
        assert_eq!(refusal["details"], json!([{ "pointer": pointer, "message": message }]), "{body}");
    }
}

#[tokio::test]
async fn a_tool_that_may_be_repeated_is_tried_again_when_the_call_asks_for_it() {
    let (fixture, server) = http_fixture().await;
    let gateway = configured(json!({ "mcpServers": { "a": server }, "limits": { "breaker_failures": 0 } })).await;
    let echo = json!({ "name": "a:echo", "parameters": { "text": "x" } });
    assert_eq!(call(&gateway, echo.clone()).await.status, 200);
    fixture.refuse_calls(503, None);
    assert_eq!(call(&gateway, echo.clone()).await.status, 502);
    assert_eq!(fixture.refused(), 1);
    let options = json!({ "retry": 1, "retryDelay": 10 });
    assert_eq!(call(&gateway, with(echo, "options", options.clone())).await.status, 502);
    assert_eq!(fixture.refused(), 3, "one more attempt");
    let who = json!({ "name": "a:who", "options": options });
    assert_eq!(call(&gateway, who).await.status, 502);
    assert_eq!(fixture.refused(), 4, "nobody promised that it may be repeated");
}

#[tokio::test]
async fn a_client_that_goes_away_cancels_its_call() {
    let (fixture, server) = fixture(FixtureTransport::Http, FixtureOptions::default()).await;
    let gateway = gateway(json!({ "a": server })).await;
    let body = json!({ "name": "a:hang" }).to_string();
    let request = gateway.request("POST", "/v1/tools/call").json(body);
    let answer = tokio::time::timeout(Duration::from_millis(700), request.open(gateway.address())).await;
    assert!(answer.is_err(), "it hangs until its client goes");
    assert!(eventually(|| fixture.cancelled().len() == 1).await, "the server is told");
}

#[tokio::test]
async fn a_server_that_asks_is_told_that_nobody_can_answer() {
    let gateway = gateway(json!({ "a": stdio(&[]) })).await;
    let begin = Instant::now();
    let reply =
        call(&gateway, json!({ "name": "a:ask", "parameters": { "kind": "elicitation", "marker": "m" } })).await;
    assert!(begin.elapsed() < Duration::from_secs(5), "nobody waits for an answer");
    assert!(matches!(reply.status, 200 | 500 | 502), "{}", reply.text());
}

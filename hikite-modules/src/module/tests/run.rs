//! Tests of requests sent and results shown.

use hikite_core::error::ErrorKind;
use hikite_core::source::SourceState;
use hikite_testkit::api::{MockApi, MockResponse};

use super::*;

#[tokio::test]
async fn values_go_where_the_file_says() {
    let api = MockApi::start().await;
    api.answer("/api/things", MockResponse::json(&json!({ "id": 7, "secret": "no" })));
    let arguments = json!({ "name": "aki", "tags": ["a b", "ü"], "note": null });
    assert_eq!(compact(&toy(&api), "make", arguments).await, json!({ "id": 7 }));
    let seen = api.last();
    assert_eq!((seen.method.as_str(), seen.query.as_str()), ("POST", "tag=a%20b&tag=%C3%BC"));
    assert_eq!(seen.json(), json!({ "name": "aki", "loud": "AKI!", "kind": "plain" }));
    let header = |name: &str| seen.header(name).unwrap_or_default();
    assert_eq!((header("x-name"), header("x-version"), header("authorization")), ("aki", "1", "Bearer first-token"));
    assert!(header("user-agent").starts_with("hikite/"));
}

#[tokio::test]
async fn steps_run_side_by_side_and_one_after_the_other() {
    let api = MockApi::start().await;
    api.answer("/api/a", MockResponse::json(&json!({ "name": "A", "ids": [1, 2] })));
    api.answer("/api/b", MockResponse::json(&json!({ "name": "B" })));
    api.answer("/api/c/1", MockResponse::json(&json!({ "name": "c1" })));
    api.answer("/api/c/2", MockResponse::json(&json!({ "name": "c2" })));
    let service = toy(&api);
    assert_eq!(compact(&service, "both", json!({})).await, json!("A B c1,c2"));
    let whole = call(&service, "both", json!({})).await.expect("an answer");
    assert_eq!((&whole["c"][1]["name"], &whole["none"]), (&json!("c2"), &Value::Null));
    assert_eq!(api.count_of("/api/never"), 0);
}

#[tokio::test]
async fn one_of_several_arguments_decides() {
    let api = MockApi::start().await;
    let service = toy(&api);
    for (arguments, path) in [(json!({ "a": "x" }), "/api/a/x"), (json!({ "b": "y z" }), "/api/b/y%20z")] {
        call(&service, "either", arguments).await.expect("an answer");
        assert_eq!(api.last().path, path);
    }
    for arguments in [json!({}), json!({ "a": "x", "b": "y" })] {
        let error = call(&service, "either", arguments).await.expect_err("a refusal");
        assert_eq!(error.kind, ErrorKind::Validation);
        assert!(error.message.contains("`a`, `b`"), "{}", error.message);
    }
}

#[tokio::test]
async fn a_text_stays_a_text_and_a_folder_is_a_list() {
    let api = MockApi::start().await;
    let service = toy(&api);
    api.script("/api/file", [MockResponse::bytes("application/vnd.raw+json", "{\"not\": \"parsed\"}")]);
    let result = call_raw(&service, "text", json!({})).await.expect("an answer").value();
    assert_eq!(result["content"][0]["text"], "{\"not\": \"parsed\"}");
    api.script("/api/file", [MockResponse::json(&json!([{ "name": "a" }, { "name": "b" }]))]);
    assert_eq!(compact(&service, "text", json!({})).await, json!({ "entries": [{ "name": "a" }, { "name": "b" }] }));
}

#[tokio::test]
async fn a_file_of_json_is_a_text_to_whoever_reads_it() {
    let api = MockApi::start().await;
    for text in ["[1,  2]", "{ \"a\": 1 }\n", "7"] {
        api.answer("/api/file", MockResponse::bytes("application/octet-stream", text));
        assert_eq!(call(&toy(&api), "text", json!({})).await.expect("an answer"), json!(text));
        assert_eq!(compact(&toy(&api), "text", json!({})).await, json!(text));
    }
}

#[tokio::test]
async fn files_in_one_answer_are_told_apart() {
    let api = MockApi::start().await;
    let body = "--q\r\nContent-Disposition: form-data; name=\"f\"; filename=\"a.ts\"\r\n\r\nlet a\r\n--q--";
    api.answer("/api/parts", MockResponse::bytes("multipart/form-data; boundary=q", body));
    let parts = call(&toy(&api), "parts", json!({})).await.expect("an answer");
    assert_eq!(parts, json!([{ "filename": "a.ts", "type": null, "text": "let a" }]));
}

#[tokio::test]
async fn what_needs_no_request_makes_none() {
    let api = MockApi::start().await;
    assert_eq!(call(&toy(&api), "count", json!({ "n": 21 })).await.expect("an answer"), json!({ "twice": 42 }));
    assert_eq!(api.count(), 0);
}

#[tokio::test]
async fn the_answer_as_it_came_keeps_its_bytes() {
    let api = MockApi::start().await;
    let bytes = r#"{"id": 12345678901234567890123, "x": 1.50}"#;
    api.answer("/api/things/1/a", MockResponse::bytes("application/json", bytes));
    let result = call_raw(&toy(&api), "get", json!({ "id": "1", "path": "a" })).await.expect("an answer");
    assert!(result.as_str().contains(&format!("\"structuredContent\":{bytes}")), "{}", result.as_str());
}

#[tokio::test]
async fn a_resource_is_a_call_under_an_address() {
    let api = MockApi::start().await;
    api.answer("/api/things/4%2F2/a%20b/c", MockResponse::json(&json!({ "id": 42, "name": "it" })));
    let service = toy(&api);
    let read = ask(&service, SourceMethod::ReadResource, json!({ "uri": "toy://thing/4%2F2/a%20b/c" }))
        .await
        .expect("contents");
    let content = &read.value()["contents"][0];
    assert_eq!(content["mimeType"], "text/markdown");
    assert_eq!(content["text"], "id: 42\nwords: it in a b/c");
    let absent =
        ask(&service, SourceMethod::ReadResource, json!({ "uri": "toy://other/1" })).await.expect_err("nothing");
    assert_eq!(absent.kind, ErrorKind::NotFound);
}

#[tokio::test]
async fn a_prompt_is_filled_in_once() {
    let api = MockApi::start().await;
    let service = toy(&api);
    let arguments = json!({ "name": "{mood}", "mood": "kindly" });
    let prompt = ask(&service, SourceMethod::GetPrompt, json!({ "name": "greet", "arguments": arguments }))
        .await
        .expect("a prompt");
    assert_eq!(prompt.value()["messages"][0]["content"]["text"], "Say hello to {mood} kindly");
    let error = ask(&service, SourceMethod::GetPrompt, json!({ "name": "greet" })).await.expect_err("a refusal");
    assert_eq!(&*error.message, "Required parameter missing: name");
}

#[tokio::test]
async fn without_an_account_a_call_says_how_to_connect_one() {
    let service = toy_with(Vec::new());
    assert_eq!(service.state(), SourceState::NeedsLogin { provider: "toy".into() });
    assert_eq!(service.listing().map(|listing| listing.tools.len()), Some(16));
    let error = call(&service, "both", json!({})).await.expect_err("a refusal");
    assert_eq!(error.kind, ErrorKind::AccountRequired);
    assert!(error.hint.as_deref().unwrap_or_default().contains("`providers.toy`"), "{error:?}");
}

#[tokio::test]
async fn descriptions_are_in_the_language_that_is_wanted() {
    let settings = settings_with(Vec::new(), TextLanguage::Japanese);
    let service = Service::read(TOY, &settings).expect("a service");
    assert_eq!(service.description(), "テスト用のサービス");
    let listing = service.listing().expect("a listing");
    let either = listing.tools.iter().find(|tool| &*tool.name == "either").expect("a tool").raw.value();
    assert_eq!(either["description"], "one of two `a`, `b` のうち一つだけを指定します。");
    assert_eq!(either["annotations"]["readOnlyHint"], true);
}

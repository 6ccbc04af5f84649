//! Tests of all pagination styles.

use std::sync::Arc;

use hikite_testkit::api::{MockApi, MockResponse, RecordedRequest};

use super::*;

fn items(ids: std::ops::Range<u64>) -> Vec<Value> {
    ids.map(|id| json!({ "id": id, "name": format!("n{id}") })).collect()
}

fn ids(list: &Value) -> Vec<u64> {
    list.as_array().expect("a list").iter().filter_map(|item| item["id"].as_u64()).collect()
}

#[tokio::test]
async fn a_cursor_in_the_body_leads_on() {
    let api = MockApi::start().await;
    api.script(
        "/api/body",
        [
            MockResponse::json(&json!({ "items": items(0..3), "next": "c1", "more": true })),
            MockResponse::json(&json!({ "items": items(3..6), "next": "c2", "more": true })),
            MockResponse::json(&json!({ "items": items(6..7), "next": null, "more": false })),
        ],
    );
    let all = call(&toy(&api), "by_body", json!({ "q": "x", "fetch_all": true })).await.expect("an answer");
    assert_eq!(ids(&all["items"]), [0, 1, 2, 3, 4, 5, 6]);
    assert_eq!((&all["next"], &all["more"]), (&Value::Null, &json!(false)));
    let sent: Vec<Value> = api.seen().iter().map(RecordedRequest::json).collect();
    assert_eq!(sent[0], json!({ "q": "x", "size": 3 }));
    assert_eq!((&sent[1]["start"], &sent[2]["start"]), (&json!("c1"), &json!("c2")));
}

#[tokio::test]
async fn one_page_is_told_how_to_go_on() {
    let api = MockApi::start().await;
    api.answer("/api/query", MockResponse::json(&json!({ "items": items(0..2), "next": "c1" })));
    let service = toy(&api);
    let result = call_raw(&service, "by_query", json!({})).await.expect("an answer").value();
    assert_eq!(result["_meta"], json!({ "hikite/page": { "next_cursor": "c1" } }));
    assert_eq!(api.last().query, "size=2");
    let shown = compact(&service, "by_query", json!({ "cursor": "c1", "page_size": 3 })).await;
    assert_eq!(api.last().query, "size=3&start=c1");
    // A repeated cursor would loop forever.
    assert_eq!(shown, json!({ "things": [{ "id": 0, "name": "N0!" }, { "id": 1, "name": "N1!" }] }));
    let shown = compact(&service, "by_query", json!({})).await;
    assert_eq!(shown["next_cursor"], "c1");
}

#[tokio::test]
async fn offsets_are_counted_up_to_the_total() {
    let api = MockApi::start().await;
    api.script(
        "/api/offset",
        [(0, 2), (2, 4), (4, 5)].map(|(from, to)| MockResponse::json(&json!({ "items": items(from..to), "total": 5 }))),
    );
    let all = call(&toy(&api), "by_offset", json!({ "fetch_all": true })).await.expect("an answer");
    assert_eq!(ids(&all["items"]), [0, 1, 2, 3, 4]);
    let queries: Vec<String> = api.seen().iter().map(|seen| seen.query.clone()).collect();
    assert_eq!(queries, ["size=2", "size=2&skip=2", "size=2&skip=4"]);
}

#[tokio::test]
async fn pages_are_counted_until_one_is_not_full() {
    let api = MockApi::start().await;
    api.script("/api/number", [(0, 2), (2, 4), (4, 5)].map(|(from, to)| MockResponse::json(&json!(items(from..to)))));
    let all = call(&toy(&api), "by_number", json!({ "fetch_all": true })).await.expect("an answer");
    assert_eq!(ids(&all), [0, 1, 2, 3, 4]);
    let queries: Vec<String> = api.seen().iter().map(|seen| seen.query.clone()).collect();
    assert_eq!(queries, ["size=2", "size=2&page=2", "size=2&page=3"]);
}

#[tokio::test]
async fn of_a_link_only_what_leads_on_is_taken() {
    let api = MockApi::start().await;
    let link =
        |page: u64| format!("<https://evil.example/steal?page={page}&size=9&admin=1>; rel=\"next\", <x>; rel=\"last\"");
    api.script(
        "/api/link/%E6%9D%B1%E4%BA%AC",
        [
            MockResponse::json(&json!(items(0..2))).header("link", &link(2)),
            MockResponse::json(&json!(items(2..4))).header("link", &link(3)),
            MockResponse::json(&json!(items(4..5))),
        ],
    );
    let all = call(&toy(&api), "by_link", json!({ "town": "東京", "fetch_all": true })).await.expect("an answer");
    assert_eq!(ids(&all), [0, 1, 2, 3, 4]);
    let queries: Vec<String> = api.seen().iter().map(|seen| seen.query.clone()).collect();
    assert_eq!(queries, ["size=2", "size=2&page=2", "size=2&page=3"]);
}

#[tokio::test]
async fn an_address_in_the_body_is_taken_for_its_query() {
    let api = MockApi::start().await;
    api.script(
        "/api/odata",
        [
            MockResponse::json(&json!({ "value": items(0..2), "@next": "https://else.example/x?$skip=2&$top=2" })),
            MockResponse::json(&json!({ "value": items(2..4), "@next": "https://else.example/x?%24skiptoken=abc%3D" })),
            MockResponse::json(&json!({ "value": items(4..5) })),
        ],
    );
    let all = call(&toy(&api), "by_odata", json!({ "fetch_all": true })).await.expect("an answer");
    assert_eq!(ids(&all["value"]), [0, 1, 2, 3, 4]);
    let queries: Vec<String> = api.seen().iter().map(|seen| seen.query.clone()).collect();
    assert_eq!(queries, ["%24top=2", "%24top=2&%24skip=2", "%24top=2&%24skiptoken=abc%3D"]);
}

#[tokio::test]
async fn a_caller_brings_no_other_parameters_in_a_cursor() {
    let api = MockApi::start().await;
    api.answer("/api/link/x", MockResponse::json(&json!([])));
    let arguments = json!({ "town": "x", "cursor": "page=2&admin=true&size=99&after=%26b" });
    call(&toy(&api), "by_link", arguments).await.expect("an answer");
    assert_eq!(api.last().query, "size=2&page=2&after=%26b");
}

#[tokio::test]
async fn a_list_ends_where_the_caller_says_and_says_where_it_goes_on() {
    let api = MockApi::start().await;
    let page = |from: u64, to: u64| {
        MockResponse::json(&json!({ "items": items(from..to), "next": format!("c{to}"), "more": true }))
    };
    api.script("/api/body", [page(0, 3), page(3, 4)]);
    let service = toy(&api);
    let result = call_raw(&service, "by_body", json!({ "fetch_all": true, "max_items": 4 })).await.expect("an answer");
    assert_eq!(ids(&result.value()["structuredContent"]["items"]), [0, 1, 2, 3]);
    assert_eq!(result.value()["_meta"]["hikite/page"]["next_cursor"], "c4");
    assert_eq!(api.last().json()["size"], 1, "no more than is wanted");
    // If pages cannot be smaller, the truncated page is fetched again.
    api.script("/api/number", [MockResponse::json(&json!(items(0..2))), MockResponse::json(&json!(items(2..4)))]);
    let result =
        call_raw(&service, "by_number", json!({ "fetch_all": true, "max_items": 3 })).await.expect("an answer").value();
    assert_eq!(result["_meta"]["hikite/page"]["next_cursor"], "2");
}

#[tokio::test]
async fn each_page_is_told_while_the_call_runs() {
    let api = MockApi::start().await;
    api.script(
        "/api/offset",
        [(0, 2), (2, 3)].map(|(from, to)| MockResponse::json(&json!({ "items": items(from..to), "total": 3 }))),
    );
    let back = Arc::new(ProgressRecorder::default());
    let params = json!({ "name": "by_offset", "arguments": { "fetch_all": true } });
    let invocation =
        Invocation { method: SourceMethod::CallTool, params: Raw::from(params).object().expect("an object") };
    toy(&api).call(invocation, context(Arc::clone(&back) as Arc<dyn Backchannel>)).await.expect("an answer");
    let told = back.0.lock().clone();
    let expected = [
        json!({ "progress": 2, "total": 3, "message": "2 fetched" }),
        json!({ "progress": 3, "total": 3, "message": "3 fetched" }),
    ];
    assert_eq!(told, expected);
}

#[tokio::test]
async fn what_lies_below_is_fetched_to_a_depth() {
    let api = MockApi::start().await;
    let node = |id: u64, deep: bool| json!({ "id": id, "deep": deep });
    api.answer("/api/tree/0", MockResponse::json(&json!({ "items": [node(1, true), node(2, false)] })));
    api.script(
        "/api/tree/1",
        [
            MockResponse::json(&json!({ "items": [node(3, true)], "next": "m" })),
            MockResponse::json(&json!({ "items": [node(4, false)] })),
        ],
    );
    api.answer("/api/tree/3", MockResponse::json(&json!({ "items": [node(5, true)] })));
    let all = call(&toy(&api), "tree", json!({})).await.expect("an answer");
    let first = &all["items"][0];
    assert_eq!(ids(&first["below"]), [3, 4]);
    assert_eq!(first["below"][0]["below"], json!([node(5, true)]), "and no deeper");
    assert_eq!(all["items"][1], node(2, false));
}

#[tokio::test]
async fn a_long_list_is_sent_in_parts_that_follow_each_other() {
    let api = MockApi::start().await;
    api.script(
        "/api/fill",
        [json!(["a", "b"]), json!(["c", "d"]), json!(["e"])]
            .map(|results| MockResponse::json(&json!({ "results": results }))),
    );
    let all =
        call(&toy(&api), "fill", json!({ "list": ["1", "2", "3", "4", "5"], "after": "z" })).await.expect("an answer");
    assert_eq!(all, json!({ "results": ["a", "b", "c", "d", "e"] }));
    let sent: Vec<Value> = api.seen().iter().map(RecordedRequest::json).collect();
    let expected = [
        json!({ "list": ["1", "2"], "after": "z" }),
        json!({ "list": ["3", "4"], "after": "b" }),
        json!({ "list": ["5"], "after": "d" }),
    ];
    assert_eq!(sent, expected);
}

#[tokio::test]
async fn what_was_sent_before_a_failure_is_told() {
    let api = MockApi::start().await;
    api.script("/api/fill", [MockResponse::json(&json!({ "results": ["a", "b"] })), MockResponse::status(400)]);
    let error = call(&toy(&api), "fill", json!({ "list": ["1", "2", "3"] })).await.expect_err("a failure");
    assert!(error.message.ends_with("; 2 of 3 were already sent."), "{}", error.message);
}

//! Failures of remote search services, tested against a mock server: each ends in time, as the right kind of error.

use std::time::Duration;

use hikite_core::key::ToolKey;
use hikite_core::search::encoder::Vector;
use hikite_core::search::provider::{
    AvailableTool, Embedder, ProviderFailure, ProviderRequest, RankedTool, Reranker, SearchProvider,
};
use hikite_core::secret::Secret;
use hikite_egress::EgressClient;
use hikite_testkit::api::{MockApi, MockResponse};
use serde_json::{Value, json};

use crate::{CloudSearchClient, EmbeddingClient, RerankClient, SearchEndpoint};

fn endpoint(api: &MockApi, timeout_ms: u64) -> SearchEndpoint {
    let token = Some(Secret::hidden("s3cret"));
    SearchEndpoint { url: Secret::hidden(api.url("/x")), token, timeout: Duration::from_millis(timeout_ms) }
}

fn tools() -> Vec<AvailableTool> {
    let tool = |name: &str| AvailableTool {
        key: ToolKey::new("m", name),
        name: name.into(),
        module: "m".into(),
        description: format!("what {name} does"),
    };
    vec![tool("a"), tool("b")]
}

/// Returns the cloud search client's hits for a given response.
async fn cloud(answer: MockResponse) -> Result<Vec<RankedTool>, ProviderFailure> {
    let api = MockApi::start().await;
    api.answer("/x", answer);
    let cloud = CloudSearchClient::new(EgressClient::new(), &endpoint(&api, 300)).expect("a place");
    let (queries, tools) = (["find".to_owned()], tools());
    cloud.search(ProviderRequest { queries: &queries, context: None, tools: &tools, limit: 5 }).await
}

fn found(results: &Value) -> MockResponse {
    MockResponse::json(&json!({ "results": results }))
}

#[tokio::test]
async fn the_cloud_is_sent_the_question_and_the_tools_in_the_agreed_form() {
    let api = MockApi::start().await;
    api.answer("/x", found(&json!([{ "toolKey": "m:b", "relevance": 0.9, "explanation": "why", "more": 1 }])));
    let cloud = CloudSearchClient::new(EgressClient::new(), &endpoint(&api, 5000)).expect("a place");
    let (queries, tools) = (["one".to_owned(), "two".to_owned()], tools());
    let request = ProviderRequest { queries: &queries, context: Some("around"), tools: &tools, limit: 3 };
    let chosen = cloud.search(request).await.expect("an answer");
    let expected = RankedTool { key: ToolKey::new("m", "b"), relevance: 0.9, explanation: Some("why".into()) };
    assert_eq!(chosen, [expected]);
    let seen = api.last();
    assert_eq!((seen.method.as_str(), seen.header("authorization")), ("POST", Some("Bearer s3cret")));
    let tool = |name: &str| {
        json!({ "toolKey": format!("m:{name}"), "toolName": name, "serverName": "m",
            "description": format!("what {name} does") })
    };
    let body =
        json!({ "query": ["one", "two"], "context": "around", "maxResults": 3, "tools": [tool("a"), tool("b")] });
    assert_eq!(seen.json(), body);
}

#[tokio::test]
async fn whatever_the_cloud_does_wrong_is_a_trouble() {
    let slow = found(&json!([])).delay(Duration::from_secs(30));
    for (answer, trouble) in [
        (slow, ProviderFailure::Timeout),
        (MockResponse::status(500), ProviderFailure::Failed),
        (MockResponse::status(401), ProviderFailure::Refused),
        (MockResponse::status(302).header("location", "http://127.0.0.1:1/"), ProviderFailure::Failed),
        (MockResponse::cut(), ProviderFailure::Unreachable),
        (MockResponse::text("{\"results\": [").cut_after(5), ProviderFailure::Unreachable),
        (MockResponse::text("<html>"), ProviderFailure::Unreadable),
        (MockResponse::json(&json!([])), ProviderFailure::Unreadable),
        (MockResponse::json(&json!({ "results": 3 })), ProviderFailure::Unreadable),
        (found(&json!([{ "toolKey": "m:a" }])), ProviderFailure::Unreadable),
        (found(&json!([{ "toolKey": "m:a", "relevance": "high" }])), ProviderFailure::Unreadable),
        (found(&json!([{ "toolKey": "other:x", "relevance": 1 }])), ProviderFailure::Unreadable),
    ] {
        let shown = format!("{answer:?}");
        assert_eq!(cloud(answer).await, Err(trouble), "{shown}");
    }
    let gone =
        SearchEndpoint { url: Secret::hidden("http://127.0.0.1:1/x"), token: None, timeout: Duration::from_secs(5) };
    let cloud = CloudSearchClient::new(EgressClient::new(), &gone).expect("a place");
    let request = ProviderRequest { queries: &[], context: None, tools: &[], limit: 1 };
    assert_eq!(cloud.search(request).await, Err(ProviderFailure::Unreachable));
}

#[tokio::test]
async fn unknown_tools_are_dropped_and_the_rest_is_put_in_order() {
    let results = json!([
        { "toolKey": "m:a", "relevance": 0.2 },
        { "toolKey": "evil:x", "relevance": 1 },
        { "toolKey": "m:b", "relevance": 7 },
        { "toolKey": "m:a", "relevance": 1 },
    ]);
    let chosen = cloud(found(&results)).await.expect("an answer");
    let keys: Vec<(String, f64)> = chosen.iter().map(|c| (c.key.to_string(), c.relevance)).collect();
    assert_eq!(keys, [("m:b".to_owned(), 1.0), ("m:a".to_owned(), 0.2)]);
    assert_eq!(cloud(found(&json!([]))).await, Ok(Vec::new()));
}

#[tokio::test]
async fn vectors_come_in_the_order_of_their_texts_or_not_at_all() {
    let api = MockApi::start().await;
    let embedding = EmbeddingClient::new(EgressClient::new(), &endpoint(&api, 2000), "m", Some(2)).expect("a place");
    assert_eq!(embedding.model(), "remote:m:2");
    let texts = ["one".to_owned(), "two".to_owned()];
    let data = |data: Value| api.answer("/x", MockResponse::json(&json!({ "data": data })));
    data(json!([{ "index": 1, "embedding": [0.0, 2.0] }, { "index": 0, "embedding": [1.0, 0.0] }]));
    let vectors = embedding.embed(&texts).await.expect("vectors");
    assert_eq!(vectors, [Vector::of(&[1.0, 0.0]), Vector::of(&[0.0, 1.0])]);
    assert_eq!(api.last().json()["dimensions"], 2);
    for wrong in [
        json!([{ "index": 0, "embedding": [1.0, 0.0] }]),
        json!([{ "index": 0, "embedding": [1.0] }, { "index": 1, "embedding": [1.0, 0.0] }]),
        json!([{ "index": 0, "embedding": [1.0] }, { "index": 0, "embedding": [1.0] }]),
        json!([{ "index": 0, "embedding": [1.0] }, { "index": 9, "embedding": [1.0] }]),
        json!([{ "index": 0, "embedding": [] }, { "index": 1, "embedding": [] }]),
        json!("none"),
    ] {
        data(wrong.clone());
        assert_eq!(embedding.embed(&texts).await, Err(ProviderFailure::Unreadable), "{wrong}");
    }
}

#[tokio::test]
async fn an_order_names_each_document_once() {
    let api = MockApi::start().await;
    let rerank = RerankClient::new(EgressClient::new(), &endpoint(&api, 2000), "m").expect("a place");
    let documents = ["a".to_owned(), "b".to_owned()];
    let results = |results: Value| api.answer("/x", MockResponse::json(&json!({ "results": results })));
    results(json!([{ "index": 0, "relevance_score": 0.1 }, { "index": 1, "relevance_score": 0.8 }]));
    assert_eq!(rerank.rerank("q", &documents).await, Ok(vec![(1, 0.8), (0, 0.1)]));
    for wrong in [
        json!([]),
        json!([{ "index": 2, "relevance_score": 0.1 }]),
        json!([{ "index": 0, "relevance_score": 0.1 }, { "index": 0, "relevance_score": 0.1 }]),
        json!([{ "index": 0 }]),
    ] {
        results(wrong.clone());
        assert_eq!(rerank.rerank("q", &documents).await, Err(ProviderFailure::Unreadable), "{wrong}");
    }
}

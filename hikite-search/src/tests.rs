//! Failures of remote search services, tested against a mock server: each ends in time, as the right kind of error.

use std::time::Duration;

use hikite_core::key::ToolKey;
use hikite_core::search::encoder::Vector;
use hikite_core::search::provider::{
    Available, Chosen, Embedder, Request, Reranker, SearchProvider, Trouble,
};
use hikite_core::secret::Secret;
use hikite_egress::Client;
use hikite_testkit::api::{Answer, Api};
use serde_json::{Value, json};

use crate::{Cloud, Embedding, Place, Rerank};

fn place(api: &Api, timeout_ms: u64) -> Place {
    let token = Some(Secret::hidden("s3cret"));
    Place { url: Secret::hidden(api.url("/x")), token, timeout: Duration::from_millis(timeout_ms) }
}

fn tools() -> Vec<Available> {
    let tool = |name: &str| Available {
        key: ToolKey::new("m", name),
        name: name.into(),
        module: "m".into(),
        description: format!("what {name} does"),
    };
    vec![tool("a"), tool("b")]
}

/// Returns the cloud search client's hits for a given response.
async fn cloud(answer: Answer) -> Result<Vec<Chosen>, Trouble> {
    let api = Api::start().await;
    api.answer("/x", answer);
    let cloud = Cloud::new(Client::new(), &place(&api, 300)).expect("a place");
    let (queries, tools) = (["find".to_owned()], tools());
    cloud.search(Request { queries: &queries, context: None, tools: &tools, limit: 5 }).await
}

fn found(results: &Value) -> Answer {
    Answer::json(&json!({ "results": results }))
}

#[tokio::test]
async fn the_cloud_is_sent_the_question_and_the_tools_in_the_agreed_form() {
    let api = Api::start().await;
    api.answer(
        "/x",
        found(&json!([{ "toolKey": "m:b", "relevance": 0.9, "explanation": "why", "more": 1 }])),
    );
    let cloud = Cloud::new(Client::new(), &place(&api, 5000)).expect("a place");
    let (queries, tools) = (["one".to_owned(), "two".to_owned()], tools());
    let request = Request { queries: &queries, context: Some("around"), tools: &tools, limit: 3 };
    let chosen = cloud.search(request).await.expect("an answer");
    let expected = Chosen { key: ToolKey::new("m", "b"), relevance: 0.9, explanation: Some("why".into()) };
    assert_eq!(chosen, [expected]);
    let seen = api.last();
    assert_eq!((seen.method.as_str(), seen.header("authorization")), ("POST", Some("Bearer s3cret")));
    let tool = |name: &str| {
        json!({ "toolKey": format!("m:{name}"), "toolName": name, "serverName": "m",
            "description": format!("what {name} does") })
    };
    let body = json!({ "query": ["one", "two"], "context": "around", "maxResults": 3, "tools": [tool("a"), tool("b")] });
    assert_eq!(seen.json(), body);
}

#[tokio::test]
async fn whatever_the_cloud_does_wrong_is_a_trouble() {
    let slow = found(&json!([])).delay(Duration::from_secs(30));
    for (answer, trouble) in [
        (slow, Trouble::Timeout),
        (Answer::status(500), Trouble::Failed),
        (Answer::status(401), Trouble::Refused),
        (Answer::status(302).header("location", "http://127.0.0.1:1/"), Trouble::Failed),
        (Answer::cut(), Trouble::Unreachable),
        (Answer::text("{\"results\": [").cut_after(5), Trouble::Unreachable),
        (Answer::text("<html>"), Trouble::Unreadable),
        (Answer::json(&json!([])), Trouble::Unreadable),
        (Answer::json(&json!({ "results": 3 })), Trouble::Unreadable),
        (found(&json!([{ "toolKey": "m:a" }])), Trouble::Unreadable),
        (found(&json!([{ "toolKey": "m:a", "relevance": "high" }])), Trouble::Unreadable),
        (found(&json!([{ "toolKey": "other:x", "relevance": 1 }])), Trouble::Unreadable),
    ] {
        let shown = format!("{answer:?}");
        assert_eq!(cloud(answer).await, Err(trouble), "{shown}");
    }
    let gone =
        Place { url: Secret::hidden("http://127.0.0.1:1/x"), token: None, timeout: Duration::from_secs(5) };
    let cloud = Cloud::new(Client::new(), &gone).expect("a place");
    let request = Request { queries: &[], context: None, tools: &[], limit: 1 };
    assert_eq!(cloud.search(request).await, Err(Trouble::Unreachable));
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
    let api = Api::start().await;
    let embedding = Embedding::new(Client::new(), &place(&api, 2000), "m", Some(2)).expect("a place");
    assert_eq!(embedding.model(), "remote:m:2");
    let texts = ["one".to_owned(), "two".to_owned()];
    let data = |data: Value| api.answer("/x", Answer::json(&json!({ "data": data })));
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
        assert_eq!(embedding.embed(&texts).await, Err(Trouble::Unreadable), "{wrong}");
    }
}

#[tokio::test]
async fn an_order_names_each_document_once() {
    let api = Api::start().await;
    let rerank = Rerank::new(Client::new(), &place(&api, 2000), "m").expect("a place");
    let documents = ["a".to_owned(), "b".to_owned()];
    let results = |results: Value| api.answer("/x", Answer::json(&json!({ "results": results })));
    results(json!([{ "index": 0, "relevance_score": 0.1 }, { "index": 1, "relevance_score": 0.8 }]));
    assert_eq!(rerank.rerank("q", &documents).await, Ok(vec![(1, 0.8), (0, 0.1)]));
    for wrong in [
        json!([]),
        json!([{ "index": 2, "relevance_score": 0.1 }]),
        json!([{ "index": 0, "relevance_score": 0.1 }, { "index": 0, "relevance_score": 0.1 }]),
        json!([{ "index": 0 }]),
    ] {
        results(wrong.clone());
        assert_eq!(rerank.rerank("q", &documents).await, Err(Trouble::Unreadable), "{wrong}");
    }
}

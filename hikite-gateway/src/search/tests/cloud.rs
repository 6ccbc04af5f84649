//! Scripted providers: the requests they receive, and fallbacks when they fail.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Caller;
use hikite_core::key::ToolKey;
use hikite_core::search::encoder::Vector;
use hikite_core::search::provider::{
    AvailableTool, Embedder, ProviderFailure, ProviderRequest, RankedTool, Reranker, SearchProvider,
};
use hikite_core::source::{BoxFuture, CallOrigin};
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{LetterEncoder, TOOLS, ToolListSource, call, discover, gateway, gateway_on, keys, meta, with_encoder};
use crate::probe::store;
use crate::search::{SearchSettings, Strategy};

const LIMIT: Duration = Duration::from_secs(5);

/// A provider that returns fixed hits or fails, and records the tools it received.
#[derive(Debug, Default)]
pub(super) struct ScriptedProvider {
    pub(super) chooses: Mutex<Option<Vec<(&'static str, f64)>>>,
    pub(super) sent: Mutex<Vec<AvailableTool>>,
}

impl SearchProvider for ScriptedProvider {
    fn search<'a>(&'a self, request: ProviderRequest<'a>) -> BoxFuture<'a, Result<Vec<RankedTool>, ProviderFailure>> {
        *self.sent.lock() = request.tools.to_vec();
        let chosen = self.chooses.lock().clone().ok_or(ProviderFailure::Timeout);
        let chosen = chosen.map(|chosen| {
            let one = |(name, relevance)| {
                let key = ToolKey::new("m", name);
                RankedTool { key, relevance, explanation: None }
            };
            chosen.into_iter().map(one).collect()
        });
        Box::pin(std::future::ready(chosen))
    }
}

#[derive(Debug)]
struct ScriptedEmbedder(Mutex<Option<ProviderFailure>>);

impl Embedder for ScriptedEmbedder {
    fn model(&self) -> &'static str {
        "elsewhere"
    }

    fn embed<'a>(&'a self, texts: &'a [String]) -> BoxFuture<'a, Result<Vec<Vector>, ProviderFailure>> {
        let made = match *self.0.lock() {
            Some(trouble) => Err(trouble),
            None => Ok(texts.iter().map(|text| LetterEncoder::vector(text)).collect()),
        };
        Box::pin(std::future::ready(made))
    }
}

/// A reranker that reverses the order.
#[derive(Debug)]
struct ReversingReranker(Option<ProviderFailure>);

impl Reranker for ReversingReranker {
    fn rerank<'a>(
        &'a self,
        _: &'a str,
        documents: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<(usize, f64)>, ProviderFailure>> {
        let order = (0..documents.len()).rev().map(|at| (at, 0.5)).collect();
        Box::pin(std::future::ready(self.0.map_or(Ok(order), Err)))
    }
}

#[tokio::test]
async fn the_cloud_sees_what_the_caller_may_use_and_nothing_else() {
    let cloud = Arc::new(ScriptedProvider::default());
    *cloud.chooses.lock() = Some(vec![("send_mail", 0.9), ("hidden", 0.8), ("read_file", 0.1)]);
    let settings = SearchSettings {
        strategy: Strategy::Cloud,
        cloud: Some(Arc::clone(&cloud) as Arc<dyn SearchProvider>),
        ..SearchSettings::default()
    };
    let (gateway, _) = gateway(settings).await;
    gateway.admin().tools.switch("m:create_issue", false).await.expect("off");
    gateway.search().wait_for_index(LIMIT).await;
    let found = discover(&gateway, "anything").await;
    assert_eq!(keys(&found), ["m:send_mail", "m:read_file"], "what is not the caller's is left out");
    assert_eq!(meta(&found), json!({ "provider": "cloud", "indexed": 2, "total": 2 }));
    let sent: Vec<String> = cloud.sent.lock().iter().map(|tool| tool.key.to_string()).collect();
    assert_eq!(sent, ["m:read_file", "m:send_mail"]);
}

#[tokio::test]
async fn without_the_cloud_there_is_an_answer_from_here() {
    let letters = Arc::new(LetterEncoder::default());
    let settings = SearchSettings {
        strategy: Strategy::Cloud,
        cloud: Some(Arc::new(ScriptedProvider::default())),
        ..with_encoder(&letters)
    };
    let (gateway, _) = gateway(settings.clone()).await;
    gateway.search().wait_for_index(LIMIT).await;
    let found = discover(&gateway, "read a file").await;
    assert_eq!(keys(&found)[0], "m:read_file");
    let told = json!({ "provider": "hybrid", "fallback": "timeout", "indexed": 3, "total": 3 });
    assert_eq!(meta(&found), told);
    gateway.search().set_settings(SearchSettings { cloud: None, ..settings });
    assert_eq!(meta(&discover(&gateway, "file").await)["fallback"], "no-cloud");
}

#[tokio::test]
async fn a_configured_model_takes_the_encoders_place_until_it_fails() {
    let letters = Arc::new(LetterEncoder::default());
    let elsewhere = Arc::new(ScriptedEmbedder(Mutex::new(None)));
    let settings =
        SearchSettings { embedder: Some(Arc::clone(&elsewhere) as Arc<dyn Embedder>), ..with_encoder(&letters) };
    let (gateway, _) = gateway(settings).await;
    gateway.search().wait_for_index(LIMIT).await;
    super::eventually(|| {
        let ready = gateway.search.index_worker.ready();
        ready.is_some_and(|ready| ready.remote.as_ref().is_some_and(|remote| remote.encoded() == 3))
    })
    .await;
    let found = discover(&gateway, "read a file").await;
    assert_eq!(meta(&found), json!({ "provider": "hybrid", "indexed": 3, "total": 3 }));
    *elsewhere.0.lock() = Some(ProviderFailure::Failed);
    let found = discover(&gateway, "read a file").await;
    let told = json!({ "provider": "hybrid", "fallback": "embedding-failed", "indexed": 3, "total": 3 });
    assert_eq!((meta(&found), keys(&found)[0]), (told, "m:read_file"));
}

#[tokio::test]
async fn whoever_reorders_decides_the_order_until_it_fails() {
    let settings = |trouble| SearchSettings {
        strategy: Strategy::Bm25,
        reranker: Some((Arc::new(ReversingReranker(trouble)), 2)),
        ..SearchSettings::default()
    };
    let tools = [
        ("file_a", "file file file"),
        ("file_b", "file file of many words"),
        ("file_c", "a file of even more words than that"),
    ];
    let source = ToolListSource::of(&tools);
    let gateway = gateway_on(store().await, &[("m", &source)]);
    gateway.search().set_settings(SearchSettings { reranker: None, ..settings(None) });
    let plain = discover(&gateway, "file").await;
    let plain: Vec<String> = keys(&plain).into_iter().map(str::to_owned).collect();
    gateway.search().set_settings(settings(None));
    let found = discover(&gateway, "file").await;
    assert_eq!(keys(&found), [plain[1].as_str(), plain[0].as_str(), plain[2].as_str()]);
    let relevance: Vec<f64> = found["structuredContent"]["results"]
        .as_array()
        .expect("results")
        .iter()
        .filter_map(|tool| tool["relevance"].as_f64())
        .collect();
    assert!(relevance.is_sorted_by(|a, b| a >= b), "{relevance:?}");
    let one = call(&gateway, "tool_discovery", json!({ "query": "file", "maxResults": 1 })).await;
    assert_eq!(keys(&one), [plain[1].as_str()]);
    gateway.search().set_settings(settings(Some(ProviderFailure::Timeout)));
    let found = discover(&gateway, "file").await;
    assert_eq!(
        (keys(&found), meta(&found)["fallback"].clone()),
        (plain.iter().map(String::as_str).collect(), Value::from("rerank-timeout"))
    );
}

#[tokio::test]
async fn tools_that_come_with_the_question_are_ranked() {
    let letters = Arc::new(LetterEncoder::default());
    let given = || {
        let tool = |(name, text): &(&str, &str)| AvailableTool {
            key: ToolKey::new("x", *name),
            name: (*name).into(),
            module: "x".into(),
            description: (*text).to_owned(),
        };
        TOOLS.iter().map(tool).collect::<Vec<AvailableTool>>()
    };
    let (gateway, _) = gateway(SearchSettings::default()).await;
    let ask = || async {
        let who = (&Caller::owner(), &CallOrigin::default());
        let queries = vec!["read a file".to_owned()];
        gateway.discovery().search_candidates(who, queries, None, given(), 2).await.expect("an answer")
    };
    let ranking = ask().await;
    assert_eq!((ranking.tools[0].key.to_string().as_str(), ranking.provider), ("x:read_file", "bm25"));
    gateway.search().set_settings(with_encoder(&letters));
    for _ in 0..2 {
        let ranking = ask().await;
        assert_eq!((ranking.tools[0].key.to_string().as_str(), ranking.provider), ("x:read_file", "hybrid"));
        assert!(ranking.tools.len() <= 2);
    }
    assert_eq!(letters.read(), 3, "a text is read once");
}

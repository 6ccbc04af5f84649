//! Builds the search settings from the config.

use std::sync::Arc;

use anyhow::Result;
use hikite_config::{Config, SearchServiceConfig, TOP};
use hikite_core::search::encoder::Encoder;
use hikite_core::search::provider::{Embedder, Reranker, SearchProvider};
use hikite_egress::EgressClient;
use hikite_gateway::SearchSettings;
use hikite_search::{CloudSearchClient, EmbeddingClient, InvalidEndpoint, RerankClient, SearchEndpoint};

/// Returns the built-in encoder; the program needs only one.
pub(crate) fn encoder() -> Arc<dyn Encoder> {
    Arc::new(hikite_encoder::SentenceEncoder::new())
}

pub(crate) fn settings(config: &Config, client: &EgressClient, encoder: &Arc<dyn Encoder>) -> Result<SearchSettings> {
    let search = &config.search;
    let named =
        |key: &'static str| move |InvalidEndpoint(what): InvalidEndpoint| anyhow::anyhow!("`search.{key}`: {what}");
    let cloud = search.cloud.as_ref().map(|at| CloudSearchClient::new(client.clone(), &place(at))).transpose();
    let cloud = cloud.map_err(named("cloud"))?;
    let embedding = search
        .embedding
        .as_ref()
        .map(|(at, model)| EmbeddingClient::new(client.clone(), &place(at), &model.name, model.count));
    let embedding = embedding.transpose().map_err(named("embedding"))?;
    let rerank = search.rerank.as_ref().map(|(at, model)| {
        let top = model.count.unwrap_or(TOP);
        RerankClient::new(client.clone(), &place(at), &model.name).map(|rerank| (rerank, top))
    });
    let rerank = rerank.transpose().map_err(named("rerank"))?;
    Ok(SearchSettings {
        strategy: search.provider,
        encoder: Some(Arc::clone(encoder)),
        cloud: cloud.map(|cloud| Arc::new(cloud) as Arc<dyn SearchProvider>),
        embedder: embedding.map(|embedding| Arc::new(embedding) as Arc<dyn Embedder>),
        reranker: rerank.map(|(rerank, top)| (Arc::new(rerank) as Arc<dyn Reranker>, top)),
        memory: search.memory,
    })
}

fn place(at: &SearchServiceConfig) -> SearchEndpoint {
    SearchEndpoint { url: at.url.clone(), token: at.token.clone(), timeout: at.timeout }
}

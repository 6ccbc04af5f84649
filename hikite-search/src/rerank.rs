//! Reranking client for a `/rerank` endpoint, in the format shared by Jina, Cohere and most open-model servers.

use hikite_core::json::Raw;
use hikite_core::search::provider::{ProviderFailure, Reranker};
use hikite_core::source::BoxFuture;
use hikite_egress::EgressClient;
use serde::{Deserialize, Serialize};

use crate::endpoint::{EndpointClient, InvalidEndpoint, SearchEndpoint};

#[derive(Debug)]
pub struct RerankClient {
    endpoint: EndpointClient,
    model: String,
}

impl RerankClient {
    pub fn new(client: EgressClient, place: &SearchEndpoint, model: &str) -> Result<Self, InvalidEndpoint> {
        Ok(Self { endpoint: EndpointClient::new(client, place, "the reranking model")?, model: model.to_owned() })
    }
}

impl Reranker for RerankClient {
    fn rerank<'a>(
        &'a self,
        query: &'a str,
        documents: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<(usize, f64)>, ProviderFailure>> {
        Box::pin(async move {
            let request = RerankRequest { model: &self.model, query, documents, top_n: documents.len() };
            let body = serde_json::to_vec(&request).map_err(|_| ProviderFailure::Unreadable)?;
            self.endpoint.post_json(body, |response| read(&response, documents.len())).await
        })
    }
}

#[derive(Serialize)]
struct RerankRequest<'a> {
    model: &'a str,
    query: &'a str,
    documents: &'a [String],
    top_n: usize,
}

#[derive(Deserialize)]
struct RerankResponse {
    results: Vec<RerankItem>,
}

#[derive(Deserialize)]
struct RerankItem {
    index: usize,
    relevance_score: f64,
}

/// Parses the response: indexes of documents with their scores, each at most once, best first.
fn read(response: &Raw, documents: usize) -> Option<Vec<(usize, f64)>> {
    let response: RerankResponse = response.decode().ok()?;
    let mut seen = vec![false; documents];
    let mut ranked = Vec::with_capacity(response.results.len());
    for result in response.results {
        let place = seen.get_mut(result.index).filter(|seen| !**seen)?;
        *place = true;
        ranked.push((result.index, result.relevance_score.clamp(0.0, 1.0)));
    }
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    (!ranked.is_empty()).then_some(ranked)
}

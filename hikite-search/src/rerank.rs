//! Reranking client for a `/rerank` endpoint, in the format shared by Jina, Cohere and most open-model servers.

use hikite_core::json::Raw;
use hikite_core::search::provider::{Reranker, Trouble};
use hikite_core::source::BoxFuture;
use hikite_egress::Client;
use serde::{Deserialize, Serialize};

use crate::post::{BadPlace, Place, Post};

#[derive(Debug)]
pub struct Rerank {
    post: Post,
    model: String,
}

impl Rerank {
    pub fn new(client: Client, place: &Place, model: &str) -> Result<Self, BadPlace> {
        Ok(Self { post: Post::new(client, place, "the reranking model")?, model: model.to_owned() })
    }
}

impl Reranker for Rerank {
    fn rerank<'a>(
        &'a self,
        query: &'a str,
        documents: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<(usize, f64)>, Trouble>> {
        Box::pin(async move {
            let question = Question { model: &self.model, query, documents, top_n: documents.len() };
            let body = serde_json::to_vec(&question).map_err(|_| Trouble::Unreadable)?;
            self.post.ask(body, |answer| read(&answer, documents.len())).await
        })
    }
}

#[derive(Serialize)]
struct Question<'a> {
    model: &'a str,
    query: &'a str,
    documents: &'a [String],
    top_n: usize,
}

#[derive(Deserialize)]
struct Answer {
    results: Vec<Ranked>,
}

#[derive(Deserialize)]
struct Ranked {
    index: usize,
    relevance_score: f64,
}

/// Parses the response: indexes of documents with their scores, each at most once, best first.
fn read(answer: &Raw, documents: usize) -> Option<Vec<(usize, f64)>> {
    let answer: Answer = answer.decode().ok()?;
    let mut seen = vec![false; documents];
    let mut ranked = Vec::with_capacity(answer.results.len());
    for result in answer.results {
        let place = seen.get_mut(result.index).filter(|seen| !**seen)?;
        *place = true;
        ranked.push((result.index, result.relevance_score.clamp(0.0, 1.0)));
    }
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    (!ranked.is_empty()).then_some(ranked)
}

//! Search among tools sent with the query, for hikite as the search provider of another gateway. An index is built
//! for each request; known vectors are reused.

use std::collections::HashMap;
use std::sync::Arc;

use hikite_core::error::{Error, ErrorKind};
use hikite_core::search::encoder::{Encoder, Vector};
use hikite_core::search::provider::{AvailableTool, RankedTool};
use hikite_core::search::{SearchIndex, SearchQuery, ToolDocument};
use hikite_core::tool_set::ToolSet;

use super::Search;

/// Maximum number of texts encoded within the request; with more, the search is lexical and the rest is encoded in
/// the background.
const ENCODE_NOW_MAX: usize = 200;
/// Maximum number of texts per background run.
const ENCODE_LATER_MAX: usize = 5000;

/// The best of the given tools, and how they were found.
#[derive(Debug)]
pub struct CandidateRanking {
    pub tools: Vec<RankedTool>,
    /// The strategy that was used.
    pub provider: &'static str,
    /// Number of tools that wait for their vector.
    pub unencoded: usize,
}

impl Search {
    /// Returns the best of the given tools.
    pub(crate) async fn rank_candidates(
        &self,
        queries: Vec<String>,
        context: Option<String>,
        tools: Vec<AvailableTool>,
        limit: usize,
    ) -> Result<CandidateRanking, Error> {
        let build = move || {
            let documents = tools.into_iter().map(|tool| {
                let name = Arc::clone(&tool.name);
                ToolDocument::new(tool.key, name, "", tool.description, Vec::new())
            });
            SearchIndex::build(documents.collect(), None)
        };
        let Ok(index) = self.tasks.spawn_blocking(build).await else {
            return Err(Error::new(ErrorKind::Internal, "The tools could not be read."));
        };
        let encoder = self.settings().encoder.clone();
        let (index, encoder, unencoded) = match encoder {
            Some(encoder) => match self.encode_candidates(&index, &encoder).await {
                Ok(read) => (read, Some(encoder), 0),
                Err(unencoded) => (index, None, unencoded),
            },
            None => (index, None, 0),
        };
        let turn = Arc::clone(&self.encoding).try_acquire_owned().ok();
        let encoder = encoder.filter(|_| turn.is_some());
        let provider = if encoder.is_some() { "hybrid" } else { "bm25" };
        let search = move || {
            let context = context.as_deref();
            let question = match &encoder {
                Some(encoder) => SearchQuery::hybrid(&queries, context, &**encoder),
                None => SearchQuery::lexical(&queries, context),
            };
            let hits = index.search(&question, &ToolSet::all(index.len()), &[], limit);
            drop(turn);
            let chosen = hits.into_iter().map(|hit| RankedTool {
                key: index.document(hit.at).key.clone(),
                relevance: hit.relevance,
                explanation: Some(hit.explanation).filter(|text| !text.is_empty()),
            });
            chosen.collect::<Vec<RankedTool>>()
        };
        let chosen = self.tasks.spawn_blocking(search).await;
        Ok(CandidateRanking { tools: chosen.unwrap_or_default(), provider, unencoded })
    }

    /// Returns the index with vectors, or the number of unknown texts if they are too many.
    async fn encode_candidates(&self, index: &SearchIndex, encoder: &Arc<dyn Encoder>) -> Result<SearchIndex, usize> {
        let mut places: HashMap<&str, Vec<usize>> = HashMap::new();
        for (at, document) in index.documents().iter().enumerate() {
            places.entry(document.content()).or_default().push(at);
        }
        let contents: Vec<&str> = places.keys().copied().collect();
        let mut known = self.lookup_vectors(Some(encoder), encoder.model(), &contents).await;
        let missing: Vec<&str> = contents.iter().copied().filter(|content| !known.contains_key(*content)).collect();
        let texts: Vec<String> = missing.iter().map(|content| index.document(places[content][0]).text()).collect();
        if missing.len() > ENCODE_NOW_MAX {
            let contents = missing.iter().map(|content| (*content).to_owned());
            self.encode_later(contents.zip(texts).take(ENCODE_LATER_MAX).collect(), encoder);
            return Err(missing.len());
        }
        if !missing.is_empty() {
            let reader = Arc::clone(encoder);
            let read = move || texts.iter().map(|text| reader.tool(text)).collect::<Vec<Vector>>();
            let vectors = self.tasks.spawn_blocking(read).await.map_err(|_| missing.len())?;
            known.extend(self.store_vectors(encoder.model(), &missing, vectors).await);
        }
        let vectors = known.iter().flat_map(|(content, vector)| {
            places.get(content.as_str()).into_iter().flatten().map(move |at| (*at, vector.clone()))
        });
        Ok(index.with_vectors(encoder.model(), vectors.collect()))
    }

    /// Encodes texts in the background for later queries. Only one such run at a time.
    fn encode_later(&self, texts: Vec<(String, String)>, encoder: &Arc<dyn Encoder>) {
        let Ok(turn) = Arc::clone(&self.filling).try_acquire_owned() else { return };
        let (this, encoder) = (self.this.clone(), Arc::clone(encoder));
        let stopping = self.stopping.clone();
        let read = async move {
            for texts in texts.chunks(ENCODE_NOW_MAX) {
                let Some(search) = this.upgrade() else { return };
                let (reader, few) = (Arc::clone(&encoder), texts.to_vec());
                let read = move || few.iter().map(|(_, text)| reader.tool(text)).collect::<Vec<Vector>>();
                let Ok(vectors) = search.tasks.spawn_blocking(read).await else { return };
                let contents: Vec<&str> = texts.iter().map(|(content, _)| content.as_str()).collect();
                search.store_vectors(encoder.model(), &contents, vectors).await;
            }
            drop(turn);
        };
        self.tasks.spawn(async move {
            let _ = stopping.run_until_cancelled(read).await;
        });
    }
}

//! Execution of one query: provider, candidate tools, and the report of how it went. There is always an answer,
//! whichever provider fails.

use std::sync::Arc;
use std::time::Duration;

use hikite_core::caller::Caller;
use hikite_core::catalog::Module;
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::search::provider::{AvailableTool, ProviderFailure, ProviderRequest, RankedTool};
use hikite_core::search::{RELEVANCE_MIN, SearchHit, SearchIndex, SearchQuery, UsageTrace, fitting};
use hikite_core::tool_set::ToolSet;
use hikite_core::view::View;

use super::catalog_index::{CatalogIndex, encoded};
use super::query_history::QueryRecord;
use super::{Search, SearchSettings, Strategy};
use crate::command::ToolQuery;

/// Maximum time to wait for a free encoder slot.
const ENCODER_WAIT: Duration = Duration::from_millis(40);

/// Number of best tools among which those of services without an account are looked for.
const NEEDS_TOP: usize = 3;

/// Note beside the empty result of a disabled search.
const SEARCH_DISABLED: &str = "Search is disabled for this project. A tool with a known key can still be run.";
/// Note beside hits of which none fits.
const NOTHING_FITS: &str = "Nothing fits well; what is listed is only nearest. Search again in other words, a verb and its \
 object such as `create an issue`, or choose from the list of modules. If no module covers the task, say so to the user.";
/// Note beside hits of which none fits, if a service without an account does.
const NOT_CONNECTED: &str = "No connected tool fits well, but a service under `needs` does. Tell the user how to connect it, \
 then search again.";
/// End of the note beside such hits while vectors are missing.
const PREPARED: &str = "are still being prepared for search by meaning: search again in a few seconds.";

/// Candidate tools within the caller's view.
pub(crate) enum CandidateSet<'a> {
    /// Tools that can be called now.
    Usable,
    /// Exactly the first tools, whatever their state; the second ones lack an account.
    Only(Vec<&'a ToolKey>, Vec<&'a ToolKey>),
}

/// Positions of the candidate tools.
#[derive(Clone)]
struct CandidateMasks {
    tools: Arc<ToolSet>,
    /// The tools and those that lack an account; `None` if no tool lacks one.
    with_unconnected: Option<Arc<ToolSet>>,
}

/// Search hits, and how they were found.
#[derive(Debug, Default)]
pub(crate) struct QueryOutcome {
    pub(crate) provider: &'static str,
    /// Reason why the requested provider was not used.
    pub(crate) fallback: Option<String>,
    /// Candidate tools that the provider has indexed.
    pub(crate) indexed: usize,
    /// Number of candidate tools.
    pub(crate) total: usize,
    /// Number of candidate tools that wait for their vector and cannot be found by meaning yet.
    pub(crate) unencoded: usize,
    pub(crate) found: Vec<RankedTool>,
    /// Number of hits, from the first one on, that fit the query well enough.
    pub(crate) fitting: usize,
    /// Tools that fit better than every hit, of services to which the caller has no account; one per service.
    pub(crate) needs: Vec<ToolKey>,
    /// Query data for the usage memory.
    pub(crate) query_record: Option<QueryRecord>,
}

/// Provider and index that found the hits.
#[derive(Clone, Copy)]
struct QueryMethod<'a> {
    provider: Strategy,
    /// Index whose vectors were used, if any.
    vectors: Option<&'a SearchIndex>,
    question: Option<&'a SearchQuery>,
}

/// A search in progress.
struct QueryRun<'a> {
    settings: Arc<SearchSettings>,
    ready: Arc<CatalogIndex>,
    masks: CandidateMasks,
    asked: &'a ToolQuery,
    project: &'a str,
    fallback: Option<String>,
}

impl QueryOutcome {
    /// Returns how the search went, for `_meta["hikite/search"]`.
    pub(crate) fn meta(&self) -> Object {
        let mut meta = Object::default().with("provider", self.provider);
        if let Some(word) = &self.fallback {
            meta.set("fallback", word.as_str());
        }
        meta.set("indexed", Raw::of(&self.indexed));
        meta.set("total", Raw::of(&self.total));
        if self.unencoded > 0 {
            meta.set("unencoded", Raw::of(&self.unencoded));
        }
        Object::default().with("hikite/search", meta)
    }

    /// Returns what the caller should know about the hits before it uses one.
    pub(crate) fn note(&self) -> Option<String> {
        if self.provider == Strategy::Off.word() {
            return Some(SEARCH_DISABLED.to_owned());
        }
        if self.fitting > 0 {
            return None;
        }
        let note = if self.needs.is_empty() { NOTHING_FITS } else { NOT_CONNECTED };
        let unencoded = match self.unencoded {
            0 => String::new(),
            count => format!(" {count} tools {PREPARED}"),
        };
        Some(format!("{note}{unencoded}"))
    }
}

impl Search {
    pub(crate) async fn ask(
        &self,
        caller: &Caller,
        view: &View,
        asked: &ToolQuery,
        among: CandidateSet<'_>,
    ) -> QueryOutcome {
        let fresh = matches!(among, CandidateSet::Only(..));
        let strategy = match self.strategy_of(caller) {
            Strategy::Off if fresh => Strategy::Bm25,
            Strategy::Off => {
                let total = view.enabled_tools().count();
                return QueryOutcome { provider: Strategy::Off.word(), total, ..QueryOutcome::default() };
            }
            strategy => strategy,
        };
        if strategy != Strategy::Bm25 {
            self.request_vectors();
        }
        let Some(ready) = self.ready(fresh).await else {
            let fallback = Some("no-index".to_owned());
            return QueryOutcome { provider: Strategy::Bm25.word(), fallback, ..QueryOutcome::default() };
        };
        let ready = if strategy == Strategy::Hybrid { self.with_vectors(ready, view).await } else { ready };
        let ready = self.ready_for(view, ready).await;
        let masks = self.masks(&ready, caller, view, &among);
        let settings = self.settings();
        let project = caller.project.as_deref().unwrap_or_default();
        let mut searching = QueryRun { settings, ready, masks, asked, project, fallback: None };
        if strategy == Strategy::Cloud {
            match searching.ask_cloud(view).await {
                Ok(found) => {
                    let way = QueryMethod { provider: Strategy::Cloud, vectors: None, question: None };
                    return outcome(searching, way, found);
                }
                Err(word) => searching.fallback = Some(word.to_owned()),
            }
        }
        if strategy == Strategy::Bm25 {
            return self.search_lexical(searching).await;
        }
        let unencoded = self.unencoded(&searching.ready, &searching.masks.tools);
        QueryOutcome { unencoded, ..self.search_semantic(searching).await }
    }

    fn masks(&self, ready: &CatalogIndex, caller: &Caller, view: &View, among: &CandidateSet<'_>) -> CandidateMasks {
        let (tools, unconnected) = match among {
            CandidateSet::Usable => {
                let snapshot = self.catalogs.snapshot();
                let is_open =
                    |module: &Module| snapshot.gates().get(&module.name).is_some_and(|gate| gate.health.is_open());
                let lacks_account = |module: &Module| self.catalogs.lacks_account(caller, module);
                let whole = ready.mask(view);
                let mut mask = Arc::clone(&whole);
                for module in view.modules().iter().filter(|module| lacks_account(module) || is_open(module)) {
                    ready.without(&module.name, Arc::make_mut(&mut mask));
                }
                let unconnected = view.modules().iter().filter(|module| lacks_account(module));
                let places = unconnected.flat_map(|module| ready.module(&module.name));
                let unconnected: Vec<usize> = places.filter(|at| whole.contains(*at)).collect();
                (mask, unconnected)
            }
            CandidateSet::Only(keys, unconnected) => {
                let places = |keys: &[&ToolKey]| keys.iter().filter_map(|key| ready.place(key)).collect::<Vec<_>>();
                let mut mask = ToolSet::none(ready.local.len());
                for at in places(keys) {
                    mask.set(at, true);
                }
                (Arc::new(mask), places(unconnected))
            }
        };
        let with_unconnected = (!unconnected.is_empty()).then(|| {
            let mut both = ToolSet::clone(&tools);
            for at in unconnected {
                both.set(at, true);
            }
            Arc::new(both)
        });
        CandidateMasks { tools, with_unconnected }
    }

    async fn search_lexical(&self, searching: QueryRun<'_>) -> QueryOutcome {
        let asked = searching.asked;
        let question = SearchQuery::lexical(&asked.queries, asked.context.as_deref());
        let ready = Arc::clone(&searching.ready);
        let hits = self.hits(&searching, &ready.local, &question);
        let way = QueryMethod { provider: Strategy::Bm25, vectors: None, question: Some(&question) };
        finish(searching, way, hits).await
    }

    /// Searches with the configured embedding model, else with the built-in encoder, else lexically.
    async fn search_semantic(&self, mut searching: QueryRun<'_>) -> QueryOutcome {
        let asked = searching.asked;
        let settings = Arc::clone(&searching.settings);
        let ready = Arc::clone(&searching.ready);
        if let Some(embedder) = &settings.embedder {
            let remote = ready.remote.as_ref().filter(|index| is_encoded(index, embedder.model()));
            let question = SearchQuery::lexical(&asked.queries, asked.context.as_deref());
            let texts: Vec<String> = question.texts().into_iter().map(str::to_owned).collect();
            let vectors = match remote {
                Some(index) => embedder.embed(&texts).await.map(|vectors| (index, vectors)),
                None if self.index_worker.is_model_available() => {
                    searching.fall_back("embedding-indexing");
                    return self.search_with_encoder(searching).await;
                }
                None => Err(ProviderFailure::Unreachable),
            };
            match vectors {
                Ok((index, vectors)) => {
                    let question = question.with_vectors(vectors);
                    let hits = self.hits(&searching, index, &question);
                    let way =
                        QueryMethod { provider: Strategy::Hybrid, vectors: Some(index), question: Some(&question) };
                    return finish(searching, way, hits).await;
                }
                Err(trouble) => searching.fall_back(&format!("embedding-{}", trouble.word())),
            }
        }
        self.search_with_encoder(searching).await
    }

    async fn search_with_encoder(&self, mut searching: QueryRun<'_>) -> QueryOutcome {
        let Some(encoder) = searching.settings.encoder.clone() else {
            searching.fall_back("no-encoder");
            return self.search_lexical(searching).await;
        };
        if !is_encoded(&searching.ready.local, encoder.model()) {
            searching.fall_back("indexing");
            return self.search_lexical(searching).await;
        }
        let turn = Arc::clone(&self.encoding).acquire_owned();
        let Ok(Ok(turn)) = tokio::time::timeout(ENCODER_WAIT, turn).await else {
            searching.fall_back("busy");
            return self.search_lexical(searching).await;
        };
        let asked = searching.asked.clone();
        let (ready, masks) = (Arc::clone(&searching.ready), searching.masks.clone());
        let limit = searching.width();
        let traces = self.memory.traces(searching.project, &ready, encoder.model());
        let read = move || {
            let question = SearchQuery::hybrid(&asked.queries, asked.context.as_deref(), &*encoder);
            let hits = masks.search(&ready.local, &question, &traces, limit);
            drop(turn);
            (question, hits)
        };
        match self.tasks.spawn_blocking(read).await {
            Ok((question, hits)) => {
                let ready = Arc::clone(&searching.ready);
                let vectors = Some(&ready.local);
                let way = QueryMethod { provider: Strategy::Hybrid, vectors, question: Some(&question) };
                finish(searching, way, hits).await
            }
            Err(error) => {
                tracing::error!("the encoder failed: {error}");
                searching.fall_back("failed");
                self.search_lexical(searching).await
            }
        }
    }

    fn hits(&self, searching: &QueryRun<'_>, index: &SearchIndex, question: &SearchQuery) -> QueryHits {
        let traces = self.memory.traces(searching.project, &searching.ready, index.model());
        searching.masks.search(index, question, &traces, searching.width())
    }
}

/// Hits among the candidate tools.
struct QueryHits {
    found: Vec<SearchHit>,
    /// Positions of better tools that lack an account.
    needs: Vec<usize>,
}

impl CandidateMasks {
    fn search(&self, index: &SearchIndex, question: &SearchQuery, traces: &[UsageTrace], limit: usize) -> QueryHits {
        let found = index.search(question, &self.tools, traces, limit);
        let best = self.with_unconnected.iter().flat_map(|mask| index.search(question, mask, traces, NEEDS_TOP));
        let needs = best.take_while(|hit| !self.tools.contains(hit.at) && hit.relevance >= RELEVANCE_MIN);
        QueryHits { found, needs: needs.map(|hit| hit.at).collect() }
    }
}

/// Reranks the top hits, if a reranker is configured.
async fn finish(mut searching: QueryRun<'_>, way: QueryMethod<'_>, hits: QueryHits) -> QueryOutcome {
    let mut found: Vec<RankedTool> = hits.found.into_iter().map(|hit| searching.chosen(hit)).collect();
    let mut fitting = fitting(found.iter().map(|chosen| chosen.relevance));
    if let Some((reranker, top)) = searching.settings.reranker.clone()
        && found.len() > 1
    {
        let best = &found[..found.len().min(top)];
        let documents: Vec<String> = best.iter().map(|chosen| searching.text(&chosen.key)).collect();
        match reranker.rerank(&searching.asked.queries.join("\n"), &documents).await {
            Ok(order) => {
                found = reordered(found, &order);
                // The relevance is the reranker's now, on its own scale.
                fitting = if fitting > 0 { found.len() } else { 0 };
            }
            Err(trouble) => searching.fall_back(&format!("rerank-{}", trouble.word())),
        }
    }
    found.truncate(searching.asked.limit);
    let mut needs: Vec<ToolKey> = hits.needs.into_iter().map(|at| searching.ready.key(at).clone()).collect();
    needs.dedup_by(|a, b| a.module == b.module);
    QueryOutcome { fitting: fitting.min(found.len()), needs, ..outcome(searching, way, found) }
}

fn outcome(searching: QueryRun<'_>, way: QueryMethod<'_>, found: Vec<RankedTool>) -> QueryOutcome {
    let mask = &searching.masks.tools;
    let total = mask.count();
    let memory = searching.settings.memory;
    let query_record = memory.enabled.then(|| {
        let asked = searching.asked;
        let model = way.vectors.map(SearchIndex::model).unwrap_or_default();
        let text = memory.text.then(|| asked.queries.join("\n"));
        match way.question {
            Some(question) => QueryRecord::of(question, model, text),
            None => QueryRecord::of(&SearchQuery::lexical(&asked.queries, None), model, text),
        }
    });
    QueryOutcome {
        provider: way.provider.word(),
        fallback: searching.fallback,
        indexed: way.vectors.map_or(total, |index| encoded(index, mask)),
        total,
        fitting: found.len(),
        found,
        query_record: query_record.flatten(),
        ..QueryOutcome::default()
    }
}

impl QueryRun<'_> {
    /// Records the reason for a fallback; the first one is reported.
    fn fall_back(&mut self, word: &str) {
        self.fallback.get_or_insert_with(|| word.to_owned());
    }

    /// Returns the number of hits to retrieve: a reranker needs more than the caller asked for.
    fn width(&self) -> usize {
        let top = self.settings.reranker.as_ref().map_or(0, |(_, top)| *top);
        self.asked.limit.max(top)
    }

    fn chosen(&self, hit: SearchHit) -> RankedTool {
        let explanation = (!hit.explanation.is_empty()).then_some(hit.explanation);
        RankedTool { key: self.ready.key(hit.at).clone(), relevance: hit.relevance, explanation }
    }

    fn text(&self, key: &ToolKey) -> String {
        self.ready.place(key).map(|at| self.ready.local.document(at).text()).unwrap_or_default()
    }

    /// Asks the external provider. Sends only tools that the caller may find.
    async fn ask_cloud(&self, view: &View) -> Result<Vec<RankedTool>, &'static str> {
        let Some(cloud) = &self.settings.cloud else { return Err("no-cloud") };
        let tools: Vec<AvailableTool> = self.masks.tools.iter().map(|at| self.available(at)).collect();
        let request = ProviderRequest {
            queries: &self.asked.queries,
            context: self.asked.context.as_deref(),
            tools: &tools,
            limit: self.asked.limit,
        };
        let mut found = cloud.search(request).await.map_err(ProviderFailure::word)?;
        // The provider's answer is not trusted: tools outside the caller's view are dropped.
        found.retain(|chosen| {
            let at = self.ready.place(&chosen.key);
            at.is_some_and(|at| self.masks.tools.contains(at)) && view.usable(&chosen.key).is_some()
        });
        found.truncate(self.asked.limit);
        Ok(found)
    }

    fn available(&self, at: usize) -> AvailableTool {
        let document = self.ready.local.document(at);
        AvailableTool {
            key: document.key.clone(),
            name: Arc::clone(&document.name),
            module: Arc::clone(&document.module),
            description: document.description.clone(),
        }
    }
}

/// Returns `true` if this model encoded tools of the index. The ranking predicts the similarity of the others.
fn is_encoded(index: &SearchIndex, model: &str) -> bool {
    index.model() == model && index.encoded() > 0
}

/// Applies the reranker's order; hits that it does not name follow in their own order.
fn reordered(found: Vec<RankedTool>, order: &[(usize, f64)]) -> Vec<RankedTool> {
    let mut rest: Vec<Option<RankedTool>> = found.into_iter().map(Some).collect();
    let mut all: Vec<RankedTool> = Vec::with_capacity(rest.len());
    for (at, relevance) in order {
        let taken = rest.get_mut(*at).and_then(Option::take);
        all.extend(taken.map(|chosen| RankedTool { relevance: *relevance, ..chosen }));
    }
    let least = all.last().map_or(1.0, |chosen| chosen.relevance);
    let rest = rest.into_iter().flatten();
    all.extend(rest.map(|chosen| RankedTool { relevance: chosen.relevance.min(least), ..chosen }));
    all
}

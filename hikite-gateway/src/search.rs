//! Tool search: the index of the catalog, queries, and the usage memory that boosts tools after successful calls.
//! Slow work runs off the path of requests.

mod candidate;
mod catalog_index;
mod index_worker;
mod query;
mod query_history;
mod restricted_index;
mod usage_memory;
mod vector;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use hikite_core::caller::Caller;
use hikite_core::search::encoder::Encoder;
use hikite_core::search::provider::{Embedder, Reranker, SearchProvider};
use hikite_store::Store;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use candidate::CandidateRanking;
use index_worker::IndexWorker;
pub(crate) use query::{CandidateSet, QueryOutcome};
use query_history::QueryHistory;
use restricted_index::RestrictedIndexes;
use usage_memory::UsageMemory;
pub use usage_memory::decayed;

use crate::catalogs::Catalogs;
use hikite_identity::Optimization;

/// Search strategy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Search is disabled.
    Off,
    /// Lexical (BM25).
    Bm25,
    /// Lexical and semantic.
    #[default]
    Hybrid,
    /// An external provider, with `Hybrid` as fallback.
    Cloud,
}

impl Strategy {
    pub fn word(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Bm25 => "bm25",
            Self::Hybrid => "hybrid",
            Self::Cloud => "cloud",
        }
    }
}

/// Search settings of the config, with the providers they name.
#[derive(Clone, Debug, Default)]
pub struct SearchSettings {
    /// Default strategy, used where the caller's project sets none.
    pub strategy: Strategy,
    pub encoder: Option<Arc<dyn Encoder>>,
    pub cloud: Option<Arc<dyn SearchProvider>>,
    /// External embedding model, used instead of the encoder while it is available.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// Reranker, and the number of top hits it reorders.
    pub reranker: Option<(Arc<dyn Reranker>, usize)>,
    pub memory: MemorySettings,
}

/// Settings of the usage memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySettings {
    pub enabled: bool,
    /// Stores the queries in plain text, for people to read.
    pub text: bool,
    /// Time after which a success counts half.
    pub half_life: Duration,
    /// Maximum number of query and tool pairs per project.
    pub pairs: usize,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { enabled: true, text: false, half_life: Duration::from_secs(30 * 86_400), pairs: 2000 }
    }
}

/// Maximum number of queries that are encoded at the same time. Each takes a few milliseconds of a whole core.
const ENCODING: usize = 4;

/// The search index of the catalog, and the queries to it.
pub struct Search {
    /// For background work, which ends when the search is dropped.
    this: Weak<Self>,
    pub(crate) catalogs: Arc<Catalogs>,
    store: Store,
    settings: ArcSwap<SearchSettings>,
    index_worker: IndexWorker,
    restricted_index: RestrictedIndexes,
    memory: UsageMemory,
    conversations: QueryHistory,
    encoding: Arc<Semaphore>,
    /// Limits background encoding of tools that other gateways sent.
    filling: Arc<Semaphore>,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

impl std::fmt::Debug for Search {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Search").finish_non_exhaustive()
    }
}

impl Search {
    /// Builds a search over catalogs that report their changes to it. `catalogs` gets the function to call after every
    /// rebuild.
    pub(crate) fn new(store: Store, catalogs: impl FnOnce(Box<dyn Fn() + Send + Sync>) -> Arc<Catalogs>) -> Arc<Self> {
        Arc::new_cyclic(|this: &Weak<Self>| {
            let search = Weak::clone(this);
            let schedule_rebuild = move || {
                if let Some(search) = search.upgrade() {
                    search.schedule_rebuild();
                }
            };
            Self::over(catalogs(Box::new(schedule_rebuild)), store, Weak::clone(this))
        })
    }

    fn over(catalogs: Arc<Catalogs>, store: Store, this: Weak<Self>) -> Self {
        Self {
            this,
            catalogs,
            store,
            settings: ArcSwap::default(),
            index_worker: IndexWorker::default(),
            restricted_index: RestrictedIndexes::default(),
            memory: UsageMemory::default(),
            conversations: QueryHistory::default(),
            encoding: Arc::new(Semaphore::new(ENCODING)),
            filling: Arc::new(Semaphore::new(1)),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
        }
    }

    pub(crate) fn settings(&self) -> Arc<SearchSettings> {
        self.settings.load_full()
    }

    /// Replaces the search settings.
    pub fn set_settings(&self, settings: SearchSettings) {
        self.memory.limit(settings.memory);
        self.settings.store(Arc::new(settings));
        self.schedule_rebuild();
    }

    /// Stops background work and persists the usage memory.
    pub async fn stop(&self) {
        self.stopping.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.memory.write(&self.store).await;
    }

    /// Returns the strategy of the caller's project, else the config's.
    fn strategy_of(&self, caller: &Caller) -> Strategy {
        let own = self.catalogs.project_of(caller).and_then(|project| project.optimization);
        match own {
            Some(Optimization::Off) => Strategy::Off,
            Some(Optimization::Bm25) => Strategy::Bm25,
            Some(Optimization::Hybrid) => Strategy::Hybrid,
            Some(Optimization::Cloud) => Strategy::Cloud,
            None => self.settings.load().strategy,
        }
    }
}

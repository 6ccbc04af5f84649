//! Finding tools: the index of the catalog and how it is kept, the question and who answers it, and what is
//! remembered of answers that were of use. Everything that takes long is made beside the requests.

mod ask;
mod given;
mod keeper;
mod memory;
mod narrow;
mod ready;
mod run;
mod talk;
mod vectors;

#[cfg(test)]
mod tests;

use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use hikite_core::caller::Caller;
use hikite_core::search::encoder::Encoder;
use hikite_core::search::provider::{Embedder, Reranker, SearchProvider};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

pub use ask::Inquiry;
pub(crate) use ask::{Among, Told};
use keeper::Keeper;
use memory::Memory;
pub use memory::faded;
use narrow::Narrow;
use talk::Conversations;

use crate::gateway::Gateway;
use crate::project::Optimization;

/// How tools are found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Not at all.
    Off,
    /// By their words.
    Bm25,
    /// By their words and their meaning.
    #[default]
    Hybrid,
    /// By whoever is configured, else as `Hybrid`.
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

/// What the config says of search, and who helps with it.
#[derive(Clone, Debug, Default)]
pub struct SearchSettings {
    /// Where the caller's project says nothing.
    pub strategy: Strategy,
    pub encoder: Option<Arc<dyn Encoder>>,
    pub cloud: Option<Arc<dyn SearchProvider>>,
    /// In place of the encoder, as long as it answers.
    pub embedder: Option<Arc<dyn Embedder>>,
    /// With how many of the best results it is asked.
    pub reranker: Option<(Arc<dyn Reranker>, usize)>,
    pub memory: MemorySettings,
}

/// What is remembered of questions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemorySettings {
    pub enabled: bool,
    /// Whether the questions themselves are kept, for people to read.
    pub text: bool,
    /// After so long a success counts half.
    pub half_life: Duration,
    /// Pairs of question and tool that a project may hold.
    pub pairs: usize,
}

impl Default for MemorySettings {
    fn default() -> Self {
        Self { enabled: true, text: false, half_life: Duration::from_secs(30 * 86_400), pairs: 2000 }
    }
}

/// Questions that are read by the encoder at the same time. One takes a few milliseconds of a whole core.
const ENCODING: usize = 4;

pub(crate) struct Search {
    gateway: Weak<Gateway>,
    settings: ArcSwap<SearchSettings>,
    keeper: Keeper,
    narrow: Narrow,
    memory: Memory,
    conversations: Conversations,
    encoding: Arc<Semaphore>,
    /// Tools that others sent and whose vectors are made beside.
    filling: Arc<Semaphore>,
    tasks: TaskTracker,
    stopping: CancellationToken,
}

impl Search {
    pub(crate) fn new(gateway: Weak<Gateway>) -> Self {
        Self {
            gateway,
            settings: ArcSwap::default(),
            keeper: Keeper::default(),
            narrow: Narrow::default(),
            memory: Memory::default(),
            conversations: Conversations::default(),
            encoding: Arc::new(Semaphore::new(ENCODING)),
            filling: Arc::new(Semaphore::new(1)),
            tasks: TaskTracker::new(),
            stopping: CancellationToken::new(),
        }
    }

    pub(crate) fn settings(&self) -> Arc<SearchSettings> {
        self.settings.load_full()
    }
}

impl Gateway {
    /// Replaces what the config says of search.
    pub fn search_with(&self, settings: SearchSettings) {
        self.search.memory.limit(settings.memory);
        self.search.settings.store(Arc::new(settings));
        self.search.look_at_catalog();
    }

    /// Ends what search does beside the requests, and writes down what it remembers.
    pub async fn stop_search(&self) {
        self.search.stopping.cancel();
        self.search.tasks.close();
        self.search.tasks.wait().await;
        self.search.memory.write(&self.registry.store).await;
    }

    /// The project's own word, else the config's.
    fn strategy_of(&self, caller: &Caller) -> Strategy {
        let own = self.project_of(caller).and_then(|project| project.optimization);
        match own {
            Some(Optimization::Off) => Strategy::Off,
            Some(Optimization::Bm25) => Strategy::Bm25,
            Some(Optimization::Hybrid) => Strategy::Hybrid,
            Some(Optimization::Cloud) => Strategy::Cloud,
            None => self.search.settings.load().strategy,
        }
    }
}

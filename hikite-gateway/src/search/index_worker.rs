//! Background worker that keeps the search index up to date: one run at a time, always the newest catalog, first the
//! lexical index and then the vectors. Nothing is built before the first search, so that unused search costs nothing.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use hikite_core::tool_set::ToolSet;
use hikite_core::view::View;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::catalog_index::{CatalogIndex, encoded};
use super::{Search, Strategy};

/// Maximum time to wait for the first index.
const FIRST: Duration = Duration::from_secs(10);
/// Maximum time to wait for an index of changed tools.
const FRESH: Duration = Duration::from_millis(500);
/// Maximum time that a search waits for vectors, and for the next ones of them.
const VECTORS: Duration = Duration::from_secs(2);
const NEXT_VECTORS: Duration = Duration::from_millis(700);
/// With more texts to encode, no search waits: they take too long.
const ENCODE_WAIT_MAX: usize = 200;

pub(super) struct IndexWorker {
    ready: ArcSwapOption<CatalogIndex>,
    /// Incremented with every published index, and when the worker stops.
    published: watch::Sender<u64>,
    work: Mutex<IndexWork>,
    /// Vectors are needed, whatever strategy the config sets.
    vectors: AtomicBool,
    /// The encoder's tables are unpacked.
    warm: AtomicBool,
    /// Contents without a precomputed or stored vector, by model. They have to be encoded.
    absent: Mutex<HashMap<String, HashSet<String>>>,
}

#[derive(Default)]
struct IndexWork {
    enabled: bool,
    running: bool,
    /// Something changed during the current run.
    rerun: bool,
    /// Time until which the failing model is not called.
    paused_until: Option<Instant>,
}

impl Default for IndexWorker {
    fn default() -> Self {
        Self {
            ready: ArcSwapOption::empty(),
            published: watch::Sender::new(0),
            work: Mutex::default(),
            vectors: AtomicBool::default(),
            warm: AtomicBool::default(),
            absent: Mutex::default(),
        }
    }
}

impl IndexWorker {
    pub(super) fn ready(&self) -> Option<Arc<CatalogIndex>> {
        self.ready.load_full()
    }

    pub(super) fn publish(&self, ready: CatalogIndex) {
        self.ready.store(Some(Arc::new(ready)));
        self.notify();
    }

    fn notify(&self) {
        self.published.send_modify(|count| *count += 1);
    }

    /// Returns the contents that are not known to be absent.
    pub(super) fn not_absent<'a>(&self, model: &str, contents: &[&'a str]) -> Vec<&'a str> {
        let all = self.absent.lock();
        let absent = all.get(model);
        contents.iter().copied().filter(|content| !absent.is_some_and(|absent| absent.contains(*content))).collect()
    }

    pub(super) fn note_absent<'a>(&self, model: &str, contents: impl Iterator<Item = &'a str>) {
        self.absent.lock().entry(model.to_owned()).or_default().extend(contents.map(str::to_owned));
    }

    /// Forgets the contents that have a vector now.
    pub(super) fn note_known<'a>(&self, model: &str, contents: impl Iterator<Item = &'a String>) {
        if let Some(absent) = self.absent.lock().get_mut(model) {
            contents.for_each(|content| _ = absent.remove(content));
        }
    }

    pub(super) fn forget_absent(&self, model: &str) {
        self.absent.lock().remove(model);
    }

    /// Returns `true` if vectors are being made and few texts are left to encode.
    fn is_nearly_encoded(&self) -> bool {
        let absent = self.absent.lock().values().map(HashSet::len).max().unwrap_or(0);
        self.work.lock().running && absent <= ENCODE_WAIT_MAX
    }

    /// Returns `true` once, before the encoder's first use.
    pub(super) fn take_cold(&self) -> bool {
        !self.warm.swap(true, Ordering::Relaxed)
    }

    /// Returns `true` unless the model is paused after a failure.
    pub(super) fn is_model_available(&self) -> bool {
        self.work.lock().paused_until.is_none()
    }

    pub(super) fn rest(&self, pause: Duration) {
        self.work.lock().paused_until = Some(Instant::now() + pause);
    }
}

impl Search {
    /// Waits until the index of the current tools is complete, for at most `limit`. Meant for one-off searches.
    pub async fn wait_for_index(&self, limit: Duration) {
        self.start_indexing();
        let _ = tokio::time::timeout(limit, self.wait_complete()).await;
    }

    /// Schedules a rebuild after the catalog or the settings changed.
    pub(super) fn schedule_rebuild(&self) {
        if self.index_worker.work.lock().enabled {
            self.work();
        }
    }

    /// Starts maintaining the index.
    pub(crate) fn start_indexing(&self) {
        let was_awake = std::mem::replace(&mut self.index_worker.work.lock().enabled, true);
        if !was_awake {
            self.work();
        }
    }

    /// Returns the newest index. Only the very first search waits, and only for the lexical index. `fresh` waits
    /// briefly for an index of the current catalog.
    pub(super) async fn ready(&self, fresh: bool) -> Option<Arc<CatalogIndex>> {
        self.start_indexing();
        let mut published = self.index_worker.published.subscribe();
        let newest = || {
            let ready = self.index_worker.ready()?;
            (!fresh || Arc::ptr_eq(&ready.catalog, &self.catalogs.snapshot().catalog)).then_some(ready)
        };
        let wait_max = if self.index_worker.ready().is_some() { FRESH } else { FIRST };
        let wait = async {
            loop {
                if let Some(ready) = newest() {
                    return Some(ready);
                }
                published.changed().await.ok()?;
            }
        };
        let waited = tokio::time::timeout(wait_max, wait).await;
        waited.ok().flatten().or_else(|| self.index_worker.ready())
    }

    /// Waits until the tools of a view have vectors: for a bounded time, and only while the worker adds some. Returns
    /// the newest index.
    pub(super) async fn with_vectors(&self, mut ready: Arc<CatalogIndex>, view: &View) -> Arc<CatalogIndex> {
        let mut published = self.index_worker.published.subscribe();
        let end = Instant::now() + VECTORS;
        while self.unencoded(&ready, &ready.mask(view)) > 0 && self.index_worker.is_nearly_encoded() {
            let next = end.min(Instant::now() + NEXT_VECTORS);
            if !matches!(tokio::time::timeout_at(next, published.changed()).await, Ok(Ok(()))) {
                break;
            }
            ready = self.index_worker.ready().unwrap_or(ready);
        }
        ready
    }

    /// Returns the number of tools in the mask without a vector of the model that searches use.
    pub(super) fn unencoded(&self, ready: &CatalogIndex, mask: &ToolSet) -> usize {
        let settings = self.settings();
        let embedder = settings.embedder.as_ref().filter(|_| self.index_worker.is_model_available());
        let (index, model) = match (embedder, &settings.encoder) {
            (Some(embedder), _) => (ready.remote.as_ref(), embedder.model()),
            (None, Some(encoder)) => (Some(&ready.local), encoder.model()),
            (None, None) => return 0,
        };
        let index = index.filter(|index| index.model() == model);
        mask.count() - index.map_or(0, |index| encoded(index, mask))
    }

    /// Waits until all tools have vectors, or the worker stops.
    async fn wait_complete(&self) {
        let mut published = self.index_worker.published.subscribe();
        loop {
            if let Some(ready) = self.index_worker.ready()
                && Arc::ptr_eq(&ready.catalog, &self.catalogs.snapshot().catalog)
                && (!self.index_worker.work.lock().running || ready.local.encoded() == ready.local.len())
            {
                return;
            }
            if published.changed().await.is_err() {
                return;
            }
        }
    }

    /// Requests vectors for all tools, also after a paused model may be called again.
    pub(super) fn request_vectors(&self) {
        let now = Instant::now();
        let rested = self.index_worker.work.lock().paused_until.take_if(|until| *until <= now).is_some();
        let is_due = !self.index_worker.vectors.swap(true, Ordering::Relaxed) || rested;
        if is_due {
            self.work();
        }
    }

    fn work(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        {
            let mut work = self.index_worker.work.lock();
            work.rerun = work.running;
            if std::mem::replace(&mut work.running, true) {
                return;
            }
        }
        let this = self.this.clone();
        let stopping = self.stopping.clone();
        let working = async move {
            // The search is released between steps, so that dropping it ends the worker.
            while let Some(search) = this.upgrade() {
                if !search.step().await {
                    break;
                }
            }
        };
        self.tasks.spawn_on(
            async move {
                let _ = stopping.run_until_cancelled(working).await;
            },
            &runtime,
        );
    }

    /// Runs one step; returns `false` if there is nothing left to do.
    async fn step(&self) -> bool {
        let catalog = Arc::clone(&self.catalogs.snapshot().catalog);
        let ready = self.index_worker.ready();
        match ready.filter(|ready| Arc::ptr_eq(&ready.catalog, &catalog)) {
            None => {
                let before = self.index_worker.ready();
                let build = move || CatalogIndex::build(&catalog, before.as_deref());
                match self.tasks.spawn_blocking(build).await {
                    Ok(ready) => self.index_worker.publish(ready),
                    Err(error) => {
                        tracing::error!("failed to build the search index: {error}");
                        return !self.ends();
                    }
                }
                true
            }
            Some(ready) if self.needs_vectors() && self.add_vectors(&ready).await => true,
            Some(_) => !self.ends(),
        }
    }

    fn needs_vectors(&self) -> bool {
        self.index_worker.vectors.load(Ordering::Relaxed) || self.settings.load().strategy != Strategy::Bm25
    }

    /// Returns `true` if the worker stops; `false` if something changed meanwhile.
    fn ends(&self) -> bool {
        let mut work = self.index_worker.work.lock();
        work.running = std::mem::take(&mut work.rerun);
        let ends = !work.running;
        drop(work);
        if ends {
            // Wake waiters for the complete index.
            self.index_worker.notify();
        }
        ends
    }
}

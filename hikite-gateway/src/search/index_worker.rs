//! Background worker that keeps the search index up to date: one run at a time, always the newest catalog, first the
//! lexical index and then the vectors. Nothing is built before the first search, so that unused search costs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::catalog_index::CatalogIndex;
use super::{Search, Strategy};
use crate::gateway::Gateway;

/// Maximum time to wait for the first index.
const FIRST: Duration = Duration::from_secs(10);
/// Maximum time to wait for an index of changed tools.
const FRESH: Duration = Duration::from_millis(500);

pub(super) struct IndexWorker {
    ready: ArcSwapOption<CatalogIndex>,
    /// Incremented with every published index, and when the worker stops.
    published: watch::Sender<u64>,
    work: Mutex<IndexWork>,
    /// Vectors are needed, whatever strategy the config sets.
    vectors: AtomicBool,
    /// The encoder's tables are unpacked.
    warm: AtomicBool,
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

impl Gateway {
    /// Waits until the index of the current tools is complete, for at most `limit`. Meant for one-off searches.
    pub async fn wait_for_index(&self, limit: Duration) {
        self.search.start_indexing();
        let _ = tokio::time::timeout(limit, self.search.wait_complete(self)).await;
    }
}

impl Search {
    /// Schedules a rebuild after the catalog or the settings changed.
    pub(crate) fn schedule_rebuild(&self) {
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
    pub(super) async fn ready(&self, gateway: &Gateway, fresh: bool) -> Option<Arc<CatalogIndex>> {
        self.start_indexing();
        let mut published = self.index_worker.published.subscribe();
        let newest = || {
            let ready = self.index_worker.ready()?;
            (!fresh || Arc::ptr_eq(&ready.catalog, &gateway.snapshot().catalog)).then_some(ready)
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

    /// Waits until all tools have vectors, or the worker stops.
    async fn wait_complete(&self, gateway: &Gateway) {
        let mut published = self.index_worker.published.subscribe();
        loop {
            if let Some(ready) = self.index_worker.ready()
                && Arc::ptr_eq(&ready.catalog, &gateway.snapshot().catalog)
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
        let gateway = self.gateway.clone();
        let stopping = self.stopping.clone();
        let working = async move {
            // The gateway is released between steps, so that dropping it ends the worker.
            while let Some(gateway) = gateway.upgrade() {
                if !gateway.search.step(&gateway).await {
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
    async fn step(&self, gateway: &Arc<Gateway>) -> bool {
        let catalog = Arc::clone(&gateway.snapshot().catalog);
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
            Some(ready) if self.needs_vectors() && self.add_vectors(gateway, &ready).await => true,
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

//! Background worker that keeps the search index up to date: one run at a time, always the newest catalog, first the
//! lexical index and then the vectors. Nothing is built before the first search, so that unused search costs nothing.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::time::Instant;

use super::ready::Ready;
use super::{Search, Strategy};
use crate::gateway::Gateway;

/// Maximum time to wait for the first index.
const FIRST: Duration = Duration::from_secs(10);
/// Maximum time to wait for an index of changed tools.
const FRESH: Duration = Duration::from_millis(500);

pub(super) struct Keeper {
    ready: ArcSwapOption<Ready>,
    /// Incremented with every published index, and when the worker stops.
    made: watch::Sender<u64>,
    work: Mutex<Work>,
    /// Vectors are needed, whatever strategy the config sets.
    vectors: AtomicBool,
    /// The encoder's tables are unpacked.
    warm: AtomicBool,
}

#[derive(Default)]
struct Work {
    awake: bool,
    running: bool,
    /// Something changed during the current run.
    again: bool,
    /// Time until which the failing model is not called.
    rests_until: Option<Instant>,
}

impl Default for Keeper {
    fn default() -> Self {
        Self {
            ready: ArcSwapOption::empty(),
            made: watch::Sender::new(0),
            work: Mutex::default(),
            vectors: AtomicBool::default(),
            warm: AtomicBool::default(),
        }
    }
}

impl Keeper {
    pub(super) fn ready(&self) -> Option<Arc<Ready>> {
        self.ready.load_full()
    }

    pub(super) fn publish(&self, ready: Ready) {
        self.ready.store(Some(Arc::new(ready)));
        self.tell();
    }

    fn tell(&self) {
        self.made.send_modify(|count| *count += 1);
    }

    /// Returns `true` once, before the encoder's first use.
    pub(super) fn is_cold(&self) -> bool {
        !self.warm.swap(true, Ordering::Relaxed)
    }

    /// Returns `true` unless the model is paused after a failure.
    pub(super) fn may_ask(&self) -> bool {
        self.work.lock().rests_until.is_none()
    }

    pub(super) fn rest(&self, pause: Duration) {
        self.work.lock().rests_until = Some(Instant::now() + pause);
    }
}

impl Gateway {
    /// Waits until the index of the current tools is complete, for at most `limit`. Meant for one-off searches.
    pub async fn search_ready(&self, limit: Duration) {
        self.search.wake();
        let _ = tokio::time::timeout(limit, self.search.all_read(self)).await;
    }
}

impl Search {
    /// Schedules a rebuild after the catalog or the settings changed.
    pub(crate) fn look_at_catalog(&self) {
        if self.keeper.work.lock().awake {
            self.work();
        }
    }

    /// Starts maintaining the index.
    pub(crate) fn wake(&self) {
        let was_awake = std::mem::replace(&mut self.keeper.work.lock().awake, true);
        if !was_awake {
            self.work();
        }
    }

    /// Returns the newest index. Only the very first search waits, and only for the lexical index. `fresh` waits
    /// briefly for an index of the current catalog.
    pub(super) async fn ready(&self, gateway: &Gateway, fresh: bool) -> Option<Arc<Ready>> {
        self.wake();
        let mut made = self.keeper.made.subscribe();
        let newest = || {
            let ready = self.keeper.ready()?;
            (!fresh || Arc::ptr_eq(&ready.catalog, &gateway.snapshot().catalog)).then_some(ready)
        };
        let patience = if self.keeper.ready().is_some() { FRESH } else { FIRST };
        let wait = async {
            loop {
                if let Some(ready) = newest() {
                    return Some(ready);
                }
                made.changed().await.ok()?;
            }
        };
        let waited = tokio::time::timeout(patience, wait).await;
        waited.ok().flatten().or_else(|| self.keeper.ready())
    }

    /// Waits until all tools have vectors, or the worker stops.
    async fn all_read(&self, gateway: &Gateway) {
        let mut made = self.keeper.made.subscribe();
        loop {
            if let Some(ready) = self.keeper.ready()
                && Arc::ptr_eq(&ready.catalog, &gateway.snapshot().catalog)
                && (!self.keeper.work.lock().running || ready.local.encoded() == ready.local.len())
            {
                return;
            }
            if made.changed().await.is_err() {
                return;
            }
        }
    }

    /// Requests vectors for all tools, also after a paused model may be called again.
    pub(super) fn want_vectors(&self) {
        let now = Instant::now();
        let rested = self.keeper.work.lock().rests_until.take_if(|until| *until <= now).is_some();
        let is_due = !self.keeper.vectors.swap(true, Ordering::Relaxed) || rested;
        if is_due {
            self.work();
        }
    }

    fn work(&self) {
        let Ok(runtime) = tokio::runtime::Handle::try_current() else { return };
        {
            let mut work = self.keeper.work.lock();
            work.again = work.running;
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
        let ready = self.keeper.ready();
        match ready.filter(|ready| Arc::ptr_eq(&ready.catalog, &catalog)) {
            None => {
                let before = self.keeper.ready();
                let build = move || Ready::build(&catalog, before.as_deref());
                match self.tasks.spawn_blocking(build).await {
                    Ok(ready) => self.keeper.publish(ready),
                    Err(error) => {
                        tracing::error!("the search index cannot be built: {error}");
                        return !self.ends();
                    }
                }
                true
            }
            Some(ready) if self.wants_vectors() && self.add_vectors(gateway, &ready).await => true,
            Some(_) => !self.ends(),
        }
    }

    fn wants_vectors(&self) -> bool {
        self.keeper.vectors.load(Ordering::Relaxed) || self.settings.load().strategy != Strategy::Bm25
    }

    /// Returns `true` if the worker stops; `false` if something changed meanwhile.
    fn ends(&self) -> bool {
        let mut work = self.keeper.work.lock();
        work.running = std::mem::take(&mut work.again);
        let ends = !work.running;
        drop(work);
        if ends {
            // Wake waiters for the complete index.
            self.keeper.tell();
        }
        ends
    }
}

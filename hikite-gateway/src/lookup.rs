//! Lookup in the view of a caller, with waiting for modules that have not returned their listing yet. A caller waits only
//! for modules in its own view: a hidden module takes no more time than an absent one.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hikite_core::caller::Caller;
use hikite_core::catalog::Module;
use hikite_core::category::Category;
use hikite_core::error::{Error, ErrorKind};
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::limits::Limits;
use hikite_core::source::Backchannel;
use hikite_core::view::View;
use tokio::time::Instant;

use crate::catalogs::Catalogs;
use crate::snapshot::Snapshot;
use crate::viewer::Viewer;

/// Interval of progress notifications during a long wait.
const PROGRESS_INTERVAL: Duration = Duration::from_secs(2);

/// Lookup in the catalogs, with waiting.
#[derive(Clone, Debug)]
pub struct Lookup {
    catalogs: Arc<Catalogs>,
    limits: Arc<Limits>,
}

impl Lookup {
    pub(crate) fn new(catalogs: Arc<Catalogs>, limits: Arc<Limits>) -> Self {
        Self { catalogs, limits }
    }

    /// Looks something up in the caller's view. If it is missing, waits for modules without a listing until it
    /// appears; other modules do not delay it.
    pub(crate) async fn look_up<'a, T>(
        &self,
        viewer: impl Into<Viewer<'a>>,
        find: impl Fn(&View) -> Result<T, Error>,
    ) -> Result<(Arc<Snapshot>, T), Error> {
        self.look_up_among(viewer, |_| true, find).await
    }

    /// Looks up a tool or prompt. If the name implies the module, waits for no other.
    pub(crate) async fn look_up_named<'a, T>(
        &self,
        viewer: impl Into<Viewer<'a>>,
        name: &str,
        find: impl Fn(&View) -> Result<T, Error>,
    ) -> Result<(Arc<Snapshot>, T), Error> {
        let viewer = viewer.into();
        let may_tell = |module: &Module| {
            let snapshot = self.catalogs.snapshot_for(viewer);
            let owner = snapshot.view_of(viewer.caller).owner(name).map(|owner| Arc::clone(&owner.name));
            owner.is_none_or(|owner| owner == module.name)
        };
        self.look_up_among(viewer, may_tell, find).await
    }

    /// Looks something up that only some modules can offer.
    pub(crate) async fn look_up_among<'a, T>(
        &self,
        viewer: impl Into<Viewer<'a>>,
        which: impl Fn(&Module) -> bool,
        find: impl Fn(&View) -> Result<T, Error>,
    ) -> Result<(Arc<Snapshot>, T), Error> {
        let viewer = viewer.into();
        let caller = viewer.caller;
        let may_come =
            |found: &Result<T, Error>| found.as_ref().is_err_and(|error| error.kind != ErrorKind::ToolDisabled);
        let snapshot = self.catalogs.snapshot_for(viewer);
        let found = find(&snapshot.view_of(caller));
        if !may_come(&found) {
            return found.map(|found| (snapshot, found));
        }
        let enough = |view: &View| !may_come(&find(view));
        // Boxed, so that it takes no room in a call that does not wait.
        Box::pin(self.wait_until(viewer, self.limits.first_list, which, enough)).await;
        let snapshot = self.catalogs.snapshot_for(viewer);
        let found = find(&snapshot.view_of(caller));
        found.map(|found| (snapshot, found))
    }

    /// Waits until all of these tools are known.
    pub(crate) async fn wait_for_tools(&self, viewer: Viewer<'_>, keys: &[&ToolKey]) {
        let known = |view: &View| keys.iter().all(|key| view.tool_by_key(key).is_some());
        if known(&self.catalogs.snapshot_for(viewer).view_of(viewer.caller)) {
            return;
        }
        let named = |module: &Module| keys.iter().any(|key| key.module == module.name);
        self.wait_until(viewer, self.limits.first_list, named, known).await;
    }

    /// Waits for the servers of a category until `enough` holds.
    pub(crate) async fn wait_for_category(
        &self,
        viewer: Viewer<'_>,
        name: &str,
        limit: Duration,
        enough: impl Fn(&Category) -> bool,
    ) {
        let snapshot = self.catalogs.snapshot_for(viewer);
        let view = snapshot.view_of(viewer.caller);
        let Ok(category) = view.category(name) else { return };
        if category.missing.is_empty() || enough(category) {
            return;
        }
        let servers = &category.rule.servers;
        let enough = |view: &View| view.category(name).is_ok_and(&enough);
        Box::pin(self.wait_until(viewer, limit, |module| servers.contains(&module.name), enough)).await;
    }

    /// Waits for the first listings of the named modules, concurrently.
    pub(crate) async fn wait_for_modules(&self, caller: &Caller, names: &[String]) {
        let is_asked_for = |module: &Module| names.iter().any(|name| **name == *module.name);
        self.wait_until(caller, self.limits.first_list, is_asked_for, |_| false).await;
    }

    /// Waits for modules without a listing, for at most `limit`.
    pub async fn wait_for_lists(&self, limit: Duration, which: impl Fn(&Module) -> bool) {
        self.wait_until(&Caller::owner(), limit, which, |_| false).await;
    }

    /// Waits for newly configured servers as long as an unfiltered list request would: hikite's own descriptions
    /// depend on their listings.
    pub async fn wait_for_listings(&self, caller: &Caller) {
        self.wait_until(caller, self.list_wait(), |_| true, |_| false).await;
    }

    /// Waits before a list or tool request, and longer while no server is listed at all: many clients ask only once.
    pub(crate) async fn wait_for_client_listing(&self, caller: &Caller) {
        // Built-in services and registered tools are listed at once and do not stand for the servers.
        let is_server = |module: &Module| !matches!(module.source.kind(), "service" | "registered");
        let has_some = |view: &View| view.modules().iter().any(|module| module.listing.is_some() && is_server(module));
        if !has_some(&self.catalogs.snapshot().view_of(caller)) {
            self.wait_until(caller, self.first_list_wait(), |_| true, has_some).await;
        }
        self.wait_for_listings(caller).await;
    }

    /// Returns the remaining time that an unfiltered list may wait for newly configured servers.
    pub(crate) fn list_wait(&self) -> Duration {
        self.left_of(self.limits.all_lists)
    }

    /// Returns the remaining time that a list may wait while none of the new servers has returned anything.
    fn first_list_wait(&self) -> Duration {
        self.left_of(self.limits.first_list)
    }

    fn left_of(&self, limit: Duration) -> Duration {
        (self.catalogs.applied_at() + limit).saturating_duration_since(Instant::now())
    }

    async fn wait_until<'a>(
        &self,
        viewer: impl Into<Viewer<'a>>,
        limit: Duration,
        which: impl Fn(&Module) -> bool,
        enough: impl Fn(&View) -> bool,
    ) {
        let viewer = viewer.into();
        let snapshot = self.catalogs.snapshot_for(viewer);
        let view = snapshot.view_of(viewer.caller);
        let missing = view.modules().iter().filter(|module| module.listing.is_none() && which(module));
        let mut waiting: FuturesUnordered<_> = missing.map(|module| module.source.first_listing()).collect();
        let waited = async {
            while waiting.next().await.is_some() {
                self.catch_up();
                if enough(&self.catalogs.snapshot_for(viewer).view_of(viewer.caller)) {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(limit, waited).await;
    }

    /// Rebuilds the catalog if a module's listing is not in it yet.
    fn catch_up(&self) {
        let behind = |module: &Module| module.listing.is_none() && module.source.listing().is_some();
        if self.catalogs.snapshot().catalog.modules.iter().any(behind) {
            self.catalogs.refresh();
        }
    }
}

/// Sends progress notifications while a call waits for a server's first listing.
pub(crate) async fn report_wait<T>(back: &dyn Backchannel, mut waited: impl Future<Output = T> + Unpin) -> T {
    let mut told = 0_u32;
    loop {
        if let Ok(found) = tokio::time::timeout(PROGRESS_INTERVAL, &mut waited).await {
            return found;
        }
        told += 1;
        // Small steps, so that the server's own progress values are larger.
        let step = Raw::of(&(f64::from(told) / 1000.0));
        let message = "waiting for the server's list of tools";
        back.progress(Object::default().with("progress", step).with("message", message));
    }
}

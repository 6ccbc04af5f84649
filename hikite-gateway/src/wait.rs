//! Waiting for modules that have never told their lists. A caller waits for modules of its own view alone: one that is
//! hidden takes no more time than one that is not there.

use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hikite_core::caller::Caller;
use hikite_core::catalog::Module;
use hikite_core::category::Category;
use hikite_core::error::{Error, Kind};
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::source::Backchannel;
use hikite_core::view::View;

use crate::gateway::Gateway;
use crate::snapshot::Snapshot;
use crate::viewer::Viewer;

/// How often a client hears of a wait that takes long.
const TOLD: Duration = Duration::from_secs(2);

impl Gateway {
    /// Finds something in the caller's view. What is not there may come with the first list of a module that has not
    /// told it yet; who waits for one thing is not held up by the rest.
    pub(crate) async fn look_up<'a, T>(
        &self,
        viewer: impl Into<Viewer<'a>>,
        find: impl Fn(&View) -> Result<T, Error>,
    ) -> Result<(Arc<Snapshot>, T), Error> {
        self.look_up_among(viewer, |_| true, find).await
    }

    /// The same for a tool or a prompt: where its name says of which module it is, no other is waited for.
    pub(crate) async fn look_up_named<'a, T>(
        &self,
        viewer: impl Into<Viewer<'a>>,
        name: &str,
        find: impl Fn(&View) -> Result<T, Error>,
    ) -> Result<(Arc<Snapshot>, T), Error> {
        let viewer = viewer.into();
        let may_tell = |module: &Module| {
            let snapshot = self.snapshot_for(viewer);
            let owner = snapshot.view_of(viewer.caller).owner(name).map(|owner| Arc::clone(&owner.name));
            owner.is_none_or(|owner| owner == module.name)
        };
        self.look_up_among(viewer, may_tell, find).await
    }

    /// The same for what can come with the list of some modules alone.
    pub(crate) async fn look_up_among<'a, T>(
        &self,
        viewer: impl Into<Viewer<'a>>,
        which: impl Fn(&Module) -> bool,
        find: impl Fn(&View) -> Result<T, Error>,
    ) -> Result<(Arc<Snapshot>, T), Error> {
        let viewer = viewer.into();
        let caller = viewer.caller;
        let may_come =
            |found: &Result<T, Error>| found.as_ref().is_err_and(|error| error.kind != Kind::ToolDisabled);
        let snapshot = self.snapshot_for(viewer);
        let found = find(&snapshot.view_of(caller));
        if !may_come(&found) {
            return found.map(|found| (snapshot, found));
        }
        let enough = |view: &View| !may_come(&find(view));
        // Boxed, so that it takes no room in a call that does not wait.
        Box::pin(self.wait_until(viewer, self.limits.first_list, which, enough)).await;
        let snapshot = self.snapshot_for(viewer);
        let found = find(&snapshot.view_of(caller));
        found.map(|found| (snapshot, found))
    }

    /// Waits for the modules of these tools until all of them are known.
    pub(crate) async fn wait_for_tools(&self, viewer: Viewer<'_>, keys: &[&ToolKey]) {
        let known = |view: &View| keys.iter().all(|key| view.tool_by_key(key).is_some());
        if known(&self.snapshot_for(viewer).view_of(viewer.caller)) {
            return;
        }
        let named = |module: &Module| keys.iter().any(|key| key.module == module.name);
        self.wait_until(viewer, self.limits.first_list, named, known).await;
    }

    /// Waits for servers of a category until `enough` of it is known.
    pub(crate) async fn wait_for_category(
        &self,
        viewer: Viewer<'_>,
        name: &str,
        limit: Duration,
        enough: impl Fn(&Category) -> bool,
    ) {
        let snapshot = self.snapshot_for(viewer);
        let view = snapshot.view_of(viewer.caller);
        let Ok(category) = view.category(name) else { return };
        if category.missing.is_empty() || enough(category) {
            return;
        }
        let servers = &category.rule.servers;
        let enough = |view: &View| view.category(name).is_ok_and(&enough);
        Box::pin(self.wait_until(viewer, limit, |module| servers.contains(&module.name), enough)).await;
    }

    /// Waits for the first lists of modules that a caller names, side by side.
    pub(crate) async fn wait_for_modules(&self, caller: &Caller, names: &[String]) {
        let is_asked_for = |module: &Module| names.iter().any(|name| **name == *module.name);
        self.wait_until(caller, self.limits.first_list, is_asked_for, |_| false).await;
    }

    /// Waits for modules that have never told their lists, as long as `limit` at most.
    pub async fn wait_for_lists(&self, limit: Duration, which: impl Fn(&Module) -> bool) {
        self.wait_until(&Caller::owner(), limit, which, |_| false).await;
    }

    /// Waits for servers that have just been named, as long as an unfiltered list would: what hikite says of itself
    /// depends on what they offer.
    pub async fn settle(&self, caller: &Caller) {
        self.wait_until(caller, self.patience(), |_| true, |_| false).await;
    }

    /// The same for who asks for a list or a tool, and longer while nothing at all is there: many clients ask once, and
    /// never again where they found nothing.
    pub(crate) async fn settle_for_list(&self, caller: &Caller) {
        let has_some = |view: &View| view.modules().iter().any(|module| module.listing.is_some());
        if !has_some(&self.snapshot().view_of(caller)) {
            self.wait_until(caller, self.long_patience(), |_| true, has_some).await;
        }
        self.settle(caller).await;
    }

    async fn wait_until<'a>(
        &self,
        viewer: impl Into<Viewer<'a>>,
        limit: Duration,
        which: impl Fn(&Module) -> bool,
        enough: impl Fn(&View) -> bool,
    ) {
        let viewer = viewer.into();
        let snapshot = self.snapshot_for(viewer);
        let view = snapshot.view_of(viewer.caller);
        let missing = view.modules().iter().filter(|module| module.listing.is_none() && which(module));
        let mut waiting: FuturesUnordered<_> = missing.map(|module| module.source.first_listing()).collect();
        let waited = async {
            while waiting.next().await.is_some() {
                self.catch_up();
                if enough(&self.snapshot_for(viewer).view_of(viewer.caller)) {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(limit, waited).await;
    }

    /// Takes in lists that are known but not yet in the catalog.
    fn catch_up(&self) {
        let behind = |module: &Module| module.listing.is_none() && module.source.listing().is_some();
        if self.snapshot().catalog.modules.iter().any(behind) {
            self.look_again();
        }
    }
}

/// Tells the client that its call waits for a server which has never told what it offers, and starts by now.
pub(crate) async fn tell_wait<T>(back: &dyn Backchannel, mut waited: impl Future<Output = T> + Unpin) -> T {
    let mut told = 0_u32;
    loop {
        if let Ok(found) = tokio::time::timeout(TOLD, &mut waited).await {
            return found;
        }
        told += 1;
        // Small steps: what the server tells of its own progress is to be more.
        let step = Raw::of(&(f64::from(told) / 1000.0));
        let message = "waiting for the server's list of tools";
        back.progress(Object::default().with("progress", step).with("message", message));
    }
}

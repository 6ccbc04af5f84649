//! The gateway itself: holds the current snapshot, replaces it when a source's lists or the rules change, and
//! tells the open sessions.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::Duration;

use arc_swap::ArcSwap;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use hikite_core::breaker;
use hikite_core::caller::SessionId;
use hikite_core::catalog::{Catalog, Module, ModuleRule};
use hikite_core::category::CategoryRule;
use hikite_core::limits::Limits;
use hikite_core::listing::ListKind;
use hikite_core::seal::Seal;
use hikite_core::source::{CallContext, Event, Invocation, Listener, Method};
use hikite_core::view::View;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::cache::Cache;
use crate::gate::{Gate, Throttle};
use crate::health::Health;
use crate::session::Sessions;
use crate::snapshot::Snapshot;
use crate::surface::Surfaces;

/// What the config decides.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    pub modules: Vec<(ModuleRule, Throttle)>,
    pub categories: Vec<Arc<CategoryRule>>,
}

pub struct Gateway {
    pub(crate) limits: Arc<Limits>,
    pub(crate) sessions: Sessions,
    pub(crate) seal: Seal,
    pub(crate) cache: Cache,
    /// States of modules there have been.
    generations: AtomicU64,
    snapshot: ArcSwap<Snapshot>,
    rules: Mutex<Rules>,
    /// When the rules were last replaced.
    applied: Mutex<Instant>,
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gateway").finish_non_exhaustive()
    }
}

impl Gateway {
    /// `seal` is for what clients bring back: ids of tasks, sessions and waiting calls.
    pub fn new(limits: Arc<Limits>, seal: Seal) -> Arc<Self> {
        Arc::new(Self {
            cache: Cache::new(&limits),
            generations: AtomicU64::new(0),
            limits,
            seal,
            sessions: Sessions::default(),
            snapshot: ArcSwap::from_pointee(Snapshot::new(
                Catalog::default(),
                HashMap::new(),
                HashMap::new(),
            )),
            rules: Mutex::default(),
            applied: Mutex::new(Instant::now()),
        })
    }

    /// What sources are given to report to.
    pub fn listener(self: &Arc<Self>) -> Listener {
        let gateway: Weak<Self> = Arc::downgrade(self);
        Arc::new(move |event| {
            if let Some(gateway) = gateway.upgrade() {
                gateway.hear(event);
            }
        })
    }

    /// Replaces all rules at once; requests under way keep the snapshot they started with.
    pub fn apply(&self, rules: Rules) {
        *self.applied.lock() = Instant::now();
        let mut current = self.rules.lock();
        *current = rules;
        self.rebuild(&current);
    }

    pub fn seal(&self) -> &Seal {
        &self.seal
    }

    pub fn view(&self) -> View {
        self.snapshot().view()
    }

    /// Whether calls of a module are sent at present; `None` if there is no such module.
    pub fn breaker_state(&self, module: &str) -> Option<breaker::State> {
        self.snapshot().gates().get(module).map(|gate| gate.health.state())
    }

    pub(crate) fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Waits for modules that have never told their lists, as long as `limit` at most.
    pub async fn wait_for_lists(&self, limit: Duration, which: impl Fn(&Module) -> bool) {
        self.wait_until(limit, which, |_| false).await;
    }

    /// The same, but only until `enough` is there: who waits for one thing is not held up by the rest.
    pub(crate) async fn wait_until(
        &self,
        limit: Duration,
        which: impl Fn(&Module) -> bool,
        enough: impl Fn(&View) -> bool,
    ) {
        let snapshot = self.snapshot();
        let missing =
            snapshot.catalog.modules.iter().filter(|module| module.listing.is_none() && which(module));
        let mut waiting: FuturesUnordered<_> = missing.map(|module| module.source.first_listing()).collect();
        let waited = async {
            while waiting.next().await.is_some() {
                self.catch_up();
                if enough(&self.view()) {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(limit, waited).await;
    }

    /// Waits for servers that have just been named, as long as an unfiltered list would: what hikite says of itself
    /// depends on what they offer.
    pub async fn settle(&self) {
        self.wait_for_lists(self.patience(), |_| true).await;
    }

    /// What is left of the time that an unfiltered list may wait for servers that have just been named.
    pub(crate) fn patience(&self) -> Duration {
        let applied = *self.applied.lock();
        (applied + self.limits.all_lists).saturating_duration_since(Instant::now())
    }

    /// Takes in lists that are known but not yet in the catalog.
    fn catch_up(&self) {
        let behind = |module: &Module| module.listing.is_none() && module.source.listing().is_some();
        if self.snapshot().catalog.modules.iter().any(behind) {
            self.rebuild(&self.rules.lock());
        }
    }

    /// A client's log level concerns every source, also those that do not run yet.
    pub async fn set_level(&self, params: hikite_core::json::Object, context: &CallContext) {
        for module in &self.snapshot().catalog.modules {
            let invocation = Invocation { method: Method::SetLevel, params: params.clone() };
            let _ = module.source.call(invocation, context.clone()).await;
        }
    }

    pub fn roots_changed(&self, session: SessionId) {
        for module in &self.snapshot().catalog.modules {
            module.source.roots_changed(session);
        }
    }

    fn hear(&self, event: Event) {
        match &event {
            Event::ListChanged => return self.rebuild(&self.rules.lock()),
            Event::ResourceUpdated { params, .. } => {
                if let Some(uri) = params.object().and_then(|params| params.text("uri")) {
                    self.cache.forget_resource(&uri);
                }
            }
            Event::Log { .. } | Event::ElicitationComplete { .. } => {}
        }
        self.sessions.hand_on(event);
    }

    fn rebuild(&self, rules: &Rules) {
        let before = self.snapshot();
        let modules: Vec<ModuleRule> = rules.modules.iter().map(|(rule, _)| rule.clone()).collect();
        let catalog = Catalog::build(&modules, &rules.categories);
        let gates = rules
            .modules
            .iter()
            .map(|(rule, throttle)| (Arc::clone(&rule.name), before.gate_like(rule, *throttle, &self.limits)))
            .collect();
        let generations = self.generations(&before, &catalog);
        let after = Arc::new(Snapshot::new(catalog, gates, generations));
        self.snapshot.store(Arc::clone(&after));
        self.sessions.tell_changes(|surfaces: Surfaces, kind| {
            let differs = |kind| before.list(surfaces, kind) != after.list(surfaces, kind);
            // Templates and skills are news of the resources.
            let resources = || differs(ListKind::Templates) || differs(ListKind::Skills);
            differs(kind) || kind == ListKind::Resources && resources()
        });
    }

    /// A module that offers something else, or under other rules, is another: nothing kept of it counts any more.
    fn generations(&self, before: &Snapshot, catalog: &Catalog) -> HashMap<Arc<str>, u64> {
        let mut generations = HashMap::new();
        for module in &catalog.modules {
            let same = before.catalog.module(&module.name).is_some_and(|old| is_same(old, module));
            let known = before.generation(&module.name).filter(|_| same);
            let generation = known.unwrap_or_else(|| {
                let next = self.generations.fetch_add(1, Ordering::Relaxed) + 1;
                self.cache.forget_module(&module.name, next);
                next
            });
            generations.insert(Arc::clone(&module.name), generation);
        }
        for gone in before.catalog.modules.iter().filter(|old| !generations.contains_key(&old.name)) {
            self.cache.forget_module(&gone.name, u64::MAX);
        }
        generations
    }
}

fn is_same(old: &Module, new: &Module) -> bool {
    let same_offer = match (&old.listing, &new.listing) {
        (Some(old), Some(new)) => Arc::ptr_eq(old, new) || old.same_offer(new),
        (old, new) => old.is_none() && new.is_none(),
    };
    let same_rules = (old.policy, old.resources) == (new.policy, new.resources)
        && Arc::ptr_eq(&old.selection, &new.selection);
    same_offer && same_rules && Arc::ptr_eq(&old.source, &new.source)
}

impl Snapshot {
    /// The module's gate if its source and its limits are the same, so that a reload does not forget what is running;
    /// with other limits at least how the source has been doing.
    fn gate_like(&self, rule: &ModuleRule, throttle: Throttle, limits: &Limits) -> Arc<Gate> {
        let old = self.catalog.module(&rule.name);
        let same = old.is_some_and(|old| Arc::ptr_eq(&old.source, &rule.source));
        match self.gates().get(&rule.name).filter(|_| same) {
            Some(gate) if gate.throttle == throttle => Arc::clone(gate),
            Some(gate) => Arc::new(Gate::new(throttle, Arc::clone(&gate.health))),
            None => Arc::new(Gate::new(throttle, Arc::new(Health::new(limits)))),
        }
    }
}
